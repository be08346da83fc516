"""Settled messages and ended attempts, each from the one fact that ends it."""

from __future__ import annotations

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.tables import ATTEMPTS, MESSAGES
from dragoman_spark.transforms.life.attempts import attempts
from dragoman_spark.transforms.life.messages import messages
from tests.spark.frames import BROKER, DAY, at, facts, rows_of
from tests.spark.life_facts import by_number, released
from tests.spark.lives_by_chance import KIND, OUTCOME, REASON

DONE, EXPIRED, CANCELLED = OUTCOME["done"], OUTCOME["expired"], OUTCOME["cancelled"]
PLAIN, DELAYED, NEVER_HAD, CANCELLED_EARLY, AFTER_AN_ATTEMPT, LATE = 1, 2, 3, 4, 5, 6

ANSWERED = {
    "kind": "closed", "at": at(5), "message_no": PLAIN, "worker_no": 50, "queue_no": 3, "attempt": 1, "client_dialect": 1,
    "worker_dialect": 5, "outcome": DONE, "reason": REASON["answered"], "accepted_at": at(1), "first_leased_at": at(2),
    "leased_at": at(2), "delivered_at": at(2.5), "body_size": 10, "reply_size": 20,
}  # fmt: skip
NOBODY = {"worker_no": None, "worker_dialect": None, "leased_at": None, "first_leased_at": None, "delivered_at": None}
ENDED_LATE = {
    **ANSWERED, "message_no": LATE, "attempt": 2, "worker_no": 50, "holder_no": 51, "leased_at": at(4), "delivered_at": None,
    "reason": REASON["answered_late"],
}  # fmt: skip


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[int, Row]:
    told = facts(
        spark,
        {**ANSWERED, "message_no": DELAYED, "due_at": at(1.75)},
        {**ANSWERED, **NOBODY, "message_no": NEVER_HAD, "attempt": 0, "outcome": EXPIRED},
        {**ANSWERED, **NOBODY, "message_no": CANCELLED_EARLY, "attempt": 0, "outcome": CANCELLED, "due_at": at(3600)},
        {**ANSWERED, **NOBODY, "message_no": AFTER_AN_ATTEMPT, "first_leased_at": at(2), "outcome": EXPIRED},
        ENDED_LATE,
        {"kind": "accepted", "message_no": 99},
    )
    return by_number(messages(told))


def test_a_message_is_the_row_its_closing_fact_makes(spark: SparkSession) -> None:
    expected = {name: value for name, value in ANSWERED.items() if name in MESSAGES.names}
    expected |= {"broker_id": BROKER, "lsn": 1, "attempts": 1, "closed_at": at(5), "date": DAY.date()}
    expected |= {"wait_ms": 1000.0, "work_ms": 3000.0, "total_ms": 4000.0}
    assertDataFrameEqual(messages(facts(spark, ANSWERED)), rows_of(spark, MESSAGES, expected))


def test_only_closing_facts_make_messages(found: dict[int, Row]) -> None:
    assert set(found) == {DELAYED, NEVER_HAD, CANCELLED_EARLY, AFTER_AN_ATTEMPT, LATE}


def test_a_delayed_message_waits_from_when_it_is_due(found: dict[int, Row]) -> None:
    assert (found[DELAYED].wait_ms, found[DELAYED].total_ms) == (250.0, 3250.0)


def test_a_message_nobody_had_has_no_wait_and_no_work(found: dict[int, Row]) -> None:
    row = found[NEVER_HAD]
    assert (row.wait_ms, row.work_ms, row.total_ms) == (None, None, 4000.0)


def test_a_message_cancelled_before_it_was_due_took_no_time_rather_than_less(found: dict[int, Row]) -> None:
    assert found[CANCELLED_EARLY].total_ms == 0.0


def test_a_message_closed_while_it_waited_after_an_attempt_has_a_wait_and_no_work(found: dict[int, Row]) -> None:
    row = found[AFTER_AN_ATTEMPT]
    assert (row.attempts, row.wait_ms, row.work_ms) == (1, 1000.0, None)


def test_a_late_answer_settles_the_message_for_its_worker(found: dict[int, Row]) -> None:
    assert (found[LATE].worker_no, found[LATE].work_ms) == (50, 1000.0)


@pytest.fixture(scope="module")
def ended(spark: SparkSession) -> dict[int, Row]:
    told = facts(
        spark,
        {**released(1, attempt=3), "at": at(6.5), "leased_at": at(6), "is_death": True, "worker_dialect": 4},
        {**released(2, reason=REASON["workers_died"]), "kind": "quarantined"},
        {**released(3, reason=REASON["retries_used_up"]), "kind": "quarantined"},
        {**released(4, reason=REASON["broker_started"]), "is_death": False},
        {**ANSWERED, **NOBODY, "message_no": 5, "first_leased_at": at(2), "outcome": EXPIRED},
        ENDED_LATE,
        {**ANSWERED, "message_no": 7, "worker_no": None, "worker_dialect": None, "holder_no": 52, "outcome": CANCELLED},
        {"kind": "leased", "message_no": 8, "worker_no": 50, "attempt": 1},
    )
    return by_number(attempts(told))


def test_an_attempt_is_the_row_its_ending_fact_makes(spark: SparkSession) -> None:
    expected = {name: value for name, value in ANSWERED.items() if name in ATTEMPTS.names}
    expected |= {"broker_id": BROKER, "lsn": 1, "ended_at": at(5), "held_ms": 3000.0, "date": DAY.date()}
    expected |= {"ended_by": KIND["closed"], "is_death": False}
    assertDataFrameEqual(attempts(facts(spark, ANSWERED)), rows_of(spark, ATTEMPTS, expected))


def test_a_release_ends_an_attempt_and_not_the_message(ended: dict[int, Row]) -> None:
    row = ended[1]
    assert (row.attempt, row.held_ms, row.is_death, row.outcome) == (3, 500.0, True, None)
    assert (row.ended_by, row.worker_dialect) == (KIND["released"], 4)


def test_the_death_that_sets_a_message_aside_is_a_death_too(ended: dict[int, Row]) -> None:
    assert ended[2].is_death is True
    assert ended[3].is_death is False, "it ran out of retries; nobody died"


def test_a_restart_ends_attempts_without_blaming_the_worker(ended: dict[int, Row]) -> None:
    assert (ended[4].reason, ended[4].is_death, ended[4].worker_dialect) == (REASON["broker_started"], False, None)


def test_a_message_closed_while_it_waited_ends_no_attempt(ended: dict[int, Row]) -> None:
    assert 5 not in ended


def test_an_attempt_belongs_to_its_holder_where_an_earlier_one_answered_late(ended: dict[int, Row]) -> None:
    row = ended[LATE]
    assert (row.worker_no, row.attempt, row.worker_dialect, row.held_ms) == (51, 2, None, 1000.0)


def test_a_cancelled_message_was_in_its_holders_hands(ended: dict[int, Row]) -> None:
    assert (ended[7].worker_no, ended[7].outcome, ended[7].worker_dialect) == (52, CANCELLED, None)


def test_a_lease_without_its_end_is_no_attempt_yet(ended: dict[int, Row]) -> None:
    assert 8 not in ended


def test_neither_question_moves_a_row(spark: SparkSession) -> None:
    told = facts(spark, ANSWERED)
    for answer in (messages(told), attempts(told)):
        plan = spark_plan(answer)
        assert "Exchange" not in plan
        assert "Python" not in plan


def spark_plan(frame: object) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[attr-defined]
