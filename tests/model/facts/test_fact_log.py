"""The log of the block being filled: large bodies stay where they are, and every record can be found by its place."""

from __future__ import annotations

import pytest

from dragoman.limits import BODY_REFERENCE_SIZE
from dragoman.model.enums import EMQP
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.fields import accepted_body
from dragoman.model.facts.records import ANY_MESSAGE, FactLog, carried_at, flaw_of
from dragoman.model.message import Message

BASE_POSITION = 3 << 32 | 200
LARGE = b"x" * BODY_REFERENCE_SIZE


def message(number: int, body: bytes) -> Message:
    m = Message(EMQP, b"queue", b"id", body)
    m.number, m.queue_no = number, 1
    return m


def filled(bodies: list[bytes], base_position: int = BASE_POSITION) -> tuple[FactLog, list[Message]]:
    log = FactLog()
    log.base_position = base_position
    messages = [message(number, body) for number, body in enumerate(bodies, 1)]
    for m in messages:
        log.accepted(m)
        log.leased(m, 7)
    return log, messages


BODIES = [
    [b"small"],
    [LARGE],
    [b"small", LARGE, b"small"],
    [LARGE + b"1", LARGE + b"2", b"", LARGE],
    [b"", b"y" * (BODY_REFERENCE_SIZE - 1), b"last"],
]


@pytest.mark.parametrize("bodies", BODIES, ids=lambda bodies: "-".join(str(len(body)) for body in bodies))
def test_a_record_is_found_by_its_place_in_the_block_being_filled_and_in_the_one_taken(bodies: list[bytes]) -> None:
    log, messages = filled(bodies)
    check_found(log, messages)
    end = BASE_POSITION + log.size()
    log.take_parts()
    log.base_position = BASE_POSITION + (1 << 32)
    check_found(log, messages)
    assert log.find(end) == b""


def check_found(log: FactLog, messages: list[Message]) -> None:
    for m in messages:
        record = log.find(m.position)
        assert flaw_of(record, m.number, False) == ""
        assert accepted_body(record, 0) == m.body


def test_places_are_where_the_records_lie_once_the_parts_are_one_behind_the_other() -> None:
    log, messages = filled([b"one", LARGE, b"two", LARGE + b"!"])
    size = log.size()
    assert log.first_position() == BASE_POSITION
    block = b"".join(log.take_parts())
    assert len(block) == size
    for m in messages:
        at = m.position - BASE_POSITION
        assert int.from_bytes(block[at + 8 : at + 16], "little") == m.number
    assert [fact["fact"] for fact in decode_block(block)] == ["accepted", "leased"] * 4


def test_a_large_body_is_handed_on_without_a_copy() -> None:
    log, messages = filled([b"small", LARGE])
    assert any(part is messages[1].body for part in log.take_parts())


def test_the_log_begins_afresh_after_large_bodies() -> None:
    log, _ = filled([LARGE, b"small"])
    log.take_parts()
    assert (log.size(), log.count) == (0, 0)
    log.base_position = BASE_POSITION + 5000
    again = message(9, b"next")
    log.accepted(again)
    assert again.position == BASE_POSITION + 5000
    assert log.take() == log.taken[0]


def test_a_large_record_is_carried_without_a_copy_to_the_announced_offset() -> None:
    source, [m] = filled([LARGE])
    record = source.find(m.position)
    log, _ = filled([b"before"])
    position = log.carried(record, 5)
    log.leased(m, 8)
    assert any(part is record for part in log.parts)
    found = log.find(position)
    assert found[carried_at(found) :] == record
    assert flaw_of(found, ANY_MESSAGE, False) == ""
    assert log.find(log.first_position() + log.size() - 25)[4] == 6, "what follows is found, too"


def test_without_a_journal_there_are_no_places() -> None:
    log, messages = filled([LARGE, b"small"], base_position=0)
    assert [m.position for m in messages] == [0, 0]
    assert log.first_position() == 0
