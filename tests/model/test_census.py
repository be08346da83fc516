"""Counting facts without decoding them: every kind moves the levels as the core does, and older, shorter records are read."""

from __future__ import annotations

import struct

import pytest

from dragoman.model.buckets import bucket_of
from dragoman.model.census import Census
from dragoman.model.message import Message
from dragoman.model.records import CLOSED, LEASED, QUARANTINED, RELEASED, REQUEUED, FactLog
from dragoman.model.words import BY_OPERATOR, DROPPED, EBUS
from tests.model.lives import lived

CANCELLED = 6
ACCEPTED_NS, LEASED_NS, NOW_NS = 1_000_000_000, 3_000_000_000, 7_000_000_000


def record(kind: int, size: int, **longs: int) -> bytes:
    """A record of zeros but for its head and the long integers at the offsets named, as `at13=5`."""
    made = bytearray(size)
    struct.pack_into("<IB", made, 0, size, kind)
    for name, value in longs.items():
        struct.pack_into("<q", made, int(name.removeprefix("at")), value)
    return bytes(made)


def accepted(dialect: int) -> bytes:
    made = bytearray(record(5, 63))
    made[5] = dialect
    return bytes(made)


def counted(*records: bytes) -> Census:
    census = Census(set())
    census.add(b"".join(records), NOW_NS)
    return census


def test_a_plain_round_trip_leaves_nothing_behind() -> None:
    closed = record(CLOSED, 81, at13=4, at29=ACCEPTED_NS, at37=LEASED_NS, at45=LEASED_NS)
    census = counted(accepted(EBUS), record(LEASED, 25), closed)
    assert (census.accepted, census.settled, census.waiting, census.leased) == (1, 1, 0, 0)
    assert census.dialects[EBUS] == 1
    assert census.wait[bucket_of(LEASED_NS - ACCEPTED_NS)] == 1
    assert census.total[bucket_of(NOW_NS - ACCEPTED_NS)] == 1


def test_a_wait_begins_when_the_message_was_due() -> None:
    closed = record(CLOSED, 81, at13=4, at29=ACCEPTED_NS, at37=LEASED_NS, at73=LEASED_NS - 1_000_000)
    assert counted(closed).wait[bucket_of(1_000_000)] == 1


def test_levels_follow_releases_quarantine_and_retries() -> None:
    lease = record(LEASED, 25)
    assert (counted(lease, record(RELEASED, 53)).waiting, counted(lease, record(RELEASED, 39)).leased) == (0, 0)
    aside = counted(accepted(EBUS), lease, record(QUARANTINED, 40))
    assert (aside.waiting, aside.leased) == (0, 0)
    assert counted(record(REQUEUED, 21)).waiting == 1


def test_what_nobody_held_leaves_the_line_and_what_was_taken_away_leaves_its_holder() -> None:
    assert counted(record(CLOSED, 81)).waiting == -1
    assert counted(record(CLOSED, 89, at45=LEASED_NS, at81=4)).leased == -1


def requeued(is_in_line: bool) -> bytes:
    log = FactLog()
    log.requeued(Message(EBUS, b"mail", b"id", b""), is_in_line)
    return log.take()


def cancelled(reason: int) -> bytes:
    log = FactLog()
    log.closed(Message(EBUS, b"mail", b"id", b""), 0, 0, 0, CANCELLED, reason, 0)
    return log.take()


def test_one_that_need_not_wait_for_its_next_attempt_any_longer_still_waits_once() -> None:
    lease, release = record(LEASED, 25), record(RELEASED, 53)
    assert counted(accepted(EBUS), lease, release, requeued(is_in_line=True)).waiting == 1
    assert counted(accepted(EBUS), lease, record(QUARANTINED, 40), requeued(is_in_line=False)).waiting == 1


def test_what_is_dropped_from_quarantine_leaves_no_line() -> None:
    held = (accepted(EBUS), record(LEASED, 25), record(QUARANTINED, 40))
    assert counted(*held, cancelled(DROPPED)).waiting == 0
    assert counted(accepted(EBUS), cancelled(BY_OPERATOR)).waiting == 0


def test_a_record_of_an_older_journal_says_less_and_is_counted_all_the_same() -> None:
    census = counted(record(CLOSED, 73, at13=4, at29=ACCEPTED_NS, at37=LEASED_NS))
    assert sum(census.wait) == sum(census.total) == 1


@pytest.mark.parametrize("seed", range(20))
def test_levels_are_those_that_really_were(seed: int) -> None:
    world = lived(seed, 60, 60)
    census = Census(set())
    for records, time_ns in world.blocks:
        census.add(records, time_ns)
    assert census.waiting == len(world.waiting) + len(world.delayed)
    assert census.leased == len(world.leased)
    assert census.aside == {m.number for m in world.aside}


def test_a_late_answer_to_one_that_waits_takes_it_out_of_its_line() -> None:
    late = record(CLOSED, 81, at13=4, at29=ACCEPTED_NS, at37=LEASED_NS)
    census = counted(accepted(EBUS), record(LEASED, 25), record(RELEASED, 53), late)
    assert (census.waiting, census.leased) == (0, 0)


def test_what_was_quarantined_in_an_earlier_slot_is_remembered() -> None:
    aside: set[int] = set()
    earlier, later = Census(aside), Census(aside)
    earlier.add(accepted(EBUS) + record(LEASED, 25, at5=0) + record(QUARANTINED, 40), NOW_NS)
    later.add(cancelled(BY_OPERATOR), NOW_NS)
    assert (earlier.waiting, later.waiting, later.leased) == (0, 0, 0)
    assert aside == set()
