"""Expectations: every one is counted, a broken one shows a row that breaks it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from dragoman_spark.schemas import FACTS
from dragoman_spark.tables import ORPHANS, QUALITY
from dragoman_spark.transforms.checks.expectations import EXPECTATIONS, OF_FACTS
from dragoman_spark.transforms.checks.quality import quality
from tests.spark.frames import BROKER, at, facts, rows_of
from tests.spark.lives_by_chance import facts_by_chance, to_parquet

ACCEPTED = {"kind": "accepted", "message_no": 1, "queue_no": 3, "client_dialect": 1}
RELEASED = {
    "kind": "released", "message_no": 1, "worker_no": 50, "attempt": 1, "leased_at": at(0), "queue_no": 3,
    "client_dialect": 1, "worker_dialect": 1, "reason": 2,
}  # fmt: skip
CLOSED = {**RELEASED, "kind": "closed", "outcome": 3, "reason": 1, "accepted_at": at(0), "first_leased_at": at(0)}


def tried(frame: DataFrame) -> dict[str, Row]:
    assert frame.columns == QUALITY.names
    rows = frame.collect()
    assert [row.expectation for row in rows if row.is_fatal is None] == []
    assert len({row.expectation for row in rows}) == len(rows)
    return {row.expectation: row for row in rows}


def broken(rows: dict[str, Row]) -> dict[str, int]:
    return {name: row["rows"] for name, row in rows.items() if row["rows"] > 0}


def no_orphans(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], ORPHANS.struct())


def test_lawful_facts_break_nothing_and_every_expectation_says_so(spark: SparkSession, tmp_path: Path) -> None:
    lawful = to_parquet(facts_by_chance(31, moves=3000), tmp_path / "facts.parquet")
    rows = tried(quality(5, spark.read.schema(FACTS).parquet(str(lawful)), no_orphans(spark)))
    assert broken(rows) == {}
    assert set(rows) == {expectation.name for expectation in EXPECTATIONS}
    assert {(row.batch, row.example) for row in rows.values()} == {(5, None)}


# Each breaks the one expectation it is written for.
BREAKS: dict[str, list[dict[str, Any]]] = {
    "unknown_kind": [{"kind": 77}],
    "unknown_outcome": [{**CLOSED, "outcome": 9}, {**CLOSED, "outcome": 1}],
    "unknown_reason": [{**RELEASED, "reason": 99}],
    "unknown_dialect": [{**ACCEPTED, "client_dialect": 9}, {**RELEASED, "worker_dialect": 9}],
    "missing_value": [{**ACCEPTED, "queue_no": None}, {"kind": "requeued"}, {**CLOSED, "attempt": None}],
    "closed_without_accepted_at": [{**CLOSED, "accepted_at": None}],
    "attempt_without_begin": [{**RELEASED, "leased_at": None}],
    "attempt_zero": [{**RELEASED, "attempt": 0}],
    "ended_before_begun": [{**RELEASED, "leased_at": at(900)}],
    "negative_duration": [{**CLOSED, "accepted_at": at(0.5)}, {**CLOSED, "due_at": at(0.5)}],
}


def test_every_expectation_of_facts_can_be_broken(spark: SparkSession) -> None:
    told = [(name, row) for name, rows in BREAKS.items() for row in rows]
    rows = tried(quality(1, facts(spark, ACCEPTED, *[row for _, row in told], CLOSED), no_orphans(spark)))
    assert broken(rows) == {name: len(breaking) for name, breaking in BREAKS.items()}
    assert set(BREAKS) == {expectation.name for expectation in OF_FACTS}
    for name in BREAKS:
        first_lsn = 2 + [breaking for breaking, _ in told].index(name)
        assert json.loads(rows[name].example)["lsn"] == first_lsn, "the example is the first that breaks it"


def test_time_that_goes_backwards_shows(spark: SparkSession) -> None:
    """Each broker has its own time, and its own way to lose it."""
    instants = {1: [1, 1, 2, 3], 2: [1, 5, 9, 2], 3: [4, 3, 5, 9]}
    told = [(broker, lsn, at(second)) for broker, seconds in instants.items() for lsn, second in enumerate(seconds)]
    noted = [{"kind": "noted", "broker_id": broker, "lsn": lsn, "at": instant} for broker, lsn, instant in told]
    rows = tried(quality(1, facts(spark, *noted), no_orphans(spark)))
    assert broken(rows) == {"time_backwards": 2}, "broker 1 is right"


def test_time_that_goes_backwards_from_one_run_to_the_next_shows(spark: SparkSession) -> None:
    told = facts(
        spark,
        {"kind": "noted", "lsn": 1023, "at": at(9)},
        {"kind": "noted", "lsn": 1024, "at": at(8)},
        {"kind": "noted", "lsn": 1023, "at": at(99), "broker_id": 8},
    )
    row = tried(quality(1, told, no_orphans(spark)))["time_backwards"]
    assert (row["rows"], row.is_fatal) == (1, True)
    assert json.loads(row.example)["lsn"] == 1024


def test_orphans_break_but_not_those_that_began_before_the_lake(spark: SparkSession) -> None:
    whys = ["closed_twice", "before_lake", "no_accepted"]
    found = rows_of(
        spark,
        ORPHANS,
        *[{"broker_id": BROKER, "message_no": n, "why": why, "first_lsn": 10 - n} for n, why in enumerate(whys)],
    )
    row = tried(quality(1, spark.createDataFrame([], FACTS), found))["orphan"]
    assert (row["rows"], row.is_fatal, json.loads(row.example)["message_no"]) == (2, True, 2)


def test_what_only_the_files_tell_is_brought_in(spark: SparkSession) -> None:
    seen = {"gap": (12, '{"first_lsn": 4}')}
    rows = tried(quality(1, spark.createDataFrame([], FACTS), no_orphans(spark), seen))
    assert broken(rows) == {"gap": 12}
    assert rows["gap"].example == '{"first_lsn": 4}'
