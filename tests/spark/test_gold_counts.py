"""Throughput, funnel and crossings of a few facts by hand."""

from __future__ import annotations

from datetime import date
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.tables import CROSSINGS, MESSAGES, QUEUES, THROUGHPUT
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.volume.counts import counts
from dragoman_spark.transforms.volume.crossings import crossings
from dragoman_spark.transforms.volume.funnel import funnel
from dragoman_spark.transforms.volume.throughput import throughput
from tests.spark.frames import BROKER, DAY, at, facts, rows_of

EMQP, EBUS, RQ = 3, 4, 5
DONE, REJECTED, EXPIRED = 3, 4, 5
MAIL = {"queue_no": 1, "client_dialect": EMQP}


def mail(spark: SparkSession) -> DataFrame:
    return rows_of(spark, QUEUES, {"broker_id": BROKER, "queue_no": 1, "queue": "mail"})


def only(frame: DataFrame) -> dict[str, Any]:
    rows = frame.collect()
    assert len(rows) == 1, rows
    row: dict[str, Any] = rows[0].asDict()
    return row


def counts_of(spark: SparkSession, *given: dict[str, Any]) -> DataFrame:
    return counts(facts(spark, *given))


def test_a_queue_without_a_name_is_shown_by_its_number(spark: SparkSession) -> None:
    other_broker = BROKER + 1  # its queue 1 is not this broker's
    frame = spark.createDataFrame([(BROKER, 1), (BROKER, 3), (other_broker, 1)], "broker_id long, queue_no int")
    assertDataFrameEqual(
        named(frame, mail(spark)).select("broker_id", "queue_no", "queue"),
        [
            Row(broker_id=BROKER, queue_no=1, queue="mail"),
            Row(broker_id=BROKER, queue_no=3, queue="#3"),
            Row(broker_id=other_broker, queue_no=1, queue="#1"),
        ],
    )


def test_a_minute_holds_what_happened_in_it_though_the_message_began_in_an_earlier_one(spark: SparkSession) -> None:
    made = throughput(
        counts_of(
            spark,
            {"kind": "accepted", "at": at(59.999999), "message_no": 1, "body_size": 10, **MAIL},
            {"kind": "accepted", "at": at(60), "message_no": 2, "body_size": 5, **MAIL},
            {"kind": "leased", "at": at(60), "message_no": 1, "worker_no": 9, "attempt": 1},
            # A release says who had the message since when; that is no settled work.
            {"kind": "released", "at": at(61), "message_no": 1, "worker_no": 9, "leased_at": at(60), "reason": 2, **MAIL},
            {"kind": "closed", "at": at(70), "message_no": 1, "worker_no": 9, "outcome": DONE, "accepted_at": at(59.999999),
             "first_leased_at": at(60), "leased_at": at(62), "attempt": 2, "body_size": 10, "reply_size": 7, **MAIL},
            # It was due later than it was accepted: its wait begins then. It ended in nobody's hands: it waited, but was not worked on.
            {"kind": "closed", "at": at(75), "message_no": 2, "outcome": EXPIRED, "accepted_at": at(60), "due_at": at(64),
             "first_leased_at": at(65.5), "attempt": 1, "body_size": 5, **MAIL},
        ),
        mail(spark),
    )  # fmt: skip
    nothing = {column.name: 0.0 if column.type == "double" else 0 for column in THROUGHPUT.columns if not column.is_key}
    mails = {**nothing, "queue": "mail", "client_dialect": "emqp"}
    assertDataFrameEqual(
        made,
        rows_of(
            spark,
            THROUGHPUT,
            {**mails, "minute": at(0), "accepted": 1, "body_bytes": 10},
            {
                **mails, "minute": at(60), "accepted": 1, "done": 1, "expired": 1, "released": 1, "waited": 2, "wait_ms": 1500.001,
                "worked": 1, "work_ms": 8000.0, "body_bytes": 5, "reply_bytes": 7,
            },
        ),
        ignoreNullable=True, rtol=0, atol=0,
    )  # fmt: skip


