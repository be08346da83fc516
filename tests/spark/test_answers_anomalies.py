"""Anomalies: hours far from what such hours are, against medians taken in plain Python.

Queues know nothing of each other: each is a scene of its own, and one run of Spark plays all that share a now.
"""

from __future__ import annotations

import random
from datetime import datetime
from statistics import median
from typing import Any

import pytest
from pyspark.sql import SparkSession

from dragoman_spark.tables import ANOMALIES, THROUGHPUT
from dragoman_spark.transforms.forecast.anomalies import anomalies
from tests.spark.frames import at, rows_of

COUNTS = ("accepted", "rejected", "expired", "quarantined", "waited")
SEED = 21
DAYS, WEEKS = 6 * 24, 13 * 168
Rows = list[dict[str, Any]]
# Of one queue, by metric and hour; hours are counted from midnight of a Monday.
Found = dict[tuple[str, int], dict[str, Any]]


def hour(number: int, **said: Any) -> dict[str, Any]:
    """An hour's counts, in its 17th minute."""
    zeros = dict.fromkeys(COUNTS, 0) | {"wait_ms": 0.0}
    return {"minute": at(number * 3600 + 17 * 60), "client_dialect": "emqp", **zeros, **said}


def begun(number: int = 0) -> dict[str, Any]:
    """A first minute on the hour: the queue's history begins with a full one."""
    return hour(number) | {"minute": at(number * 3600)}


def listed(spark: SparkSession, now: datetime, scenes: dict[str, Rows]) -> dict[str, Found]:
    rows = [row | {"queue": queue} for queue, scene in scenes.items() for row in scene]
    frame = anomalies(rows_of(spark, THROUGHPUT, *rows), now)
    assert frame.columns == ANOMALIES.names
    found: dict[str, Found] = {queue: {} for queue in scenes}
    for row in frame.selectExpr("*", f"(unix_seconds(hour) - {int(at(0).timestamp())}) div 3600 as number").collect():
        found[row["queue"]][row["metric"], row["number"]] = row.asDict()
    return found


def drawn(begin: int, end: int) -> Rows:
    """A rhythm of days with noise, silent hours, bursts, and failures."""
    print("seed", SEED)
    chance = random.Random(SEED)
    rows = []
    for n in range(begin, end):
        busy = 1 + n % 24
        if chance.random() < 0.8:
            waited = chance.randrange(3)
            rows.append(
                hour(
                    n,
                    accepted=chance.randrange(busy * 5) if chance.random() < 0.97 else busy * 40,
                    rejected=chance.choice([0, 0, 1, 9]),
                    waited=waited,
                    wait_ms=waited * chance.expovariate(1 / 50),
                )
            )
    return rows


usual_waits = [hour(n, accepted=10, waited=10, wait_ms=1000.0) for n in range(9, DAYS, 24)]
drawn_days, drawn_weeks = drawn(WEEKS - 9 * 24, WEEKS), drawn(WEEKS - 37 * 24, WEEKS)
# Every Sunday morning has ten times as many as other mornings.
sundays = [hour(n * 24 + 9, accepted=1000 if n % 7 == 6 else 100) for n in range(13 * 7)]


@pytest.fixture(scope="module")
def of_days(spark: SparkSession) -> dict[str, Found]:
    """Six days, and half an hour of the seventh."""
    scenes = {
        "blip": [begun(), *[hour(n, accepted=100 if n != 50 else 160) for n in range(DAYS)]],
        # Two mornings of six: each is held against five, of which one is wild.
        "wild": [begun(), *[hour(n * 24 + 9, accepted={1: 1000, 3: 2000}.get(n, 16)) for n in range(6)]],
        "quiet": [begun(), hour(9, accepted=1), hour(33, rejected=1), hour(57, accepted=3), hour(80, quarantined=2)],
        "three": [begun(), hour(9, rejected=1, expired=1, quarantined=1)],
        "four": [begun(), hour(34, rejected=2, expired=1, quarantined=1)],
        "silent": [begun(), *[hour(n, accepted=400) for n in range(DAYS) if n != 60]],
        "under way": [begun(), *[hour(n, accepted=400) for n in range(DAYS)], hour(DAYS, accepted=3)],
        # The mean wait of that hour: (1000 + 200) / 12 = 100, as ever; (1000 + 800) / 12 = 150.
        "waits": [begun(), *usual_waits, hour(33, waited=2, wait_ms=200.0)],
        "waits more": [begun(), *usual_waits, hour(33, waited=2, wait_ms=800.0)],
        "too short": [begun(DAYS - 95), *[hour(n, accepted=100 if n != 99 else 900) for n in range(DAYS - 95, DAYS)]],
        "long enough": [begun(DAYS - 96), *[hour(n, accepted=100 if n != 99 else 900) for n in range(DAYS - 96, DAYS)]],
    }
    return listed(spark, at(DAYS * 3600 + 1800), scenes)


