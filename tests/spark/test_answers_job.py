"""From a small lake to the stated tables: every answer is there, of one instant, and can be had again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from dragoman.errors import BadObjectives, NoTables
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.tables.answers import NAMES, answers
from dragoman_spark.jobs.tables.refresh import refresh
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import read_table, write_stated
from dragoman_spark.schemas import kind
from dragoman_spark.sources.catalog import Catalog
from tests.spark.frames import BROKER, at
from tests.spark.small_lakes import lay

EMQP = 3
DONE = 3


def story() -> list[dict[str, Any]]:
    """Two messages are answered by one worker, in 20 ms and in two minutes; a third is in a queue that nobody serves."""
    settled: dict[str, Any] = {
        "kind": "closed", "worker_no": 50, "queue_no": 1, "attempt": 1, "client_dialect": EMQP, "worker_dialect": EMQP,
        "outcome": DONE, "reason": 1, "body_size": 3, "reply_size": 2,
    }  # fmt: skip
    accepted: dict[str, Any] = {"kind": "accepted", "client_dialect": EMQP, "priority": 0, "body_size": 3}
    told = [
        {"at": at(0), "kind": "started", "count": 1, "text": "1"},
        {"at": at(0), "kind": "queue_named", "queue_no": 1, "text": "mail"},
        {"at": at(0), "kind": "queue_named", "queue_no": 2, "text": "nobody's"},
        {"at": at(1), "kind": "worker_joined", "worker_no": 50, "worker_dialect": EMQP, "text": "emqp.worker\tr:1\t6162\t5 mail"},
        {"at": at(60), "message_no": 1, "queue_no": 1, **accepted},
        {"at": at(60), "kind": "leased", "message_no": 1, "worker_no": 50, "attempt": 1},
        {"at": at(60.02), "message_no": 1, "accepted_at": at(60), "first_leased_at": at(60), "leased_at": at(60), **settled},
        {"at": at(100), "message_no": 2, "queue_no": 1, **accepted},
        {"at": at(101), "message_no": 3, "queue_no": 2, **accepted},
        {"at": at(110), "kind": "leased", "message_no": 2, "worker_no": 50, "attempt": 1},
        {"at": at(220), "message_no": 2, "accepted_at": at(100), "first_leased_at": at(110), "leased_at": at(110), **settled},
    ]  # fmt: skip
    return [{"broker_id": BROKER, "lsn": n, **fact, "kind": kind(fact["kind"])} for n, fact in enumerate(told, start=1)]


class Steps:
    """What a bar would show."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int, int]] = []

    def step(self, name: str, done: int, of: int) -> None:
        self.seen.append((name, done, of))


@pytest.fixture(scope="module")
def out(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("answers")
    file = lay(folder / "lake", story())
    catalog = Catalog(str(folder / "lake"))
    Intake(spark, catalog, TableRoot(str(folder / "out")), Options(), SILENT).take([file])
    return str(folder / "out")


@pytest.fixture(scope="module")
def stated(spark: SparkSession, out: str) -> dict[str, list[Row]]:
    steps = Steps()
    refresh(spark, out, Options(), steps)
    assert steps.seen[-1][1:] == (9, 9)
    return {name: read_table(spark, out, name).collect() for name in NAMES}


def test_objectives_are_measured_up_to_the_latest_fact(stated: dict[str, list[Row]]) -> None:
    found = {(row["objective"], row["window"]): (row["messages"], row["good"]) for row in stated["slo"]}
    assert found["done within a minute", "1h"] == (2, 1)
    assert found["success", "3d"] == (2, 2)


def test_what_is_stuck_says_why(stated: dict[str, list[Row]]) -> None:
    (row,) = stated["stuck"]
    assert (row["queue"], row["why"], row["age_ms"]) == ("nobody's", "no worker ever served the queue", 119_000.0)


def test_workers_and_their_connections_are_stated(stated: dict[str, list[Row]]) -> None:
    (peer,), (worker,) = stated["peers"], stated["workers"]
    assert (peer["identity"], peer["connected_ms"]) == ("ab", 219_000.0)
    assert (worker["worker"], worker["attempts"], worker["busy_ms"]) == ("ab", 2, 110_020.0)


def test_the_next_week_is_planned_and_nothing_is_odd_yet(stated: dict[str, list[Row]]) -> None:
    assert {row["queue"] for row in stated["capacity"]} == {"mail", "nobody's"}
    assert len(stated["capacity"]) == 2 * 168
    mail = next(row for row in stated["capacity"] if row["queue"] == "mail")
    assert (mail["service_ms"], mail["arrivals_per_s"]) == (pytest.approx(55_010.0), pytest.approx(2 / 160))
    assert stated["anomalies"] == []


def test_an_answer_can_be_had_for_another_instant_and_other_objectives(
    spark: SparkSession, out: str, tmp_path: Path
) -> None:
    path = tmp_path / "objectives.toml"
    path.write_text('[[objective]]\nname = "quick"\nmeasure = "work"\nthreshold_ms = 21\ntarget = 0.5\n')
    asked = answers(spark, out, Options(objectives_file=path, now=at(220) + timedelta(hours=2)))
    found = {row["window"]: (row["messages"], row["good"]) for row in asked["slo"]().collect()}
    assert found == {"1h": (0, 0), "6h": (2, 1), "3d": (2, 1)}


def test_stating_an_answer_again_takes_the_place_of_the_old(
    spark: SparkSession, out: str, stated: dict[str, list[Row]]
) -> None:
    write_stated(TableRoot(out), {"peers": answers(spark, out, Options())["peers"]})
    assert read_table(spark, out, "peers").collect() == stated["peers"]


def test_a_bad_objectives_file_is_refused_before_any_table_is_touched(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "objectives.toml").write_text("[[objectiv]]\n")
    with pytest.raises(BadObjectives, match="objectiv: is not known here"):
        refresh(spark, str(tmp_path / "out"), Options(objectives_file=tmp_path / "objectives.toml"))
    assert not (tmp_path / "out").exists()


def test_where_nothing_has_run_there_is_nothing_to_answer_from(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(NoTables):
        refresh(spark, str(tmp_path / "out"), Options())
