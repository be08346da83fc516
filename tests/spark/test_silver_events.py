"""What happened apart from messages: queues and workers."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row, SparkSession
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.tables import EVENTS, PEERS, QUEUES
from dragoman_spark.transforms.events import events
from dragoman_spark.transforms.peers import peers
from dragoman_spark.transforms.queues import queues
from tests.spark.frames import BROKER, at, facts, rows_of
from tests.spark.life_facts import plain
from tests.spark.lives_by_chance import KIND, REASON

NOW = at(100)


def test_events_are_all_facts_outside_the_lives_of_messages(spark: SparkSession) -> None:
    told = facts(
        spark,
        {"kind": "started", "count": 1, "text": "1.0"},
        *plain(1),
        {"kind": "fired", "schedule_no": 4, "message_no": 2, "count": -1},
        {"kind": 77, "text": "of a later version"},
    )
    expected = [
        {"kind": KIND["started"], "lsn": 1, "at": at(1), "count": 1, "text": "1.0"},
        {"kind": KIND["fired"], "lsn": 5, "at": at(5), "schedule_no": 4, "message_no": 2, "count": -1},
        {"kind": 77, "lsn": 6, "at": at(6), "text": "of a later version"},
    ]
    assertDataFrameEqual(events(told), rows_of(spark, EVENTS, *[{"broker_id": BROKER, **row} for row in expected]))


def test_a_queue_has_its_first_name_and_its_last_switch(spark: SparkSession) -> None:
    told = facts(
        spark,
        {"kind": "queue_named", "queue_no": 1, "text": "mail"},
        {"kind": "queue_named", "queue_no": 2, "text": "images"},
        {"kind": "paused", "queue_no": 1},
        {"kind": "resumed", "queue_no": 1},
        {"kind": "paused", "queue_no": 2},
        {"kind": "started", "count": 2},
        {"kind": "queue_named", "queue_no": 2, "text": "images, named again"},
        {"kind": "paused", "queue_no": 3},
        {"kind": "queue_named", "queue_no": 1, "text": "another broker's", "broker_id": 8},
    )
    expected = [
        {"queue_no": 1, "queue": "mail", "named_at": at(1), "is_paused": False},
        {"queue_no": 2, "queue": "images", "named_at": at(2), "is_paused": True},
        {"queue_no": 3, "queue": "#3", "is_paused": True},
        {"queue_no": 1, "queue": "another broker's", "named_at": at(9), "is_paused": False, "broker_id": 8},
    ]
    assertDataFrameEqual(
        queues(events(told)), rows_of(spark, QUEUES, *[{"broker_id": BROKER, **row} for row in expected])
    )


def joined(worker_no: int, *served: str, identity: bytes = b"") -> dict[str, Any]:
    text = "\t".join(["main", "10.0.0.1:5", identity.hex(), *served])
    return {"kind": "worker_joined", "worker_no": worker_no, "worker_dialect": 3, "text": text}


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[int, Row]:
    told = facts(
        spark,
        joined(1, "0 mail", identity=b"worker-1"),
        joined(2, "-1 mail", "10 all the images", identity=b"\0\xff"),
        joined(1, "0 mail", "0 a\ttab", "2 images", identity=b"worker-1"),
        {"kind": "worker_left", "worker_no": 1, "reason": REASON["worker_left"]},
        joined(3, identity="Ümläut".encode()),
        {"kind": "started", "count": 2, "broker_id": 8},
        {"kind": "started", "count": 2},
        {"kind": "started", "count": 3},
        joined(4, identity=b"two\nlines"),
        {"kind": "worker_left", "worker_no": 5, "reason": REASON["worker_left"]},
        joined(6, "0 mail"),
    )
    return {row.worker_no: row for row in peers(events(told), NOW).collect()}


def test_a_workers_span_is_one_row_with_all_its_columns(spark: SparkSession) -> None:
    told = facts(spark, joined(1, "0 mail", identity=b"w"), {"kind": "worker_left", "worker_no": 1, "reason": 5})
    span = {"joined_at": at(1), "left_at": at(2), "reason": 5, "connected_ms": 1000.0, "queues": ["mail"]}
    side = {"worker_dialect": 3, "listener": "main", "remote": "10.0.0.1:5", "identity": "w"}
    assertDataFrameEqual(
        peers(events(told), NOW), rows_of(spark, PEERS, {"broker_id": BROKER, "worker_no": 1, **span, **side})
    )


def test_a_worker_that_joins_twice_was_there_from_the_first_time_on(found: dict[int, Row]) -> None:
    row = found[1]
    assert (row.connected_ms, row.reason) == (3000.0, REASON["worker_left"])
    assert row.queues == ["mail", "a\ttab", "images"], "the queues are those of the last time"


def test_a_worker_that_never_left_was_there_until_its_broker_started_anew(found: dict[int, Row]) -> None:
    assert (found[2].connected_ms, found[2].reason) == (5000.0, REASON["broker_started"])
    assert (found[3].connected_ms, found[3].reason) == (2000.0, REASON["broker_started"])


def test_a_worker_that_is_still_there_is_counted_up_to_now(found: dict[int, Row]) -> None:
    row = found[6]
    assert (row.left_at, row.reason, row.connected_ms) == (None, None, 89_000.0)


def test_identities_are_shown_as_text_where_they_are_text(found: dict[int, Row]) -> None:
    assert [found[number].identity for number in (1, 2, 3, 4, 6)] == [
        "worker-1", "00ff", "Ümläut", b"two\nlines".hex(), None
    ]  # fmt: skip


def test_names_with_spaces_keep_them_and_a_worker_may_serve_nothing(found: dict[int, Row]) -> None:
    assert found[2].queues == ["mail", "all the images"]
    assert found[3].queues == []


def test_a_worker_that_joined_before_the_lake_began_has_no_span(found: dict[int, Row]) -> None:
    assert 5 not in found