def test_a_message_never_leased_takes_no_step_of_the_funnel_but_its_first_and_last(spark: SparkSession) -> None:
    made = funnel(
        counts_of(
            spark,
            {"kind": "accepted", "message_no": 1, **MAIL},
            {"kind": "closed", "message_no": 1, "outcome": EXPIRED, "accepted_at": at(1), "attempt": 0, **MAIL},
        ),
        mail(spark),
    )
    row = only(made)
    assert {name for name, value in row.items() if value == 1} == {"accepted", "expired"}
    assert {value for name, value in row.items() if name not in ("date", "queue", "client_dialect")} == {0, 1}


def test_attempts_count_as_retries_once_their_message_has_ended(spark: SparkSession) -> None:
    leased = {"first_leased_at": at(1), "accepted_at": at(0)}
    made = funnel(
        counts_of(
            spark,
            {"kind": "quarantined", "message_no": 1, "attempt": 3, "leased_at": at(1), **MAIL},
            {"kind": "requeued", "message_no": 1, **MAIL},
            {
                "kind": "released",
                "message_no": 2,
                "attempt": 5,
                "leased_at": at(1),
                **MAIL,
            },  # still open: not counted yet
            {"kind": "closed", "message_no": 1, "outcome": DONE, "attempt": 4, "delivered_at": at(2), **leased, **MAIL},
            {"kind": "closed", "message_no": 3, "outcome": REJECTED, "attempt": 1, **leased, **MAIL},
        ),
        mail(spark),
    )
    assert only(made) == {
        "date": DAY.date(), "queue": "mail", "client_dialect": "emqp", "accepted": 0, "leased": 2, "delivered": 1, "done": 1,
        "rejected": 1, "expired": 0, "cancelled": 0, "quarantined": 1, "requeued": 1, "retried": 1, "retries": 3,
    }  # fmt: skip


def test_queues_of_one_name_at_two_brokers_add_up(spark: SparkSession) -> None:
    names = [{"broker_id": BROKER, "queue_no": 1, "queue": "mail"}, {"broker_id": 8, "queue_no": 4, "queue": "mail"}]
    both = facts(
        spark,
        {"kind": "accepted", "at": at(1), "message_no": 1, "queue_no": 1, "client_dialect": RQ, "body_size": 1},
        {
            "kind": "accepted",
            "at": at(2),
            "broker_id": 8,
            "message_no": 1,
            "queue_no": 4,
            "client_dialect": RQ,
            "body_size": 2,
        },
    )
    row = only(THROUGHPUT.merged(throughput(counts(both), rows_of(spark, QUEUES, *names))))
    assert (row["queue"], row["accepted"], row["body_bytes"]) == ("mail", 2, 3)


def test_what_no_worker_settled_crosses_to_nobody(spark: SparkSession) -> None:
    day = date(2026, 3, 2)
    both = {"date": day, "client_dialect": EMQP, "body_size": 2}
    made = crossings(
        rows_of(
            spark,
            MESSAGES,
            {"message_no": 1, "worker_dialect": EBUS, "outcome": DONE, "wait_ms": 0.1, "work_ms": 1.0, "total_ms": 1.1, "reply_size": 3, **both},
            {"message_no": 2, "worker_dialect": EBUS, "outcome": REJECTED, "wait_ms": 0.2, "work_ms": 2.0, "total_ms": 2.2, **both},
            {"message_no": 3, "worker_dialect": None, "outcome": EXPIRED, "total_ms": 5.5, **both},
            {"message_no": 4, "worker_dialect": 77, "outcome": DONE, "total_ms": 1.0, **both},
        )
    )  # fmt: skip
    expected = [
        # 0.1 + 0.2 is 0.3 and not 0.30000000000000004: sums are of whole microseconds.
        (day, "emqp", "ebus", 2, 1, 0.3, 3.0, 3.3, 4, 3),
        (day, "emqp", None, 1, 0, 0.0, 0.0, 5.5, 2, 0),
        (day, "emqp", "unknown_77", 1, 1, 0.0, 0.0, 1.0, 2, 0),
    ]
    assert {tuple(row) for row in made.collect()} == set(expected)
    assert made.columns == CROSSINGS.names
