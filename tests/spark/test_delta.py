"""Tables kept as Delta tables: what their log names is what is committed, whenever it was cut short, and for every reader."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.advance import Advance
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.plan import plan
from dragoman_spark.jobs.tables.delta import begin, is_delta, publish, read_delta
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import GROWING, STATED, Layer, write_layers
from dragoman_spark.schemas import Table
from dragoman_spark.sources.catalog import Catalog
from dragoman_spark.tables import CROSSINGS, MESSAGES, QUEUES
from tests.spark.frames import BROKER, at
from tests.spark.lives_by_chance import Fact, facts_by_chance
from tests.spark.small_lakes import cut, lay
from tests.spark.tables_on_disk import in_words, rows_of_all, write_rows


class Out:
    """A root of tables whose batches are written by hand: of `messages` two rows each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = TableRoot(str(folder))

    def write(self, batch: int, *numbers: int) -> None:
        for table in GROWING:
            rows = [message(number) for number in numbers] if table == MESSAGES else []
            write_rows(self.folder, table, f"batch={batch}", rows)

    def commit(self, batch: int) -> None:
        states.commit(self.root, replace(states.BEFORE_ALL, batch=batch))

    def batch(self, batch: int, *numbers: int) -> None:
        self.write(batch, *numbers)
        self.commit(batch)
        publish(self.root)

    @property
    def log(self) -> DeltaTable:
        return DeltaTable(str(self.folder / "messages"))

    @property
    def numbers(self) -> list[int]:
        return sorted(pl.read_delta(str(self.folder / "messages"))["message_no"])


def message(number: int) -> dict[str, Any]:
    ended = at(number) + timedelta(microseconds=1)
    return {"broker_id": BROKER, "message_no": number, "closed_at": ended, "date": ended.date()}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = Out(tmp_path_factory.mktemp("made"))
    begin(found.root)
    found.batch(-1, 1, 2)
    found.batch(0, 3, 4)
    return found.folder


@pytest.fixture
def out(made: Path, tmp_path: Path) -> Out:
    return Out(Path(shutil.copytree(made, tmp_path / "out")))


def test_a_table_has_what_its_batches_added(out: Out) -> None:
    assert out.numbers == [1, 2, 3, 4]
    assert out.log.transaction_version("messages") == 0


def test_a_batch_that_is_published_again_adds_nothing(out: Out) -> None:
    version = out.log.version()
    publish(out.root)
    begin(out.root)
    assert (out.numbers, out.log.version()) == ([1, 2, 3, 4], version)


def test_what_died_between_writing_and_committing_is_seen_by_nobody(out: Out) -> None:
    out.write(1, 5, 6)
    publish(out.root)
    assert out.numbers == [1, 2, 3, 4]
    out.batch(1, 5, 6, 7)
    assert out.numbers == [1, 2, 3, 4, 5, 6, 7], "done again, it need not be of the same facts"


def test_what_died_between_the_state_and_the_log_is_mended_by_the_next_command(out: Out) -> None:
    out.write(1, 5, 6)
    out.commit(1)
    assert out.numbers == [1, 2, 3, 4]
    begin(out.root)
    assert out.numbers == [1, 2, 3, 4, 5, 6]


def test_an_old_look_at_the_tables_changes_nothing(out: Out) -> None:
    """As of a command that stood still for long, where no lock keeps two of them apart."""
    out.batch(1, 5)
    (out.folder / "progress/batch=1/state.json").unlink()
    publish(out.root)
    assert out.numbers == [1, 2, 3, 4, 5]


def test_a_state_that_was_lost_begins_again(out: Out) -> None:
    out.root.remove("progress")
    begin(out.root)
    assert out.numbers == []
    out.batch(-1, 1, 2)
    assert out.numbers == [1, 2]


def test_a_fold_takes_the_place_of_its_batches_at_one_stroke(out: Out) -> None:
    version = out.log.version()
    for table in GROWING:
        write_rows(out.folder, table, "base=0", [message(n) for n in (1, 2, 3, 4)] if table == MESSAGES else [])
    write_layers(out.root, [Layer("base=0", 0, 99)])
    publish(out.root)
    assert out.log.version() == version + 1
    assert out.numbers == [1, 2, 3, 4]
    assert [Path(file).parent.name for file in out.log.file_uris()] == ["base=0"]


