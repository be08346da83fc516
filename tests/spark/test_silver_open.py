"""What is not settled yet: one frame of facts, one message per case, so that Spark runs once for them all."""

from __future__ import annotations

import pytest
from pyspark.sql import Row, SparkSession

from dragoman_spark.transforms.life.lives import lives
from dragoman_spark.transforms.life.open_messages import open_messages
from tests.spark.frames import at, facts
from tests.spark.life_facts import accepted, by_number, closed, leased, nothing, plain, quarantined, released
from tests.spark.lives_by_chance import REASON

PLAIN = 100
STARTED = REASON["broker_started"]


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[int, Row]:
    told = facts(
        spark,
        *plain(PLAIN),
        accepted(1, due_at=at(60), expires_at=at(90)),
        *[accepted(2), leased(2, worker_no=51)],
        *[accepted(3), leased(3), released(3, due_at=at(70)), leased(3, 2, worker_no=52), released(3, 2, 3)],
        *[accepted(4), leased(4), quarantined(4)],
        *[accepted(5), leased(5), quarantined(5), {"kind": "requeued", "message_no": 5}],
        *[
            accepted(6, due_at=at(5)),
            leased(6),
            {"kind": "started", "count": 2},
            released(6, reason=STARTED, due_at=at(5)),
        ],
        *[accepted(7), leased(7), {"kind": "delivered", "message_no": 7, "worker_no": 50}],
        *[accepted(8), leased(8), released(8), closed(8, attempt=1, leased_at=None, outcome=5, reason=8)],
        *[accepted(9), leased(9), quarantined(9), closed(9, attempt=1, leased_at=None, outcome=6, reason=20)],
        *[accepted(11), leased(11), released(11, due_at=at(70)), {"kind": "requeued", "message_no": 11}],
        {"kind": "fired", "message_no": 10, "schedule_no": 9},
    )
    return by_number(open_messages(lives(nothing(spark), told)))


def test_a_settled_message_is_not_open(found: dict[int, Row]) -> None:
    assert PLAIN not in found


def test_a_message_closed_while_it_waited_after_an_attempt_is_not_open(found: dict[int, Row]) -> None:
    assert 8 not in found


def test_a_message_dropped_from_quarantine_is_not_open(found: dict[int, Row]) -> None:
    assert 9 not in found


def test_what_a_schedule_fired_is_open_only_once_it_is_accepted(found: dict[int, Row]) -> None:
    assert 10 not in found


def test_a_message_nobody_has_had_waits_with_all_its_client_asked_for(found: dict[int, Row]) -> None:
    row = found[1]
    assert (row.state, row.attempts, row.worker_no, row.last_reason) == ("waiting", 0, None, None)
    assert (row.queue_no, row.client_dialect, row.priority, row.body_size) == (3, 1, 4, 10)
    assert (row.accepted_lsn, row.last_lsn) == (4, 4)
    assert row.due_at < row.expires_at


def test_a_message_in_hand_is_leased_by_its_worker(found: dict[int, Row]) -> None:
    assert (found[2].state, found[2].attempts, found[2].worker_no) == ("leased", 1, 51)


def test_a_released_message_waits_and_its_last_release_says_why_and_until_when(found: dict[int, Row]) -> None:
    row = found[3]
    assert (row.state, row.attempts, row.worker_no, row.last_reason) == ("waiting", 2, 52, 3)
    assert row.due_at is None, "the second release let it go at once"


def test_a_message_set_aside_is_quarantined(found: dict[int, Row]) -> None:
    assert (found[4].state, found[4].last_reason) == ("quarantined", REASON["workers_died"])


def test_a_message_requeued_from_quarantine_waits(found: dict[int, Row]) -> None:
    assert (found[5].state, found[5].attempts) == ("waiting", 1)


def test_a_message_requeued_out_of_its_backoff_is_due_at_once(found: dict[int, Row]) -> None:
    assert (found[11].state, found[11].attempts, found[11].due_at) == ("waiting", 1, None)


def test_a_restart_takes_a_message_out_of_hands_that_are_gone(found: dict[int, Row]) -> None:
    row = found[6]
    assert (row.state, row.last_reason, row.worker_no) == ("waiting", STARTED, 50)
    assert row.due_at is not None, "a restart does not change when it is due"


def test_a_delivered_message_is_still_in_hand(found: dict[int, Row]) -> None:
    assert (found[7].state, found[7].attempts) == ("leased", 1)
