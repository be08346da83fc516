"""Every record there is, written by model/facts/records and read back by model/facts/decode."""

from __future__ import annotations

import pytest

from dragoman.model import enums
from dragoman.model.enums import FLAG_NAMES, STATE_NAMES, word
from dragoman.model.facts import layout, records
from dragoman.model.facts.decode import client_id_text, decode, decode_block
from dragoman.model.facts.record_filter import find_matches
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.model.peer import Peer


def a_message() -> Message:
    m = Message(enums.EMQP, b"mail", b"client-1", b"the body")
    m.number, m.queue_no, m.flags, m.priority = 77, 3, enums.REPLY_WANTED | enums.GUARANTEED, 5
    m.retries_left, m.timeout_ns, m.expires_ns, m.due_ns, m.schedule_no = 4, 11, 12, 13, 14
    m.address, m.dedupe, m.headers = b"\x01who", b"key", b"guarantee,priority:5"
    return m


def only(log: FactLog) -> dict[str, object]:
    [fact] = decode_block(log.take())
    return fact


def test_an_accepted_fact_comes_back_whole() -> None:
    log = FactLog()
    log.accepted(a_message())
    data = log.take()
    fact = decode(data, 0, True)
    assert fact == {
        "fact": "accepted",
        "message_no": 77,
        "dialect": "emqp",
        "flags": ["reply_wanted", "guaranteed"],
        "priority": 5,
        "queue_no": 3,
        "retries_left": 4,
        "timeout_ns": 11,
        "expires_ns": 12,
        "due_ns": 13,
        "schedule_no": 14,
        "client_id": "client-1",
        "address": "\x01who",
        "dedupe": "key",
        "headers": "guarantee,priority:5",
        "body_size": 8,
        "body": b"the body",
    }
    assert "body" not in decode(data, 0)


def test_the_moves_of_a_message_come_back_whole() -> None:
    m = a_message()
    m.attempt, m.accepted_ns, m.asked_due_ns = 1, 100, 90
    log = FactLog()
    log.leased(m, 9)
    m.attempt, m.first_leased_ns, m.leased_ns, m.delivered_ns = 2, 101, 102, 103
    log.released(m, 9, enums.RQ, 3, 500, enums.WORKER_LOST, True)
    log.closed(m, 9, enums.RQ, 20, STATE_NAMES.index("done"), enums.ANSWERED, 9)
    assert decode_block(log.take()) == [
        {"fact": "leased", "message_no": 77, "worker_no": 9, "attempt": 2},
        {
            "fact": "released",
            "message_no": 77,
            "worker_no": 9,
            "attempt": 2,
            "retries_left": 3,
            "due_ns": 500,
            "reason": "worker_lost",
            "is_death": True,
            "leased_ns": 102,
            "queue_no": 3,
            "dialect": "emqp",
            "worker_dialect": "rq",
        },
        {
            "fact": "closed",
            "message_no": 77,
            "worker_no": 9,
            "attempt": 2,
            "queue_no": 3,
            "accepted_ns": 100,
            "first_leased_ns": 101,
            "leased_ns": 102,
            "delivered_ns": 103,
            "body_size": 8,
            "reply_size": 20,
            "outcome": "done",
            "reason": "answered",
            "dialect": "emqp",
            "worker_dialect": "rq",
            "due_ns": 90,
        },
    ]


def closed_by(worker_no: int, holder_no: int) -> dict[str, object]:
    m = a_message()
    m.leased_ns = 102
    log = FactLog()
    log.closed(m, worker_no, enums.EMQP, 0, STATE_NAMES.index("done"), enums.ANSWERED_LATE, holder_no)
    return decode(log.take(), 0)


def test_a_message_closed_while_it_waited_ends_no_attempt() -> None:
    assert closed_by(9, 0)["leased_ns"] == 0
    assert "holder_no" not in closed_by(9, 0)


def test_a_holder_that_did_not_settle_its_message_is_named() -> None:
    assert closed_by(9, 8) == {**closed_by(9, 9), "holder_no": 8}
    assert closed_by(0, 8)["holder_no"] == 8


