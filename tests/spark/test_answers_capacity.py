"""Capacity: arrivals by hour of the week, service, and the workers for both, recomputed in plain Python.

Queues know nothing of each other: each is a scene of its own, and one run of Spark plays all that share a now.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from dragoman_spark.tables import CAPACITY, THROUGHPUT
from dragoman_spark.transforms.checks.objectives import MEAN_WAIT, Objective
from dragoman_spark.transforms.forecast.capacity import capacity
from tests.spark.frames import at, rows_of

HOUR = timedelta(hours=1)
SEED = 11
Forecast = dict[tuple[str, datetime], Row]
OBJECTIVES = [Objective("w", "*", MEAN_WAIT, 60_000.0), Objective("w", "strict", MEAN_WAIT, 5.0)]
BUSY = {"accepted": 36_000, "worked": 36_000, "work_ms": 36_000 * 950.0}


def clock(day: int, hour: int, minute: float = 0) -> datetime:
    """Day 0 is a Monday."""
    return at((day * 24 + hour) * 3600 + minute * 60)


def minute(queue: str, instant: datetime, **said: Any) -> dict[str, Any]:
    zeros = {"accepted": 0, "worked": 0, "work_ms": 0.0}
    return {"minute": instant, "queue": queue, "client_dialect": "emqp", **zeros, **said}


def forecast(spark: SparkSession, now: datetime, rows: list[dict[str, Any]]) -> Forecast:
    frame = capacity(rows_of(spark, THROUGHPUT, *rows), OBJECTIVES, now)
    assert frame.columns == CAPACITY.names
    # Collected instants are of this machine's zone: seconds since 1970 are not.
    found = frame.selectExpr("*", "unix_seconds(hour) as at_s").collect()
    return {(row["queue"], at(row["at_s"] - at(0).timestamp())): row for row in found}


@pytest.fixture(scope="module")
def within_the_hour(spark: SparkSession) -> Forecast:
    """Half past noon on a Tuesday, the third that some of these queues see."""
    rows = [
        minute("empty hours", clock(0, 0), accepted=1, worked=1, work_ms=500.0),
        minute("empty hours", clock(0, 9), accepted=1800),
        minute("empty hours", clock(0, 9, 20), accepted=1800, client_dialect="rq"),
        minute("empty hours", clock(1, 9), accepted=1440),
        minute("few days", clock(13, 0)),
        minute("few days", clock(13, 9), accepted=7200),
        minute("few days", clock(14, 9), accepted=3600),
        minute("a minute", clock(15, 12, 28), accepted=180, worked=180, work_ms=1800.0),
        minute("parts", clock(14, 8, 30), accepted=3600),
        minute("parts", clock(14, 10), accepted=36),
        minute("parts", clock(15, 12, 10), accepted=9),
        minute("unworked", clock(15, 8), accepted=3600),
    ]
    return forecast(spark, clock(15, 12, 29.5), rows)


@pytest.fixture(scope="module")
def drawn() -> list[dict[str, Any]]:
    print("seed", SEED)
    chance = random.Random(SEED)
    rows = []
    for queue, begin_h in (("drawn", 0.7), ("drawn late", 200.0)):
        for _ in range(600):
            instant = at(int(chance.uniform(begin_h * 60, 30 * 24 * 60)) * 60)
            rows.append(minute(queue, instant, accepted=chance.randrange(1, 4000)))
    return rows


@pytest.fixture(scope="module")
def on_the_hour(spark: SparkSession, drawn: list[dict[str, Any]]) -> Forecast:
    rows = [
        minute("few", clock(0, 0), accepted=1, worked=1000, work_ms=1_000_000.0),
        minute("few", clock(29, 0), worked=99, work_ms=99.0),
        minute("many", clock(0, 0), accepted=1, worked=1000, work_ms=1_000_000.0),
        minute("many", clock(29, 0), worked=100, work_ms=200.0),
        minute("strict", clock(29, 23), **BUSY),
        minute("lax", clock(29, 23), **BUSY),
    ]
    return forecast(spark, clock(30, 0), rows + drawn)


def test_an_hour_without_a_message_counts_as_one_of_its_kind(within_the_hour: Forecast) -> None:
    monday, tuesday, wednesday = (within_the_hour["empty hours", clock(day, 9)] for day in (21, 22, 16))
    assert (monday["weeks"], monday["arrivals_per_s"]) == (3, pytest.approx(3600 / 3 / 3600))
    assert (tuesday["weeks"], tuesday["arrivals_per_s"]) == (3, pytest.approx(1440 / 3 / 3600))
    assert (wednesday["weeks"], wednesday["arrivals_per_s"], wednesday["workers_needed"]) == (2, 0.0, 0)
    assert monday["load_erlangs"] == pytest.approx(1 / 3 * 0.5)


def test_the_next_168_full_hours_are_forecast_for_each_queue(within_the_hour: Forecast, on_the_hour: Forecast) -> None:
    assert {hour for queue, hour in within_the_hour if queue == "parts"} == {
        clock(15, 13) + n * HOUR for n in range(168)
    }
    assert {hour for queue, hour in on_the_hour if queue == "few"} == {clock(30, 0) + n * HOUR for n in range(168)}
    assert (len(within_the_hour), len(on_the_hour)) == (5 * 168, 6 * 168)


def test_with_less_than_a_week_the_same_hour_of_other_days_stands_in(within_the_hour: Forecast) -> None:
    friday, sunday = within_the_hour["few days", clock(18, 9)], within_the_hour["few days", clock(20, 9)]
    assert (friday["weeks"], friday["arrivals_per_s"]) == (0, pytest.approx(10_800 / 3 / 3600))
    assert (sunday["weeks"], sunday["arrivals_per_s"]) == (1, pytest.approx(2.0))


def test_without_a_full_hour_all_that_was_seen_stands_in(within_the_hour: Forecast) -> None:
    rows = [row for (queue, _), row in within_the_hour.items() if queue == "a minute"]
    assert {(row["weeks"], row["arrivals_per_s"], row["workers_needed"]) for row in rows} == {(0, 2.0, 1)}


def test_the_hour_under_way_and_the_first_one_in_part_do_not_count(within_the_hour: Forecast) -> None:
    at_noon, at_eight, at_ten = (within_the_hour["parts", clock(16, hour)] for hour in (12, 8, 10))
    # Of two noons one is under way, of two eight o'clocks one was seen in part; the other of each was empty.
    assert (at_noon["arrivals_per_s"], at_eight["arrivals_per_s"]) == (0.0, 0.0)
    assert at_ten["arrivals_per_s"] == pytest.approx(36 / 2 / 3600)


def test_a_queue_that_nobody_worked_on_has_arrivals_and_no_answer(within_the_hour: Forecast) -> None:
    row = within_the_hour["unworked", clock(22, 8)]
    assert (row["arrivals_per_s"], row["service_ms"], row["load_erlangs"]) == (1.0, None, None)
    assert (row["workers_needed"], row["wait_ms"]) == (None, None)


def test_service_is_of_the_last_week_once_a_hundred_messages_tell_of_it(on_the_hour: Forecast) -> None:
    assert on_the_hour["many", clock(30, 0)]["service_ms"] == 2.0
    assert on_the_hour["few", clock(30, 0)]["service_ms"] == pytest.approx(1_000_099 / 1099)


def test_a_queue_may_have_a_mean_wait_of_its_own(on_the_hour: Forecast) -> None:
    strict, lax = on_the_hour["strict", clock(30, 23)], on_the_hour["lax", clock(30, 23)]
    assert (strict["wait_objective_ms"], lax["wait_objective_ms"]) == (5.0, 60_000.0)
    assert strict["load_erlangs"] == lax["load_erlangs"] == pytest.approx(9.5)
    # 9.5 erlangs: ten hold the load; five milliseconds need more in reserve.
    assert lax["workers_needed"] == 10
    assert strict["workers_needed"] > 15
    assert strict["wait_ms"] <= 5.0 < lax["wait_ms"]


@pytest.mark.parametrize("queue", ["drawn", "drawn late"])
def test_a_month_agrees_with_a_plain_recomputation(
    on_the_hour: Forecast, drawn: list[dict[str, Any]], queue: str
) -> None:
    now = clock(30, 0)
    mine = [row for row in drawn if row["queue"] == queue]
    first = min(row["minute"] for row in mine)
    begin = first.replace(minute=0) + (HOUR if first.minute else 0 * HOUR)
    full = [begin + n * HOUR for n in range(31 * 24) if begin + (n + 1) * HOUR <= now]
    by_hour: dict[datetime, int] = defaultdict(int)
    for row in mine:
        by_hour[row["minute"].replace(minute=0)] += row["accepted"]

    def like(place: Callable[[datetime], object], hour: datetime) -> tuple[int, float]:
        same = [one for one in full if place(one) == place(hour)]
        return len(same), sum(by_hour[one] for one in same) / len(same) / 3600

    for n in range(168):
        row = on_the_hour[queue, now + n * HOUR]
        weeks, per_s = like(lambda hour: (hour.weekday(), hour.hour), now + n * HOUR)
        assert (row["weeks"], row["arrivals_per_s"]) == (weeks, pytest.approx(per_s))
