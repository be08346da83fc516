"""Workers: how busy, by the union of what they held; and how they fared."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from dragoman_spark.tables import ATTEMPTS, PEERS, WORKERS
from dragoman_spark.transforms.workers import workers
from tests.spark.frames import BROKER, at, rows_of

RQ, DONE, REJECTED = 5, 3, 4
ANSWERED, FAILED, WORKER_LOST, ANSWERED_LATE, RETRIES_USED_UP = 1, 2, 4, 19, 7


def held(worker_no: int, begin: float, end: float, **more: Any) -> dict[str, Any]:
    """An attempt from one second to another; answered unless something else is said."""
    answered = {"outcome": DONE, "reason": ANSWERED, "is_death": False, "worker_dialect": RQ}
    return {
        "broker_id": BROKER,
        "worker_no": worker_no,
        "leased_at": at(begin),
        "ended_at": at(end),
        **answered,
        **more,
    }


def connected(worker_no: int, joined: float, left: float, **more: Any) -> dict[str, Any]:
    span = {"joined_at": at(joined), "left_at": at(left), "connected_ms": (left - joined) * 1000.0}
    return {"broker_id": BROKER, "worker_no": worker_no, "worker_dialect": RQ, **span, **more}


@pytest.fixture(scope="module")
def made(spark: SparkSession) -> dict[int, Row]:
    attempts = [
        # 1: one span within another, one that begins as another ends, a gap; busy from 10 to 30 and from 40 to 45.
        held(1, 10, 25), held(1, 12, 14), held(1, 25, 30), held(1, 40, 45), held(1, 20, 25),
        # 2: a span that outlives all that begin after it, so that the latest end is not the one before.
        held(2, 0, 50), held(2, 1, 2), held(2, 3, 4), held(2, 49, 60),
        # 3: its attempt ended after it had gone, as when the broker finds out late; only what lies within the connection counts.
        held(3, 5, 20, outcome=None, reason=WORKER_LOST, is_death=True),
        # 5: joined before the lake begins.
        held((2 << 40) + 5, 0, 1),
        # 6: five ways to end.
        held(6, 0, 1),
        held(6, 1, 2, outcome=None, reason=FAILED),
        held(6, 2, 3, outcome=REJECTED, reason=RETRIES_USED_UP),
        held(6, 3, 4, outcome=DONE, reason=ANSWERED_LATE, worker_dialect=None),  # another one's answer
        held(6, 4, 5, outcome=None, reason=WORKER_LOST, is_death=True),
        held(6, 4, 4.5, outcome=None, reason=RETRIES_USED_UP, is_death=True),
        # 7: connected for no time at all.
        held(7, 0, 0),
    ]  # fmt: skip
    peers = [
        connected(1, 0, 100, identity="crunch", remote="127.0.0.1:5", reason=16),
        connected(2, 0, 60, identity="", remote="127.0.0.1:6"),
        connected(3, 0, 10),
        connected(4, 0, 10),
        connected(6, 0, 10, left_at=None),
        connected(7, 0, 0),
    ]
    frame = workers(rows_of(spark, ATTEMPTS, *attempts), rows_of(spark, PEERS, *peers))
    assert frame.columns == WORKERS.names
    return {row.worker_no: row for row in frame.collect()}


def test_time_with_several_messages_in_hand_is_busy_once(made: dict[int, Row]) -> None:
    row = made[1]
    assert (row.connected_ms, row.busy_ms, row.idle_ms, row.utilisation) == (100_000, 25_000, 75_000, 0.25)
    assert row.held_mean == pytest.approx((15 + 2 + 5 + 5 + 5) / 100)
    assert (row.attempts, row.done, row.work_ms_mean) == (5, 5, 6_400)


def test_a_long_span_covers_all_that_begin_and_end_within_it(made: dict[int, Row]) -> None:
    assert (made[2].busy_ms, made[2].utilisation, made[2].idle_ms) == (60_000, 1.0, 0)


def test_only_what_was_held_while_connected_is_busy_time(made: dict[int, Row]) -> None:
    row = made[3]
    assert (row.busy_ms, row.utilisation, row.held_mean, row.work_ms_mean) == (5_000, 0.5, 0.5, 15_000)
    assert (row.attempts, row.done, row.failed, row.deaths) == (1, 0, 0, 1)


def test_a_worker_that_never_had_a_message_was_idle(made: dict[int, Row]) -> None:
    row = made[4]
    assert (row.busy_ms, row.idle_ms, row.utilisation, row.held_mean) == (0, 10_000, 0, 0)
    assert (row.attempts, row.done, row.failed, row.deaths, row.work_ms_mean) == (0, 0, 0, 0, None)


def test_a_worker_that_joined_before_the_lake_begins_is_not_left_out(made: dict[int, Row]) -> None:
    row = made[(2 << 40) + 5]
    assert (row.worker, row.worker_dialect, row.attempts, row.busy_ms) == ("w2.5", "rq", 1, 1_000)
    assert (row.joined_at, row.connected_ms, row.idle_ms, row.utilisation, row.held_mean) == (None,) * 5


def test_anothers_answer_is_not_this_ones_and_a_death_is_not_a_failure(made: dict[int, Row]) -> None:
    row = made[6]
    assert (row.attempts, row.done, row.failed, row.deaths, row.left_at) == (6, 1, 2, 2, None)


def test_a_worker_is_named_by_its_identity_else_by_its_address(made: dict[int, Row]) -> None:
    assert (made[1].worker, made[2].worker, made[3].worker) == ("crunch", "127.0.0.1:6", "w0.3")
    assert (made[1].left_because, made[1].worker_dialect) == ("connection_ended", "rq")


def test_a_connection_of_no_time_has_no_utilisation(made: dict[int, Row]) -> None:
    assert (made[7].utilisation, made[7].held_mean, made[7].attempts) == (None, None, 1)