@pytest.fixture(scope="module")
def of_weeks(spark: SparkSession) -> dict[str, Found]:
    """Thirteen weeks."""
    old = [hour(n * 24 + 9, accepted=9999 if n in (3, 10) else 100) for n in range(13 * 7)]
    scenes = {
        "old": [begun(), *old],
        "28 days": [begun(WEEKS - 28 * 24), *sundays[-28:]],
        "13 days": [begun(WEEKS - 13 * 24), *sundays[-13:]],
        "9 drawn days": [begun(WEEKS - 9 * 24), *drawn_days],
        "37 drawn days": [begun(WEEKS - 37 * 24), *drawn_weeks],
    }
    return listed(spark, at(WEEKS * 3600 + 1), scenes)


def test_one_blip_of_a_constant_series_is_found_and_nothing_else(of_days: dict[str, Found]) -> None:
    assert list(of_days["blip"]) == [("accepted", 50)]
    blip = of_days["blip"]["accepted", 50]
    assert (blip["value"], blip["expected"], blip["spread"], blip["score"]) == (160.0, 100.0, 10.0, 6.0)
    assert blip["season"] == "hour_of_day"


def test_a_wild_hour_does_not_count_towards_what_is_expected_of_it(of_days: dict[str, Found]) -> None:
    assert {number: row["expected"] for (_, number), row in of_days["wild"].items()} == {33: 16.0, 81: 16.0}


def test_one_message_more_or_less_is_no_anomaly(of_days: dict[str, Found]) -> None:
    assert of_days["quiet"] == {}


def test_failures_where_there_were_none_are_found_from_four_on(of_days: dict[str, Found]) -> None:
    assert of_days["three"] == {}
    assert {key: row["score"] for key, row in of_days["four"].items()} == {("failed", 34): 4.0}


def test_an_hour_in_which_nothing_came_is_found_although_it_has_no_row(of_days: dict[str, Found]) -> None:
    found = {key: (row["value"], row["score"]) for key, row in of_days["silent"].items()}
    assert found == {("accepted", 60): (0.0, -20.0)}


def test_the_hour_under_way_is_not_judged(of_days: dict[str, Found]) -> None:
    assert of_days["under way"] == {}


def test_a_long_mean_wait_is_found_and_hours_without_messages_have_none(of_days: dict[str, Found]) -> None:
    assert of_days["waits"] == {}
    assert list(of_days["waits more"]) == [("wait_ms", 33)]
    wait = of_days["waits more"]["wait_ms", 33]
    assert (wait["value"], wait["expected"], wait["spread"]) == (150.0, 100.0, 10.0)


def test_less_than_four_days_are_too_little_to_judge_by(of_days: dict[str, Found]) -> None:
    assert of_days["too short"] == {}
    assert list(of_days["long enough"]) == [("accepted", 99)]


def test_from_four_weeks_on_a_sunday_is_held_against_sundays(of_weeks: dict[str, Found]) -> None:
    assert of_weeks["28 days"] == {}
    # Two Sundays in thirteen days, held against the other mornings: both stand out.
    found = {(number // 24 % 7, row["season"]) for (_, number), row in of_weeks["13 days"].items()}
    assert found == {(6, "hour_of_day")}


def test_what_happened_more_than_twelve_weeks_ago_is_of_another_time(of_weeks: dict[str, Found]) -> None:
    assert list(of_weeks["old"]) == [("accepted", 10 * 24 + 9)]


@pytest.mark.parametrize(
    ("scene", "rows", "begin", "season_hours"),
    [
        ("9 drawn days", drawn_days, WEEKS - 9 * 24, 24),
        ("37 drawn days", drawn_weeks, WEEKS - 37 * 24, 168),
    ],
)
def test_drawn_series_agree_with_a_plain_recomputation(
    of_weeks: dict[str, Found], scene: str, rows: Rows, begin: int, season_hours: int
) -> None:
    by_hour = {int((row["minute"] - at(0)).total_seconds() // 3600): row for row in rows}
    nothing = hour(0)
    hours = {n: by_hour.get(n, nothing) for n in range(begin, WEEKS)}
    series: dict[str, dict[int, float]] = {
        "accepted": {n: row["accepted"] for n, row in hours.items()},
        "failed": {n: row["rejected"] for n, row in hours.items()},
        "wait_ms": {n: row["wait_ms"] / row["waited"] for n, row in hours.items() if row["waited"]},
    }
    expected: dict[tuple[str, int], float] = {}
    for metric, values in series.items():
        for n, value in values.items():
            others = [v for m, v in values.items() if m != n and m % season_hours == n % season_hours]
            if len(others) < 3:
                continue
            middle = median(others)
            spread = 1.4826 * median(abs(v - middle) for v in others)
            if metric == "wait_ms":
                spread = max(spread, middle / 10, 10)
            else:
                spread = max(spread, middle**0.5, middle / 20, 1)
            if abs(value - middle) / spread >= 4:
                expected[metric, n] = (value - middle) / spread
    assert {metric for metric, _ in expected} == {"accepted", "failed", "wait_ms"}
    assert {key: row["score"] for key, row in of_weeks[scene].items()} == pytest.approx(expected)
