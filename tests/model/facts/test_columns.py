"""Every kind of fact as a row of columns, against model/facts/decode's view of the same record, which shares no code with it."""

from __future__ import annotations

import struct
from hashlib import blake2b

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dragoman.model import enums
from dragoman.model.enums import FLAG_NAMES, STATE_NAMES
from dragoman.model.facts import layout
from dragoman.model.facts.columns import BODIES_FULL, BODIES_HASH, BODIES_NONE, NO_BYTE, NO_INT, NO_LONG, FactColumns
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.layout import FACT_NAMES
from dragoman.model.facts.records import FactLog, fired_text, schedule_text
from dragoman.model.message import Message

NOW_NS = 1_700_000_000_123_456_789
# Column → its struct code and what stands for "not said" there.
FIXED = {
    "lsn": ("q", None), "kind": ("B", None), "time_ns": ("q", None), "message_no": ("q", 0), "worker_no": ("q", 0),
    "holder_no": ("q", 0), "queue_no": ("i", 0), "schedule_no": ("q", 0), "attempt": ("i", NO_INT),
    "client_dialect": ("B", NO_BYTE), "worker_dialect": ("B", NO_BYTE), "outcome": ("B", NO_BYTE), "reason": ("B", NO_BYTE),
    "is_death": ("B", NO_BYTE), "retries_left": ("i", NO_INT), "priority": ("B", NO_BYTE), "flags": ("h", NO_INT),
    "timeout_ns": ("q", 0), "expires_ns": ("q", 0), "due_ns": ("q", 0), "accepted_ns": ("q", 0), "first_leased_ns": ("q", 0),
    "leased_ns": ("q", 0), "delivered_ns": ("q", 0), "body_size": ("i", NO_INT), "reply_size": ("i", NO_INT),
    "body_hash": ("q", NO_LONG), "count": ("q", NO_LONG),
}  # fmt: skip
VARYING = {"client_id": "client_id_size", "text": "text_size", "body": "body_bytes"}


def rows_of(columns: FactColumns) -> list[dict[str, object]]:
    """Each row without what it does not say."""
    rows: list[dict[str, object]] = [{} for _ in range(columns.rows)]
    for name, (code, absent) in FIXED.items():
        values = [value for (value,) in struct.iter_unpack(f"<{code}", getattr(columns, name).getvalue())]
        assert len(values) == columns.rows, name
        for row, value in zip(rows, values, strict=True):
            if value != absent:
                row[name] = value
    for name, sizes_name in VARYING.items():
        data, at = getattr(columns, name).getvalue(), 0
        sizes = [size for (size,) in struct.iter_unpack("<i", getattr(columns, sizes_name).getvalue())]
        assert len(sizes) == columns.rows, name
        for row, size in zip(rows, sizes, strict=True):
            if size >= 0:
                row[name] = data[at : at + size]
                at += size
        assert at == len(data), name
    return rows


def split(block: bytes, bodies: int = BODIES_NONE) -> list[dict[str, object]]:
    columns = FactColumns(bodies)
    columns.add(block, 100, NOW_NS)
    return rows_of(columns)


# decode's fields → columns, where the name is not the same. None: the lake leaves it out.
RENAMED = {
    "dialect": "client_dialect", "next_due_ns": "due_ns", "runs_left": "count", "delta_ns": "count", "boot_no": "count",
    "version": "text", "queue": "text", "topic": "text", "code": "text", "wire_id": "text", "cron": "text", "died_with": None,
    "headers": None, "address": None, "dedupe": None, "interval_ns": None, "runs": None, "body": None,
}  # fmt: skip
NUMBERED = {
    "client_dialect": enums.DIALECT_NAMES, "worker_dialect": enums.DIALECT_NAMES, "reason": enums.REASON_NAMES,
    "outcome": STATE_NAMES,
}  # fmt: skip
ZERO_SAYS_NOTHING = {name for name, (_, absent) in FIXED.items() if absent == 0}


