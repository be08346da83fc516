"""The last stretch of time of some queues, step by step: what each accepted and settled, and by how much what waits there rose or fell.

A leased fact does not name its queue; the fact that ends the lease does, and says when it began. So a lease is counted at its end, for the
step in which it began, and those that have not ended come from whoever knows them. What is delayed begins to wait when it is due, which no
fact tells but the one that delayed it. One that need not wait for its next attempt any longer, by an operator's word, still counts from then.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.model.census import first_due, is_in_line, set_aside, was_aside, was_held
from dragoman.model.records import ACCEPTED, CLOSED, QUARANTINED, RELEASED, REQUEUED
from dragoman.model.words import DAMAGED


@final
class QueueSteps:
    """One queue; a place for each step."""

    def __init__(self, count: int) -> None:
        self.accepted: list[int] = [0] * count
        self.settled: list[int] = [0] * count
        self.waiting: list[int] = [0] * count  # by how many more wait at the end than at the beginning


@final
class Steps:
    """The steps from `begin_ns` to `until_ns`, the instant at which the levels are known. Blocks of before tell what was delayed or
    quarantined, and blocks of later which leases had begun."""

    def __init__(self, queue_nos: list[int], begin_ns: int, step_ns: int, count: int, until_ns: int) -> None:
        self.begin_ns: i64 = begin_ns
        self.step_ns: i64 = step_ns
        self.count: i64 = count
        self.until_ns: i64 = until_ns
        self.aside: set[int] = set()  # as in a census
        self.queues: dict[int, QueueSteps] = {number: QueueSteps(count) for number in queue_nos}
        self.held: dict[int, tuple[int, int]] = {}  # by message: queue, and since when

    def hold(self, number: int, queue_no: int, leased_ns: int) -> None:
        """A worker has this message now; a later block may end that."""
        self.held[number] = (queue_no, leased_ns)

    def end(self) -> None:
        """No more blocks come: what is still held left its line, too."""
        for queue_no, leased_ns in self.held.values():
            self._wait(self.queues.get(queue_no), leased_ns, -1)
        self.held.clear()

    def add(self, records: bytes, time_ns: int) -> None:
        at_ns: i64 = time_ns
        at: i64 = 0
        end: i64 = len(records)
        is_before = at_ns < self.begin_ns
        while at < end:
            kind: i64 = records[at + 4]
            if is_before and not self._reaches_on(records, at, kind):
                pass
            elif kind == ACCEPTED:
                self._add_accepted(records, at, at_ns)
            elif kind == CLOSED:
                self._add_closed(records, at, at_ns)
            elif kind == RELEASED:
                self._add_released(records, at, at_ns)
            elif kind == QUARANTINED:
                self._add_quarantined(records, at, at_ns)
            elif kind == REQUEUED:
                self.aside.discard(read_i64_le(records, at + 5))
                if not is_in_line(records, at):
                    self._wait(self.queues.get(read_i64_le(records, at + 13)), at_ns, 1)
            at += i64(read_i32_le(records, at))

    def _reaches_on(self, records: bytes, at: i64, kind: i64) -> bool:
        """Whether a fact of before the stretch may matter for it: what is delayed comes due later, what is quarantined ends later."""
        if kind == ACCEPTED:
            return read_i64_le(records, at + 40) != 0
        if kind == RELEASED:
            return read_i64_le(records, at + 29) != 0
        if kind == CLOSED:
            return len(self.aside) > 0 or (i64(read_i32_le(records, at)) >= 81 and read_i64_le(records, at + 73) != 0)
        return kind == QUARANTINED or kind == REQUEUED

    def _add_accepted(self, records: bytes, at: i64, at_ns: i64) -> None:
        one = self.queues.get(read_i32_le(records, at + 16))
        if one is None:
            return
        step = self._step(at_ns)
        if step >= 0:
            one.accepted[step] += 1
        self._wait(one, later(at_ns, read_i64_le(records, at + 40)), 1)

    def _add_closed(self, records: bytes, at: i64, at_ns: i64) -> None:
        one = self.queues.get(read_i32_le(records, at + 25))
        if one is None:
            return
        step = self._step(at_ns)
        if step >= 0:
            one.settled[step] += 1
        self._leave(records, at, at_ns, one)
        if self.aside:
            self.aside.discard(read_i64_le(records, at + 5))

    def _leave(self, records: bytes, at: i64, at_ns: i64, one: QueueSteps) -> None:
        if was_held(records, at):
            self._end_lease(read_i64_le(records, at + 5), one, read_i64_le(records, at + 45))
        elif not was_aside(records, at, self.aside):
            # Before it was due it did not wait, and then it was no more.
            self._wait(one, later(at_ns, first_due(records, at)), -1)

    def _add_released(self, records: bytes, at: i64, at_ns: i64) -> None:
        if i64(read_i32_le(records, at)) < 53:  # of an older journal: it does not name the queue
            return
        one = self.queues.get(read_i32_le(records, at + 47))
        if one is not None:
            self._end_lease(read_i64_le(records, at + 5), one, read_i64_le(records, at + 39))
            self._wait(one, later(at_ns, read_i64_le(records, at + 29)), 1)

    def _add_quarantined(self, records: bytes, at: i64, at_ns: i64) -> None:
        number: int = read_i64_le(records, at + 5)
        parts = records[at + 21 : at + i64(read_i32_le(records, at))].split()
        if len(parts) < 7:  # of an older journal
            return
        one = self.queues.get(int(parts[4]))
        if one is not None:
            set_aside(self.aside, number)
            if read_i64_le(records, at + 13) == DAMAGED:
                self._wait(one, at_ns, -1)
            else:
                self._end_lease(number, one, i64(int(parts[3])))

    def _end_lease(self, number: int, one: QueueSteps, leased_ns: i64) -> None:
        if self.held and number in self.held and self.held[number][1] == leased_ns:
            del self.held[number]
        self._wait(one, leased_ns, -1)

    def _wait(self, one: QueueSteps | None, at_ns: i64, by: i64) -> None:
        step = self._step(at_ns)
        if one is not None and step >= 0:
            one.waiting[step] += by

    def _step(self, at_ns: i64) -> i64:
        """-1: not within the stretch."""
        if at_ns < self.begin_ns or at_ns > self.until_ns:
            return -1
        step: i64 = (at_ns - self.begin_ns) // self.step_ns
        return step if step < self.count else -1


def later(at_ns: i64, due_ns: i64) -> i64:
    return due_ns if due_ns > at_ns else at_ns
