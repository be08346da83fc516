"""Facts counted block by block, for whoever wants the past in numbers: what was accepted, leased, released and settled, and how long
that took. One pass over the records, nothing decoded.

A closed fact says whether a worker held the message at its end, but not whether it waited or was quarantined. Whoever counts remembers the
numbers of messages that were quarantined in the blocks it was given, and so knows. Of one that was quarantined before these blocks, and
then cancelled (other than by a drop) or answered late, no fact in them tells: it counts as having waited.

Nor does any fact tell that a message has come due: whoever wants to know keeps `Delays`, too.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.limits import ASIDE_MAX
from dragoman.model.buckets import BUCKETS, bucket_of
from dragoman.model.records import ACCEPTED, CLOSED, LEASED, QUARANTINED, RELEASED, REQUEUED
from dragoman.model.words import DAMAGED, DIALECT_NAMES, DROPPED


@final
class Delays:
    """How many messages come due in each step of time, up to `until_ns`. One that is settled before it is due does not."""

    def __init__(self, step_ns: int, until_ns: int) -> None:
        self.step_ns: i64 = step_ns
        self.until_ns: i64 = until_ns
        self.due: dict[int, int] = {}

    def put(self, due_ns: i64, by: i64) -> None:
        if due_ns <= self.until_ns:
            step: int = due_ns // self.step_ns
            self.due[step] = self.due.get(step, 0) + by


@final
class Census:
    """The counts of some blocks. `wait` is from acceptance (or its due instant, if later) to the first lease, `total` to the end.

    `aside`, the numbers of quarantined messages, and `delays` are shared by those who count blocks that follow each other."""

    def __init__(self, aside: set[int], delays: Delays | None = None) -> None:
        self.aside = aside
        self.delays = delays
        self.accepted: i64 = 0
        self.settled: i64 = 0
        self.waiting: i64 = 0  # by how many more wait (or are delayed) at the end than at the beginning
        self.delayed: i64 = 0  # how many of them were told to wait for an instant that lies ahead
        self.leased: i64 = 0
        self.wait: list[int] = [0] * BUCKETS
        self.total: list[int] = [0] * BUCKETS
        self.dialects: list[int] = [0] * len(DIALECT_NAMES)  # accepted, by the client's dialect

    def add(self, records: bytes, time_ns: int) -> None:
        at_ns: i64 = time_ns
        at: i64 = 0
        end: i64 = len(records)
        while at < end:
            kind: i64 = records[at + 4]
            if kind == LEASED:
                self.waiting -= 1
                self.leased += 1
            elif kind == ACCEPTED:
                self.accepted += 1
                self.waiting += 1
                self._delay(at_ns, read_i64_le(records, at + 40), 1)
                dialect: i64 = records[at + 5]
                if dialect < len(self.dialects):
                    self.dialects[dialect] += 1
            elif kind == CLOSED:
                self._add_closed(records, at, at_ns)
            elif kind == RELEASED:
                self.waiting += 1
                self.leased -= 1
                self._delay(at_ns, read_i64_le(records, at + 29), 1)
            elif kind == QUARANTINED:
                if read_i64_le(records, at + 13) == DAMAGED:  # it waited
                    self.waiting -= 1
                else:
                    self.leased -= 1
                set_aside(self.aside, read_i64_le(records, at + 5))
            elif kind == REQUEUED:
                self.aside.discard(read_i64_le(records, at + 5))
                if not is_in_line(records, at):
                    self.waiting += 1
            at += i64(read_i32_le(records, at))

    def _add_closed(self, records: bytes, at: i64, at_ns: i64) -> None:
        self.settled += 1
        accepted_ns: i64 = read_i64_le(records, at + 29)
        first_leased_ns: i64 = read_i64_le(records, at + 37)
        if was_held(records, at):
            self.leased -= 1
        elif not was_aside(records, at, self.aside):
            self.waiting -= 1
            self._delay(at_ns, first_due(records, at), -1)
        if self.aside:
            self.aside.discard(read_i64_le(records, at + 5))
        if accepted_ns == 0:
            return
        self.total[bucket_of(at_ns - accepted_ns)] += 1
        if first_leased_ns != 0:
            self.wait[bucket_of(first_leased_ns - waited_from(records, at))] += 1

    def _delay(self, at_ns: i64, due_ns: i64, by: i64) -> None:
        if due_ns > at_ns:
            self.delayed += by
            if self.delays is not None:
                self.delays.put(due_ns, by)


# -- what single records say --------------------------------------------------------------------------------------------------


def set_aside(aside: set[int], number: int) -> None:
    if len(aside) < ASIDE_MAX:
        aside.add(number)


def is_in_line(records: bytes, at: i64) -> bool:
    """Of a requeued record: the message was not quarantined, it waited for its next attempt."""
    return records[at + 21 : at + i64(read_i32_le(records, at))].endswith(b" 1")


def was_held(records: bytes, at: i64) -> bool:
    """Of a closed record: whether a worker held the message until then. Older, shorter ones say only who settled it."""
    if i64(read_i32_le(records, at)) >= 81:
        return read_i64_le(records, at + 45) != 0
    return read_i64_le(records, at + 13) != 0


def was_aside(records: bytes, at: i64, aside: set[int]) -> bool:
    """Of a closed record of a message that nobody held: whether it was quarantined, as far as that can be known."""
    return records[at + 70] == DROPPED or (len(aside) > 0 and read_i64_le(records, at + 5) in aside)


def waited_from(records: bytes, at: i64) -> i64:
    """Of a closed record: when the message could first have been served."""
    accepted_ns: i64 = read_i64_le(records, at + 29)
    due_ns: i64 = read_i64_le(records, at + 73) if i64(read_i32_le(records, at)) >= 81 else 0
    return due_ns if due_ns > accepted_ns else accepted_ns


def first_due(records: bytes, at: i64) -> i64:
    """Of a closed record of a message that nobody held: when its first attempt was due; 0: at once, or not known any more."""
    is_fresh = read_i32_le(records, at + 21) == 0
    return read_i64_le(records, at + 73) if is_fresh and i64(read_i32_le(records, at)) >= 81 else 0
