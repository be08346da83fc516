"""The declared layout of records, against what is written and what is read."""

from __future__ import annotations

import hashlib

import pytest

from dragoman.model.facts import fields, layout
from dragoman.model.facts.decode import decode
from dragoman.model.facts.fields import RecordWalk
from dragoman.model.facts.layout import CHECKPOINT, FACTS, FIELD_SIZES, HEAD_SIZE, STORAGE, Layout
from dragoman.model.facts.records import FactLog, read_accepted
from tests.model.facts.test_columns import every_fact

DRAWN = [fact for fact in FACTS if not fact.is_numbered]
# What a function that reads a field is called, where that is not `<fact>_<field>`.
READERS = {
    "accepted_n1": "accepted_client_id_size",
    "accepted_n4": "headers_size",
    "scheduled_schedule_no": "record_number",
    "scheduled_next_due_ns": "record_small",
    "fired_schedule_no": "record_number",
    "fired_due_ns": "record_small",
    "leased_message_no": "record_number",
    "released_message_no": "record_number",
    "closed_message_no": "record_number",
}
# Fields of an accepted record that only `read_accepted` reads.
OF_MESSAGES = ["flags", "priority", "retries_left", "timeout_ns", "expires_ns", "due_ns", "schedule_no"]


def test_kinds_count_from_one_and_have_the_names_of_their_facts() -> None:
    assert [fact.kind for fact in FACTS] == list(range(1, len(FACTS) + 1))
    assert [getattr(layout, record.name.upper()) for record in FACTS + STORAGE] == [
        record.kind for record in FACTS + STORAGE
    ]
    assert all(record.kind >= CHECKPOINT for record in STORAGE)


@pytest.mark.parametrize("record", FACTS + STORAGE, ids=lambda record: record.name)
def test_fields_lie_one_behind_the_other(record: Layout) -> None:
    at = HEAD_SIZE
    for field in record.fields:
        assert field.at == at, field.name
        at += FIELD_SIZES[field.type_name]


def test_sizes_are_those_of_the_fields() -> None:
    ends = {fact.name: fact.rest_at() for fact in FACTS}
    assert ends["accepted"] == layout.ACCEPTED_FIXED
    assert ends["leased"] == layout.LEASED_SIZE
    assert ends["released"] == layout.RELEASED_SIZE
    assert ends["closed"] == layout.CLOSED_SIZE_WITH_HOLDER
    assert ends["scheduled"] == layout.TEXT + layout.SCHEDULE_CRON
    assert {ends[fact.name] for fact in FACTS if fact.is_numbered} == {layout.TEXT}


@pytest.mark.parametrize("fact", DRAWN, ids=lambda fact: fact.name)
def test_every_field_is_read_where_it_is_declared(fact: Layout) -> None:
    values = {field.name: 1 + number for number, field in enumerate(fact.fields)}
    record = bytearray(fact.rest_at().to_bytes(4, "little") + bytes([fact.kind]))
    for field in fact.fields:
        record += values[field.name].to_bytes(FIELD_SIZES[field.type_name], "little")
    block = bytes(7) + bytes(record) + bytes(7)
    for field in fact.fields:
        full = f"{fact.name}_{field.name}"
        assert fields.read_field(block, 7, field) == values[field.name], full
        reader = getattr(fields, READERS.get(full, full), None)
        if reader is not None:
            assert reader(block, 7) == values[field.name], full
    if fact.name == "accepted":
        m = read_accepted(block, 7, b"queue", False)
        assert {name: getattr(m, name) for name in OF_MESSAGES} == {name: values[name] for name in OF_MESSAGES}


@pytest.mark.parametrize(("kind", "size"), [("released", layout.RELEASED_LEASED_NS), ("closed", layout.CLOSED_DUE_NS)])
def test_what_a_record_of_an_older_journal_lacks_is_nothing(kind: str, size: int) -> None:
    fact = next(fact for fact in FACTS if fact.name == kind)
    block = size.to_bytes(4, "little") + bytes([fact.kind]) + b"\x01" * 200  # the next record follows at once
    for field in fact.fields:
        if field.at >= size:
            assert not fields.reaches(block, 0, field.at)
            assert field.name not in decode(block, 0)
    assert kind != "closed" or fields.closed_holder_no(block, 0) == 0


def test_a_walk_meets_every_record_and_counts_the_facts_before_it() -> None:
    log = FactLog()
    log.numbered(layout.NOTED, 1, 0, b"one")
    start = log.size()
    log.numbered(CHECKPOINT, 0, 0, b"")
    log.numbered(layout.NOTED, 1, 0, b"")
    walk = RecordWalk(log.take())
    met = []
    while walk.step():
        met.append((walk.at, walk.kind, walk.size, walk.facts))
    size = layout.TEXT
    assert met == [(0, 20, start, 0), (start, 200, size, 1), (start + size, 20, size, 1)]
    assert walk.facts == 2
    assert not walk.step()
    assert walk.facts == 2


def test_a_walk_never_leaves_its_block() -> None:
    log = FactLog()
    log.numbered(layout.NOTED, 1, 0, b"code")
    block = log.take()
    for cut in range(1, len(block)):
        with pytest.raises(AssertionError):
            RecordWalk(block[:cut]).step()
    for size in (0, 4, len(block) + 1, 1 << 31, (1 << 32) - 1):
        with pytest.raises(AssertionError):
            RecordWalk(size.to_bytes(4, "little") + block[4:]).step()


def test_the_bytes_of_every_fact_are_those_of_all_journals() -> None:
    """They change with the format's version alone."""
    assert (
        hashlib.sha256(every_fact()).hexdigest() == "783712ba829461b3e3ee1ef12eb7229b84665ba819c9550a41f7f76721ada846"
    )