def test_an_attempt_that_ended_in_quarantine_tells_its_worker_and_its_beginning() -> None:
    m = a_message()
    m.attempt, m.leased_ns = 3, 102
    log = FactLog()
    log.quarantined(m, 9, enums.RQ, enums.WORKERS_DIED, 9)
    log.requeued(m, False)
    assert decode_block(log.take()) == [
        {
            "fact": "quarantined",
            "message_no": 77,
            "reason": "workers_died",
            "died_with": 9,
            "worker_no": 9,
            "attempt": 3,
            "leased_ns": 102,
            "queue_no": 3,
            "dialect": "emqp",
            "worker_dialect": "rq",
        },
        {"fact": "requeued", "message_no": 77, "queue_no": 3, "dialect": "emqp"},
    ]


def test_records_of_older_journals_are_read_as_far_as_they_go() -> None:
    m = a_message()
    log = FactLog()
    log.released(m, 9, enums.RQ, 3, 500, enums.WORKER_LOST, True)
    old = (39).to_bytes(4, "little") + log.take()[4:39]
    assert decode(old, 0)["is_death"] is True
    assert "leased_ns" not in decode(old, 0)
    log.closed(m, 9, enums.RQ, 20, STATE_NAMES.index("done"), enums.ANSWERED, 9)
    old = (73).to_bytes(4, "little") + log.take()[4:73]
    assert decode(old, 0)["worker_dialect"] == "rq"
    assert "due_ns" not in decode(old, 0)


@pytest.mark.parametrize(
    ("kind", "number", "small", "text", "fields"),
    [
        (layout.STARTED, 3, 0, b"0.1.0", {"boot_no": 3, "version": "0.1.0"}),
        (layout.QUEUE_NAMED, 2, 0, b"mail\xff", {"queue_no": 2, "queue": "mail\\xff"}),
        (
            layout.QUEUE_FORGOTTEN,
            2,
            enums.BY_OPERATOR,
            b"mail\xff",
            {"queue_no": 2, "queue": "mail\\xff", "reason": "by_operator"},
        ),
        (layout.WORKER_LEFT, 8, enums.HEARTBEAT_LOST, b"", {"worker_no": 8, "reason": "heartbeat_lost"}),
        (layout.DELIVERED, 77, 8, b"", {"message_no": 77, "worker_no": 8}),
        (
            layout.QUARANTINED,
            77,
            enums.WORKERS_DIED,
            b"8",
            {"message_no": 77, "reason": "workers_died", "died_with": 8},
        ),
        (layout.REQUEUED, 77, 0, b"", {"message_no": 77}),
        (layout.UNSCHEDULED, 5, enums.BY_OPERATOR, b"", {"schedule_no": 5, "reason": "by_operator"}),
        (
            layout.FIRED,
            5,
            1000,
            records.fired_text(77, 2000, 3),
            {"schedule_no": 5, "due_ns": 1000, "message_no": 77, "next_due_ns": 2000, "runs_left": 3},
        ),
        (layout.PAUSED, 2, 0, b"", {"queue_no": 2}),
        (layout.RESUMED, 2, 0, b"", {"queue_no": 2}),
        (layout.PUBLISHED, 12, 0, b"orders/", {"count": 12, "topic": "orders/"}),
        (layout.CLOCK_STEPPED, 60, 0, b"", {"delta_ns": -60}),
        (layout.CLOCK_STEPPED, 60, 1, b"", {"delta_ns": 60}),
        (layout.LATE, 8, enums.EMQP, b"client-1", {"worker_no": 8, "dialect": "emqp", "wire_id": "client-1"}),
        (layout.NOTED, 4, 0, b"EMQP_VERSION", {"count": 4, "code": "EMQP_VERSION"}),
    ],
)
def test_a_rarer_fact_comes_back_with_its_own_names(
    kind: int, number: int, small: int, text: bytes, fields: dict[str, object]
) -> None:
    log = FactLog()
    log.numbered(kind, number, small, text)
    assert only(log) == {"fact": layout.FACT_NAMES[kind], **fields}