def test_the_log_says_within_which_bounds_a_file_lies(out: Out) -> None:
    text = (out.folder / "messages/_delta_log" / f"{out.log.version():020}.json").read_text(encoding="utf-8")
    added = next(json.loads(line)["add"] for line in text.splitlines() if "add" in json.loads(line))
    told = json.loads(added["stats"])
    assert (told["numRecords"], told["minValues"]["message_no"], told["maxValues"]["message_no"]) == (2, 3, 4)
    assert told["minValues"]["closed_at"] == "2026-03-02T00:00:03.000Z"
    assert told["maxValues"]["closed_at"] == "2026-03-02T00:00:04.001Z", "rounded up: a bound may not cut a row off"
    assert told["nullCount"]["worker_no"] == 2
    late = pl.scan_delta(str(out.folder / "messages")).filter(pl.col("closed_at") > at(4)).collect()
    assert list(late["message_no"]) == [4]


def test_tables_that_were_never_kept_so_get_no_log(tmp_path: Path) -> None:
    plain = Out(tmp_path)
    plain.batch(0, 1)
    assert not is_delta(plain.root)
    assert not list(tmp_path.glob("*/_delta_log"))


def test_a_table_made_whole_takes_the_place_of_the_one_before(out: Out) -> None:
    for number, names in enumerate((["mail", "images"], ["mail"]), start=1):
        write_rows(out.folder, QUEUES, f"stated={number}", [{"queue": name} for name in names])
        out.root.write(STATED, json.dumps({"queues": f"stated={number}"}).encode())
        publish(out.root)
    assert list(pl.read_delta(str(out.folder / "queues"))["queue"]) == ["mail"]
    assert sorted(pl.read_delta(str(out.folder / "queues"), version=1)["queue"]) == ["images", "mail"]


@pytest.mark.timeout(600)  # where many share a machine, two batches take minutes
def test_polars_duckdb_and_spark_see_what_the_pipeline_wrote(spark: SparkSession, tmp_path: Path) -> None:
    seed = 77
    print("seed", seed)
    lake, folder = tmp_path / "lake", tmp_path / "out"
    first, second = cut(facts_by_chance(seed, 300), 2)
    begin(TableRoot(str(folder)))
    _batch(spark, lake, folder, first, is_killed=False)
    _batch(spark, lake, folder, second, is_killed=True)
    truth = rows_of_all(folder, GROWING)
    assert in_words(MESSAGES, _read(folder, MESSAGES)) != truth["messages"], "the second batch is not in the log yet"
    begin(TableRoot(str(folder)))
    for table in GROWING:
        assert in_words(table, _read(folder, table)) == truth[table.name], table.name
    rows = read_delta(spark, str(folder), "crossings").toArrow().to_pylist()
    assert in_words(CROSSINGS, rows) == truth["crossings"]
    with duckdb.connect() as database:
        files = DeltaTable(str(folder / "crossings")).file_uris()
        counted = database.execute("select sum(messages) from read_parquet(?)", [files]).fetchall()
    assert counted == [(len(truth["messages"]),)]


def _read(folder: Path, table: Table) -> list[dict[str, Any]]:
    return pl.read_delta(str(folder / table.name)).to_dicts()


def _batch(spark: SparkSession, lake: Path, folder: Path, facts: list[Fact], is_killed: bool) -> None:
    """One batch of these facts; a killed one gets as far as its committed state, and its tables' logs no more."""
    root, catalog = TableRoot(str(folder)), Catalog(str(lake))
    file = lay(lake, facts)
    intake = Intake(spark, catalog, root, Options(format="delta"), SILENT)
    if not is_killed:
        intake.take([file])
        return
    chosen = plan(intake.state.done, intake.state.held, [file], catalog.files, hold_batches=1)
    assert chosen.take
    Advance(spark, root, catalog, intake.state, intake.state.batch + 1).take(chosen, catalog.spans([file]))
