"""`run`, `watch`, `compact`, `backfill` and `check` on one lake that grows: after each the tables say what the lake says."""

from __future__ import annotations

import shutil
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from dragoman.errors import LakeEmpty, LakeIncomplete, NoTables, OutBusy
from dragoman.lake.layout import HISTORY
from dragoman_spark.jobs.backfill import backfill
from dragoman_spark.jobs.check import check, differences
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.state import last_state
from dragoman_spark.jobs.stream import run, watch
from dragoman_spark.jobs.tables.compact import compact
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore, read_table
from dragoman_spark.sources.catalog import Catalog
from tests.spark.frames import made
from tests.spark.lives_by_chance import Fact, facts_by_chance
from tests.spark.small_lakes import cut, lay, lay_all

DEADLINE_S = 120.0


def over_midnight(seed: int, moves: int) -> list[Fact]:
    """Facts of which the middle one begins a new day."""
    facts = facts_by_chance(seed, moves)
    middle = facts[len(facts) // 2]["at"]
    shift = middle.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1) - middle
    return [
        {
            name: value + shift if name.endswith("at") and name != "at" and value else value
            for name, value in fact.items()
        }
        | {"at": fact["at"] + shift}
        for fact in facts
    ]


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not is_so():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.05)


@pytest.mark.timeout(1500)
@pytest.mark.parametrize("is_all_made_anew", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_whatever_is_done_to_the_tables_they_say_what_the_lake_says(
    spark: SparkSession, tmp_path: Path, is_all_made_anew: bool
) -> None:
    lake, out = tmp_path / "lake", tmp_path / "out"
    where = (spark, str(lake), str(out))
    facts = over_midnight(51, 300 if is_all_made_anew else 150)
    lots = cut(facts, 6)
    lay_all(lake, lots[:3], HISTORY)
    lay_all(lake, lots[2:4])

    def facts_done() -> int:
        state = last_state(TableRoot(str(out)))
        return state.facts if state else 0

    def differing() -> dict[str, int]:
        return {name: rows for name, rows in check(*where, Options(), SILENT).rows_by_table.items() if rows}

    summary = run(*where, Options(), SILENT)
    assert (summary.facts, summary.quality_failures) == (sum(map(len, lots[:4])), 0)
    assert sorted(path.name for path in (out / "messages").iterdir()) == ["batch=-1", "batch=0"]

    # The checkpoint is lost, and files come while it looks on.
    shutil.rmtree(out / "progress/checkpoint")
    stop, ended = threading.Event(), []
    watching = threading.Thread(target=lambda: ended.append(watch(*where, Options(trigger_s=0.2), SILENT, stop)))
    watching.start()
    try:
        for lot in lots[4:]:
            lay(lake, lot)
        wait_for(lambda: facts_done() == len(facts) or not watching.is_alive())
    finally:
        stop.set()
        watching.join()
    assert [one.facts for one in ended] == [sum(map(len, lots[4:]))]

    # A day's rows are damaged: these two tables differ and no other. The day is made anew, then all lies in one folder.
    day = facts[0]["at"].date()
    shutil.rmtree(out / "funnel/batch=-1")
    shutil.rmtree(out / "attempts/batch=-1")
    if is_all_made_anew:
        assert set(differing()) == {"funnel", "attempts"}
    backfill(*where, Options(), day, SILENT)
    assert read_table(spark, str(out), "funnel").where(f"date = '{day}'").count() > 0
    rows = read_table(spark, str(out), "attempts").count()
    folded = compact(spark, str(out), Options(), SILENT)
    assert folded.rows_by_table["attempts"] == rows
    assert [path.name for path in (out / "attempts").iterdir()] == [TableStore(TableRoot(str(out))).layers[0].folder]
    assert differing() == {}

    # All of it anew, and nothing is taken again.
    if is_all_made_anew:
        assert backfill(*where, Options(), None, SILENT).facts == len(facts)
        assert differing() == {}
    assert Intake(spark, Catalog(str(lake)), TableRoot(str(out)), Options(), SILENT).pending() == []

    # What the lake has lost cannot be made anew.
    shutil.rmtree(lake / f"facts/history/date={facts[0]['at'].date()}")
    with pytest.raises(LakeIncomplete):
        backfill(*where, Options(), None, SILENT)


def test_a_row_that_only_one_side_has_is_a_difference(spark: SparkSession) -> None:
    struct = T.StructType().add("name", T.StringType()).add("wait_ms", T.DoubleType())
    same, twice = {"name": "same", "wait_ms": None}, {"name": "twice", "wait_ms": 7.0}
    streamed = made(spark, [same, twice, {"name": "changed", "wait_ms": 1.0}], struct)
    truth = made(spark, [same, twice, twice, {"name": "changed", "wait_ms": 1.5}], struct)
    rows, shown = differences(streamed, truth)
    assert rows == 3
    assert {
        'only streamed: {"name":"changed","wait_ms":1.0}',
        'only in the lake: {"name":"changed","wait_ms":1.5}',
    } < set(shown)
    assert not any("same" in row for row in shown)
    assert differences(truth, truth) == (0, [])


def test_a_lake_without_a_file_is_reported_as_empty(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(LakeEmpty):
        run(spark, str(tmp_path / "lake"), str(tmp_path / "out"), Options(), SILENT)


@pytest.mark.parametrize("job", ["check", "compact", "backfill", "read"])
def test_what_was_never_made_is_not_there(spark: SparkSession, tmp_path: Path, job: str) -> None:
    lake, out = str(tmp_path / "lake"), str(tmp_path / "out")
    jobs: dict[str, Callable[[], object]] = {
        "check": lambda: check(spark, lake, out, Options(), SILENT),
        "compact": lambda: compact(spark, out, Options(), SILENT),
        "backfill": lambda: backfill(spark, lake, out, Options(), None, SILENT),
        "read": lambda: read_table(spark, out, "messages"),
    }
    with pytest.raises(NoTables):
        jobs[job]()


def test_two_commands_do_not_write_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    out = str(tmp_path / "out")
    with TableRoot(out).writing(), pytest.raises(OutBusy):
        compact(spark, out, Options(), SILENT)
