"""What has been open longest, and why: one message for each reason there is, told in words."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from dragoman_spark.tables import OPEN, PEERS, QUEUES, STUCK
from dragoman_spark.transforms.life.stuck import stuck
from tests.spark.frames import BROKER, at, rows_of

NOW = at(10_000)
SERVED, PAUSED, NEVER, LEFT, UNNAMED = 1, 2, 3, 4, 9
FAILED, WORKERS_DIED, CONNECTION_ENDED = 2, 13, 16
EMQP = 3


def number(boot: int, count: int) -> int:
    return boot << 40 | count


def message(count: int, accepted_s: float, **said: Any) -> dict[str, Any]:
    defaults = {
        "broker_id": BROKER,
        "message_no": number(1, count),
        "queue_no": SERVED,
        "client_dialect": EMQP,
        "accepted_at": at(accepted_s),
        "last_at": at(accepted_s),
        "state": "waiting",
        "attempts": 0,
        "priority": 0,
        "accepted_lsn": count,
    }
    return defaults | said


def worker(count: int, *queues: str, left_s: float | None = None, **said: Any) -> dict[str, Any]:
    left_at = None if left_s is None else at(left_s)
    return {"broker_id": BROKER, "worker_no": number(1, count), "queues": list(queues), "left_at": left_at, **said}


MESSAGES = [
    message(1, 1, state="quarantined", attempts=3, last_reason=WORKERS_DIED),
    message(2, 2, due_at=at(20_000)),  # its client asked for it: open, but not old
    message(3, 3, due_at=at(10_060), attempts=2, last_reason=FAILED),  # was tried: old, whatever its next try
    message(4, 4, state="leased", attempts=2, worker_no=number(1, 17), last_at=at(9_988)),
    message(5, 5, state="leased", attempts=1, worker_no=number(1, 99), last_at=at(2_000)),  # a worker before the lake
    message(6, 6, queue_no=PAUSED),
    message(7, 7, queue_no=NEVER),
    message(8, 8, queue_no=LEFT),
    message(9, 9),
    message(10, 10),
    message(11, 11, priority=5),  # came later, but goes first
    message(12, 12, queue_no=UNNAMED),
    message(13, 1_000, broker_id=8, message_no=number(3, 1)),  # the same queue number at another broker
    message(14, 5, state="leased", attempts=1, worker_no=number(1, 18), last_at=at(9_000), queue_no=PAUSED),
]


@pytest.fixture(scope="module")
def rows(spark: SparkSession) -> list[Row]:
    peers = rows_of(
        spark,
        PEERS,
        worker(17, "served", "paused", identity="résumé", remote="127.0.0.1:1"),
        worker(18, "paused", remote="127.0.0.1:2"),
        worker(19, "left", left_s=100, reason=0),
        worker(20, "left", left_s=7_384, reason=CONNECTION_ENDED),  # the last to leave, not the last to be named
        worker(21, "left", "served", left_s=200, reason=0),
    )
    queues = rows_of(
        spark,
        QUEUES,
        *[
            {"broker_id": BROKER, "queue_no": no, "queue": name, "is_paused": name == "paused"}
            for no, name in ((SERVED, "served"), (PAUSED, "paused"), (NEVER, "never"), (LEFT, "left"))
        ],
        {"broker_id": 8, "queue_no": SERVED, "queue": "served", "is_paused": False},
    )
    frame = stuck(rows_of(spark, OPEN, *MESSAGES), peers, queues, NOW)
    assert frame.columns == STUCK.names
    return list(frame.collect())


@pytest.mark.parametrize(
    ("message", "why"),
    [
        ("1.1", "quarantined (workers_died) after 3 attempts"),
        ("1.2", "delayed until 2026-03-02 05:33:20 UTC"),
        ("1.3", "attempt 2 ended (failed); delayed until 2026-03-02 02:47:40 UTC"),
        ("1.4", "held by worker w1.17 (résumé) for 12 s, attempt 2"),
        ("1.5", "held by worker w1.99 for 2 h, attempt 1"),
        ("1.6", "the queue is paused"),
        ("1.7", "no worker ever served the queue"),
        ("1.8", "no worker serves the queue now: the last one left at 2026-03-02 02:03:04 UTC (connection_ended)"),
        ("1.9", "1 worker serves the queue: waits for its turn behind 1 other"),
        ("1.10", "1 worker serves the queue: waits for its turn behind 2 others"),
        ("1.11", "1 worker serves the queue: waits for its turn behind 0 others"),
        ("1.12", "no worker ever served the queue"),
        ("3.1", "no worker ever served the queue"),  # of this broker: the other's workers cannot reach it
        ("1.14", "held by worker w1.18 (127.0.0.1:2) for 16 min, attempt 1"),  # held comes before paused
    ],
)
def test_each_open_message_says_why(rows: list[Row], message: str, why: str) -> None:
    assert [row["why"] for row in rows if row["message"] == message] == [why]


def test_the_longest_open_comes_first_and_one_not_yet_due_last(rows: list[Row]) -> None:
    assert [row["message"] for row in rows][:4] == ["1.1", "1.3", "1.4", "1.5"]
    assert [row["message"] for row in rows][-2:] == ["3.1", "1.2"]
    ages = [row["age_ms"] for row in rows]
    assert ages == sorted(ages, reverse=True)


def test_age_counts_from_due_where_it_was_never_tried_and_from_accepted_where_it_was(rows: list[Row]) -> None:
    age_ms = {row["message"]: row["age_ms"] for row in rows}
    assert (age_ms["1.2"], age_ms["1.3"], age_ms["1.9"]) == (0.0, 9_997_000.0, 9_991_000.0)


def test_a_queue_without_a_name_and_a_dialect_are_described_in_words(rows: list[Row]) -> None:
    row = next(row for row in rows if row["message"] == "1.12")
    assert (row["queue"], row["client_dialect"], row["state"]) == ("#9", "emqp", "waiting")


def test_only_as_many_as_asked_for_are_listed_and_they_count_all_others(spark: SparkSession) -> None:
    peers = rows_of(spark, PEERS, worker(17, "served"), worker(18, "served"))
    queues = rows_of(spark, QUEUES, {"broker_id": BROKER, "queue_no": SERVED, "queue": "served", "is_paused": False})
    urgent = [message(100 + n, 5_000, priority=9) for n in range(30)]
    delayed = [message(200 + n, 5_000, priority=9, due_at=at(20_000)) for n in range(5)]  # not in the line yet
    waiting = rows_of(spark, OPEN, *[message(n, n) for n in range(1, 21)], *urgent, *delayed)
    found = [(row["message"], row["why"]) for row in stuck(waiting, peers, queues, NOW, limit=2).collect()]
    assert found == [
        ("1.1", "2 workers serve the queue: waits for its turn behind 30 others"),
        ("1.2", "2 workers serve the queue: waits for its turn behind 31 others"),
    ]


def test_nothing_open_is_nothing_stuck(spark: SparkSession) -> None:
    empty = stuck(rows_of(spark, OPEN), rows_of(spark, PEERS), rows_of(spark, QUEUES), NOW)
    assert empty.collect() == []
