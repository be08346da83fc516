"""Objectives measured: exact counts in three windows, and DuckDB's opinion on the same messages."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path
from typing import Any

import duckdb
import pytest
from pyspark.sql import Row, SparkSession

from dragoman_spark.tables import MESSAGES, QUEUES, SLO
from dragoman_spark.transforms.checks.objectives import Objective, read
from dragoman_spark.transforms.checks.slo import slo
from tests.spark.frames import BROKER, at, rows_of

DONE, REJECTED, EXPIRED, CANCELLED = 3, 4, 5, 6
NOW = at(80 * 3600)
MAIL = Objective("prompt", "mail", "wait", 100.0, 0.75)


def message(number: int, hours_ago: float, **said: Any) -> dict[str, Any]:
    closed_at = NOW - timedelta(hours=hours_ago)
    times = {"wait_ms": 50.0, "work_ms": 10.0, "total_ms": 60.0}
    return {
        "broker_id": BROKER,
        "message_no": number,
        "queue_no": 1,
        "outcome": DONE,
        "closed_at": closed_at,
        **times,
        **said,
    }


def measured(spark: SparkSession, objectives: list[Objective], *messages: dict[str, Any]) -> dict[tuple[str, str], Row]:
    queues = rows_of(
        spark,
        QUEUES,
        {"broker_id": BROKER, "queue_no": 1, "queue": "mail"},
        {"broker_id": BROKER, "queue_no": 2, "queue": "images"},
        # Another broker has its own numbers, but may serve a queue of the same name.
        {"broker_id": 8, "queue_no": 2, "queue": "mail"},
    )
    frame = slo(rows_of(spark, MESSAGES, *messages), queues, objectives, NOW)
    assert frame.columns == SLO.names
    return {(row["objective"], row["window"]): row for row in frame.collect()}


def test_each_window_counts_what_ended_in_it_and_what_ended_later(spark: SparkSession) -> None:
    rows = measured(
        spark,
        [MAIL],
        message(1, 0),  # ends now: the latest fact of the lake
        message(2, 0.5, wait_ms=100.0),  # just good
        message(3, 0.9, wait_ms=100.1),  # just too late
        message(4, 1),  # an hour ago to the microsecond: no longer in 1h
        message(5, 5, outcome=REJECTED),  # quick, but no answer
        message(6, 71),
        message(7, 72),  # no longer in 3d
        message(8, -0.1),  # after now: of a later look
        message(9, 0.2, queue_no=2),  # another queue
        message(10, 0.3, broker_id=8, queue_no=2),  # mail of the other broker
        message(11, 0.4, queue_no=77),  # a queue nobody named is nobody's `mail`
    )
    assert {window: (row["messages"], row["good"]) for (_, window), row in rows.items()} == {
        "1h": (4, 3),
        "6h": (6, 4),
        "3d": (7, 5),
    }
    hour = rows["prompt", "1h"]
    assert (hour["share"], hour["burn_rate"], hour["is_met"]) == (0.75, pytest.approx(1.0), True)
    six = rows["prompt", "6h"]
    assert (six["burn_rate"], six["is_met"]) == (pytest.approx((1 / 3) / 0.25), False)
    assert (six["measure"], six["threshold_ms"], six["target"]) == ("wait", 100.0, 0.75)


def test_an_objective_without_messages_is_neither_met_nor_missed(spark: SparkSession) -> None:
    rows = measured(spark, [MAIL, Objective("all", "*", "success", None, 0.9)], message(1, 2, queue_no=2))
    nothing = rows["prompt", "3d"]
    assert (nothing["messages"], nothing["good"]) == (0, 0)
    assert (nothing["share"], nothing["burn_rate"], nothing["is_met"]) == (None, None, None)
    assert (rows["all", "1h"]["messages"], rows["all", "1h"]["is_met"]) == (0, None)
    assert (rows["all", "6h"]["messages"], rows["all", "6h"]["is_met"]) == (1, True)


def test_a_lake_without_messages_has_a_row_for_each_objective_and_window(spark: SparkSession) -> None:
    rows = measured(spark, read(None))
    assert len(rows) == 2 * 3
    assert {row["messages"] for row in rows.values()} == {0}


def test_an_expired_or_cancelled_message_is_not_good(spark: SparkSession) -> None:
    never_held = {"wait_ms": None, "work_ms": None}
    rows = measured(
        spark,
        [Objective("quick", "*", "total", 1000.0, 0.5), Objective("success", "*", "success", None, 0.5)],
        message(1, 0.1, outcome=EXPIRED, **never_held),
        message(2, 0.1, outcome=CANCELLED, **never_held),
        message(3, 0.1),
    )
    assert (rows["quick", "1h"]["messages"], rows["quick", "1h"]["good"]) == (3, 1)
    assert (rows["success", "1h"]["messages"], rows["success", "1h"]["good"]) == (3, 1)


def test_a_share_of_exactly_the_target_is_met(spark: SparkSession) -> None:
    rows = measured(
        spark,
        [Objective("success", "*", "success", None, 0.9)],
        *[message(n, 0.1, outcome=REJECTED if n == 0 else DONE) for n in range(10)],
    )
    assert rows["success", "1h"]["is_met"] is True


def test_duckdb_counts_the_same(spark: SparkSession, tmp_path: Path) -> None:
    seed = 4
    print("seed", seed)
    chance = random.Random(seed)
    drawn = [
        message(
            n,
            chance.uniform(0, 100),
            queue_no=chance.choice([1, 1, 2]),
            outcome=chance.choices([DONE, REJECTED, EXPIRED], [20, 2, 1])[0],
            wait_ms=chance.choice([None, chance.expovariate(1 / 80)]),
            work_ms=chance.expovariate(1 / 30),
            total_ms=chance.expovariate(1 / 200),
        )
        for n in range(2000)
    ]
    objectives = [
        MAIL,
        Objective("short", "images", "work", 40.0, 0.8),
        Objective("quick", "*", "total", 500.0, 0.95),
        Objective("success", "*", "success", None, 0.9),
    ]
    rows = measured(spark, objectives, *drawn)
    path = str(tmp_path / "messages")
    rows_of(spark, MESSAGES, *drawn).write.parquet(path)
    sql = f"""
        with ended as (
            select *, epoch_us(timestamptz '{NOW.isoformat()}') - epoch_us(closed_at) as ago_us,
                   case queue_no when 1 then 'mail' else 'images' end as queue
            from read_parquet('{path}/*.parquet')),
        windows(name, us) as (values ('1h', 3600000000), ('6h', 21600000000), ('3d', 259200000000)),
        wanted(name, queue) as (values ('prompt', 'mail'), ('short', 'images'), ('quick', '*'), ('success', '*'))
        select wanted.name, windows.name, count(*),
               count(*) filter (outcome = 3 and case wanted.name
                   when 'prompt' then wait_ms <= 100 when 'short' then work_ms <= 40
                   when 'quick' then total_ms <= 500 else true end)
        from windows cross join wanted join ended
             on ago_us < windows.us and ago_us >= 0 and (wanted.queue = '*' or wanted.queue = ended.queue)
        group by all"""
    with duckdb.connect() as judge:
        judge.execute("set timezone = 'UTC'")
        expected = {(name, window): (ended, good) for name, window, ended, good in judge.execute(sql).fetchall()}
    assert len(expected) == 12
    assert {key: (row["messages"], row["good"]) for key, row in rows.items()} == expected