def expected(fact: dict[str, object], lsn: int) -> dict[str, object]:
    """The row that a decoded fact should be."""
    kind = str(fact["fact"])
    row: dict[str, object] = {"lsn": lsn, "kind": FACT_NAMES.index(kind), "time_ns": NOW_NS}
    for field, value in fact.items():
        name = RENAMED.get(field, field)
        if name is None or field == "fact":
            continue
        if kind == "late" and field == "dialect":
            name = "worker_dialect"
        if name in NUMBERED:
            row[name] = NUMBERED[name].index(str(value)) if value != "" else None
        elif name == "flags":
            assert isinstance(value, list)
            row[name] = sum(1 << FLAG_NAMES.index(flag) for flag in value)
        elif name == "text" or name == "client_id":
            row[name] = str(value).encode() or None
        elif name == "is_death":
            row[name] = int(bool(value))
        else:
            row[name] = (
                None
                if (value == 0 and name in ZERO_SAYS_NOTHING) or (value == -1 and name == "retries_left")
                else value
            )
    if kind == "closed" and row["worker_no"] is None:
        row["worker_dialect"] = None
    if kind == "scheduled":
        del row["body_size"]  # the template's; no message was accepted
    if kind == "fired":
        row["due_ns"] = fact["due_ns"]
    return {name: value for name, value in row.items() if value is not None}


def a_message(dialect: int = enums.EMQP, client_id: bytes = b"client-1", body: bytes = b"the body") -> Message:
    m = Message(dialect, b"mail", client_id, body)
    m.number, m.queue_no, m.flags, m.priority = (1 << 40) + 77, 3, enums.REPLY_WANTED | enums.FAILURE_FINAL, 5
    m.retries_left, m.timeout_ns, m.expires_ns, m.due_ns, m.schedule_no = 4, 11_000, 12_000, 13_000, 14
    m.address, m.dedupe, m.headers = b"\x01who", b"key", b"guarantee,priority:5"
    m.attempt, m.accepted_ns, m.first_leased_ns, m.leased_ns, m.delivered_ns = 2, 100_000, 101_000, 102_000, 103_000
    m.asked_due_ns = 90_000
    return m


def every_fact() -> bytes:
    """One block with each kind at least once, storage in between, and each shape a kind may have."""
    log, m, plain = FactLog(), a_message(), Message(enums.SCALE0, b"q", b"", b"")
    plain.number, plain.queue_no, plain.retries_left = 78, 1, -1
    log.accepted(m)
    log.accepted(plain)
    log.carried(b"".join([(63).to_bytes(4, "little"), b"\x05", bytes(58)]), 5)
    m.attempt = 1  # the fact of the second attempt is written before it is applied
    log.leased(m, 9)
    m.attempt = 2
    log.released(m, 9, enums.RQ, 3, 500_000, enums.WORKER_LOST, True)
    log.released(m, 9, layout.NO_DIALECT, -1, 0, enums.BROKER_STARTED, False)
    log.closed(m, 9, enums.RQ, 20, STATE_NAMES.index("done"), enums.ANSWERED, 9)
    log.closed(m, 9, enums.RQ, 0, STATE_NAMES.index("done"), enums.ANSWERED_LATE, 10)
    log.closed(m, 0, 0, 0, STATE_NAMES.index("cancelled"), enums.BY_CLIENT, 10)
    log.closed(plain, 0, 0, 0, STATE_NAMES.index("expired"), enums.PAST_EXPIRY, 0)
    log.quarantined(m, 9, enums.EBUS, enums.WORKERS_DIED, 9)
    log.requeued(m, False)
    log.numbered(layout.STARTED, 3, 0, b"1.2.3")
    log.numbered(layout.QUEUE_NAMED, 3, 0, "pošta".encode())
    log.numbered(layout.QUEUE_FORGOTTEN, 3, enums.BY_OPERATOR, "pošta".encode())
    log.numbered(layout.WORKER_LEFT, 9, enums.HEARTBEAT_LOST, b"")
    log.numbered(layout.DELIVERED, m.number, 9, b"")
    log.numbered(layout.SCHEDULED, 14, 600_000, schedule_text(m, 1000, "*/5 * * * *", -1))
    log.numbered(layout.SCHEDULED, 15, 600_000, schedule_text(plain, 1000, "", 3))
    log.numbered(layout.UNSCHEDULED, 14, enums.BY_OPERATOR, b"")
    log.numbered(layout.FIRED, 14, 600_000, fired_text(m.number, 700_000, 0))
    log.numbered(layout.FIRED, 14, 700_000, fired_text(0, 800_000, -1))
    log.numbered(layout.PAUSED, 3, 0, b"")
    log.numbered(layout.RESUMED, 3, 0, b"")
    log.numbered(layout.PUBLISHED, 12, 0, b"news")
    log.numbered(layout.PUBLISHED, 1, 0, b"")
    log.numbered(layout.CLOCK_STEPPED, 5_000, 1, b"")
    log.numbered(layout.CLOCK_STEPPED, 5_000, 0, b"")
    log.numbered(layout.LATE, 9, enums.PINGPONG, b"\xff\x00id")
    log.numbered(layout.NOTED, 2, 0, b"UNKNOWN_COMMAND")
    return log.take()


