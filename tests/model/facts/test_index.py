"""Which records a journal's index knows, and by which keys."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from librt.vecs import vec
from mypy_extensions import i64

from dragoman.model import enums
from dragoman.model.facts import layout, records
from dragoman.model.facts.index import KEY_MASK, NUMBER_MAX, id_key, index_block, number_key, packed, unpacked
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message

NUMBER = 3 << 40 | 77


def keys(log: FactLog) -> list[int]:
    entries = index_block(log.take(), 128, vec[i64]())
    assert [entry & 0xFFFFFFFF for entry in entries] == [128] * len(entries)
    return [entry >> 32 for entry in entries]


def message(client_id: bytes = b"") -> Message:
    m = Message(enums.EMQP, b"q", client_id, b"body")
    m.number, m.queue_no, m.attempt = NUMBER, 1, 1
    return m


def test_an_accepted_message_is_known_by_its_number_and_its_id() -> None:
    log = FactLog()
    log.accepted(message(b"order-1"))
    log.accepted(message())
    assert keys(log) == [number_key(NUMBER), id_key(b"order-1"), number_key(NUMBER)]


def test_every_move_of_a_message_is_known_by_its_number() -> None:
    log = FactLog()
    m = message()
    log.leased(m, 5)
    log.released(m, 5, enums.EMQP, 1, 0, enums.FAILED, False)
    log.closed(m, 5, enums.EMQP, 1, 3, enums.ANSWERED, 5)
    log.quarantined(m, 5, enums.EMQP, enums.WORKERS_DIED, 5)
    log.requeued(m, False)
    log.numbered(layout.DELIVERED, NUMBER, 5, b"")
    log.numbered(layout.FIRED, 9, 1, records.fired_text(NUMBER, 1, -1))
    assert keys(log) == [number_key(NUMBER)] * 7


def test_a_record_carried_forward_is_known_like_the_one_it_wraps() -> None:
    inner, log = FactLog(), FactLog()
    inner.accepted(message(b"order-1"))
    log.carried(inner.take(), 1)
    assert keys(log) == [number_key(NUMBER), id_key(b"order-1")]


def test_what_a_life_needs_beside_its_own_facts_is_known_too() -> None:
    log = FactLog()
    log.numbered(layout.STARTED, 4, 0, b"0.1.0")
    log.numbered(layout.WORKER_JOINED, NUMBER, enums.EMQP, b"l\tr\t")
    log.numbered(layout.WORKER_LEFT, NUMBER, enums.WORKER_LEFT, b"")
    log.numbered(layout.QUEUE_NAMED, 12, 0, b"mail")
    log.numbered(layout.LATE, 5, enums.EMQP, b"order-1")
    assert keys(log) == [0, number_key(NUMBER), number_key(NUMBER), number_key(12), id_key(b"order-1")]


def test_a_late_answer_is_known_by_the_id_as_people_see_it() -> None:
    log = FactLog()
    log.numbered(layout.LATE, 5, enums.EMQP, b"\xff")
    assert keys(log) == [id_key(b"\\xff")]


def test_facts_that_belong_to_no_message_take_no_memory() -> None:
    log = FactLog()
    log.numbered(layout.PUBLISHED, 5, 0, b"topic")
    log.numbered(layout.FIRED, 9, 1, records.fired_text(0, 1, -1))  # skipped: it made no message
    assert keys(log) == []


@pytest.mark.parametrize("number", [0, 1, NUMBER, NUMBER_MAX])
def test_a_key_fits_its_bits(number: int) -> None:
    assert 0 <= number_key(number) <= KEY_MASK


def test_numbers_that_follow_each_other_and_boots_that_begin_alike_have_keys_of_their_own() -> None:
    numbers = [boot << 40 | count for boot in range(1, 50) for count in range(1, 1000)]
    assert len({number_key(number) for number in numbers}) > 0.999 * len(numbers)


@given(st.lists(st.tuples(st.integers(0, KEY_MASK) | st.integers(0, 3), st.integers(0, 5)), max_size=200))
def test_entries_are_sorted_by_key_then_block_and_each_is_there_once(found: list[tuple[int, int]]) -> None:
    entries = [key << 32 | offset for key, offset in sorted(found, key=lambda entry: entry[1])]
    assert list(unpacked(packed(vec[i64](entries)), vec[i64]())) == sorted(set(entries))