def test_a_worker_that_joined_is_read_with_its_queues_even_with_tabs_in_their_names() -> None:
    peer = Peer(enums.EMQP, "emqp.worker")
    peer.identity, peer.remote = b"\x00id", "127.0.0.1:5"
    log = FactLog()
    log.numbered(layout.WORKER_JOINED, 8, enums.EMQP, records.worker_text(peer, [b"10 mail", b"-3 a\tb c", b"2 "]))
    fact = only(log)
    assert fact["queues"] == [[10, "mail"], [-3, "a\tb c"], [2, ""]]
    assert (fact["listener"], fact["remote"], fact["identity"]) == ("emqp.worker", "127.0.0.1:5", "\x00id")


def test_a_schedule_is_read_with_its_template() -> None:
    template = a_message()
    log = FactLog()
    text = records.schedule_text(template, 0, "*/5 * * * *", 7)
    log.numbered(layout.SCHEDULED, 5, 900, text)
    assert only(log) == {
        "fact": "scheduled",
        "schedule_no": 5,
        "next_due_ns": 900,
        "interval_ns": 0,
        "cron": "*/5 * * * *",
        "runs": 7,
        "queue_no": 3,
        "headers": "guarantee,priority:5",
        "body_size": 8,
    }


def test_storage_records_are_distinguished_from_facts() -> None:
    log = FactLog()
    log.accepted(a_message())
    accepted = log.take()
    carried = (len(accepted) + 13).to_bytes(4, "little") + b"\xc9" + (55).to_bytes(8, "little") + accepted
    checkpoint = (9).to_bytes(4, "little") + b"\xc8" + b"\x01\x02\x03\x04"
    found = decode_block(checkpoint + carried)
    assert found[0] == {"fact": "checkpoint", "size": 9}
    assert (found[1]["fact"], found[1]["accepted_ns"], found[1]["client_id"]) == ("carried", 55, "client-1")


def test_every_kind_of_fact_has_a_name_and_every_word_of_a_later_version_is_shown_as_unknown() -> None:
    kinds = [getattr(layout, name.upper()) for name in layout.FACT_NAMES[1:]]
    assert kinds == list(range(1, len(layout.FACT_NAMES)))
    assert word(enums.REASON_NAMES, 250) == "unknown_250"


def test_outcomes_and_flags_are_the_words_of_the_core() -> None:
    assert STATE_NAMES == STATE_NAMES
    bits = [enums.REPLY_WANTED, enums.HANDOVER_WANTED, enums.KEPT_WANTED, enums.GUARANTEED, enums.NO_HASTE]
    bits += [enums.KEEP_SAME, enums.EXPIRES_HELD, enums.FAILURE_FINAL]
    assert bits == [1 << bit for bit in range(len(FLAG_NAMES))]


def test_mentions_find_a_message_by_its_clients_id_and_then_by_its_number() -> None:
    m, other = a_message(), a_message()
    other.number, other.client_id = 78, b"client-2"
    log = FactLog()
    for each in (other, m):
        log.accepted(each)
        log.leased(each, 9)
    log.numbered(layout.PAUSED, 3, 0, b"")
    log.closed(m, 9, enums.EMQP, 0, 3, enums.ANSWERED, 9)
    data = log.take()
    numbers: set[int] = set()
    found: list[tuple[int, int]] = []
    find_matches(data, numbers, b"client-1", found)
    assert numbers == {77}
    assert [(decode(data, at)["fact"], ordinal) for at, ordinal in found] == [
        ("accepted", 2),
        ("leased", 3),
        ("closed", 5),
    ]
    found.clear()
    find_matches(data, set(), b"", found)
    assert found == []


def test_an_rq_sources_id_is_shown_as_the_number_it_is() -> None:
    assert client_id_text(enums.RQ, b"\x00\x00\x01\x02") == "258"
    assert client_id_text(enums.EMQP, b"\x00\x00\x01\x02") == "\x00\x00\x01\x02"