def facts_of(block: bytes) -> list[dict[str, object]]:
    return [fact for fact in decode_block(block) if fact["fact"] not in ("carried", "checkpoint")]


def test_every_fact_becomes_the_row_that_decode_sees() -> None:
    block = every_fact()
    assert split(block) == [expected(fact, 100 + index) for index, fact in enumerate(facts_of(block))]


def test_the_block_above_has_every_kind_but_worker_joined() -> None:
    """That one's text is kept whole, where decode takes it apart: it has a test of its own."""
    assert {FACT_NAMES[int(str(row["kind"]))] for row in split(every_fact())} == set(FACT_NAMES) - {"", "worker_joined"}


def test_a_worker_that_joined_keeps_its_text_whole() -> None:
    log = FactLog()
    text = b"emqp.worker\t127.0.0.1:5\t6162\t1 mail\t-2 post"
    log.numbered(layout.WORKER_JOINED, 9, enums.EMQP, text)
    [row] = split(log.take())
    assert row == {"lsn": 100, "kind": 3, "time_ns": NOW_NS, "worker_no": 9, "worker_dialect": enums.EMQP, "text": text}


def older(block: bytes, size: int) -> bytes:
    """A record as a journal of earlier days has it: it ends after `size` bytes."""
    return size.to_bytes(4, "little") + block[4:size]


@pytest.mark.parametrize("size", [39])
def test_a_released_fact_of_an_older_journal_says_less(size: int) -> None:
    log = FactLog()
    log.released(a_message(), 9, enums.RQ, 3, 500, enums.WORKER_LOST, True)
    block = older(log.take(), size)
    [row] = split(block)
    assert row == expected(decode_block(block)[0], 100)
    assert "leased_ns" not in row
    assert "queue_no" not in row


@pytest.mark.parametrize("size", [73, 81])
def test_a_closed_fact_of_an_older_journal_says_less(size: int) -> None:
    log = FactLog()
    log.closed(a_message(), 8, enums.RQ, 20, STATE_NAMES.index("done"), enums.ANSWERED_LATE, 9)
    block = older(log.take(), size)
    [row] = split(block)
    assert row == expected(decode_block(block)[0], 100)
    assert "holder_no" not in row


def test_a_quarantined_fact_of_an_older_journal_knows_who_died() -> None:
    log = FactLog()
    log.numbered(layout.QUARANTINED, 77, enums.WORKERS_DIED, b"9")
    log.numbered(layout.REQUEUED, 77, 0, b"")
    dead, again = split(log.take())
    base = {"time_ns": NOW_NS, "message_no": 77}
    assert dead == {**base, "lsn": 100, "kind": 10, "worker_no": 9, "reason": enums.WORKERS_DIED}
    assert again == {**base, "lsn": 101, "kind": 11}


def test_a_kind_of_a_later_version_is_a_row_all_the_same() -> None:
    log = FactLog()
    log.numbered(99, 1, 2, b"what?")
    assert split(log.take()) == [{"lsn": 100, "kind": 99, "time_ns": NOW_NS}]


def test_facts_before_the_one_asked_for_are_passed_over_but_counted() -> None:
    block = every_fact()
    whole, rest = split(block), FactColumns(BODIES_NONE)
    assert rest.add(block, 100, NOW_NS, from_lsn=105) == 100 + len(whole)
    assert rows_of(rest) == whole[5:]


@pytest.mark.parametrize("body", [b"", b"x", bytes(range(256)) * 40])
def test_a_body_goes_as_far_as_it_is_asked_to(body: bytes) -> None:
    log = FactLog()
    log.accepted(a_message(body=body))
    block = log.take()
    [none], [hashed], [full] = (split(block, bodies) for bodies in (BODIES_NONE, BODIES_HASH, BODIES_FULL))
    digest = int.from_bytes(blake2b(body, digest_size=8).digest(), "little", signed=True)
    assert none["body_size"] == len(body)
    assert hashed == {**none, "body_hash": digest}
    assert full == {**hashed, "body": body}


@settings(max_examples=2 * settings().max_examples)
@given(client_id=st.binary(max_size=40), dialect=st.sampled_from(range(6)), body=st.binary(max_size=60))
def test_any_client_id_reads_as_decode_shows_it(client_id: bytes, dialect: int, body: bytes) -> None:
    log = FactLog()
    log.accepted(a_message(dialect, client_id, body))
    block = log.take()
    [row] = split(block, BODIES_FULL)
    shown = str(decode_block(block)[0]["client_id"])
    assert row.get("client_id", b"") == shown.encode()
    assert row["body"] == body
