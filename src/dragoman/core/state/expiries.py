"""Expiry times of messages, grouped by tenths of a second. Entries of settled messages stay until most entries are stale.

A message in memory is found by its number. For a message in the tail of a line, the entry also names that line, so that not all
lines of all queues need to be searched.
"""

from __future__ import annotations

import heapq
from array import array
from typing import Final, final

from librt.vecs import append, vec
from mypy_extensions import i64

from dragoman.core.state.lines import line_code
from dragoman.core.state.queue import Queue, lines_with_tails
from dragoman.core.state.tail import Tail
from dragoman.limits import STALE_ENTRIES_MAX
from dragoman.model.message import Message

STEP_NS: Final = 100_000_000


@final
class ExpiryStep:
    """The numbers of messages in memory that expire in the same tenth of a second, in machine words: every message with an expiry is added here."""

    def __init__(self) -> None:
        self.numbers: vec[i64] = vec[i64]()
        self.size: i64 = 0  # numbers from here on were taken

    def add(self, number: i64) -> None:
        if self.size < len(self.numbers):
            self.numbers[self.size] = number
        else:
            self.numbers = append(self.numbers, number)
        self.size += 1

    def take_last(self, count_max: i64) -> list[int]:
        """Remove and return up to `count_max` of the last numbers, in the order in which they were added."""
        end: i64 = self.size
        at: i64 = 0
        if end > count_max:
            at = end - count_max
        self.size = at
        found: list[int] = []
        while at < end:
            found.append(self.numbers[at])
            at += 1
        return found


@final
class Expiries:
    """Entries are message numbers and lines; the caller checks whether a message is still open."""

    def __init__(self) -> None:
        self.numbers: dict[int, ExpiryStep] = {}  # tenth of a second → numbers
        # The step found last: one client's messages mostly expire in the same step. `clear` and `take` reset it.
        self.recent_no: i64 = -1
        self.recent = ExpiryStep()
        self.far: dict[int, array[int]] = {}  # tenth of a second → number, `line_code`, number, `line_code`, …
        self.steps: list[int] = []  # heap of the keys of both
        self.watched: int = 0  # entries in `numbers`
        self.expiring: int = 0  # open messages that have an expiry

    def watch(self, number: int, expires_ns: int) -> None:
        """Add an open message that has an expiry."""
        self.expiring += 1
        self.watched += 1
        step_no: i64 = i64(expires_ns) // STEP_NS + 1
        if step_no != self.recent_no:
            self.recent = self.step_of(step_no)
            self.recent_no = step_no
        self.recent.add(number)

    def step_of(self, step_no: int) -> ExpiryStep:
        step = self.numbers.get(step_no)
        if step is None:
            step = ExpiryStep()
            self.numbers[step_no] = step
            heapq.heappush(self.steps, step_no)
        return step

    def watch_far(self, number: int, line: int, expires_ns: int) -> None:
        """Add the line of a message that went to its tail."""
        step = expires_ns // STEP_NS + 1
        entries = self.far.get(step)
        if entries is None:
            entries = array("q")
            self.far[step] = entries
            heapq.heappush(self.steps, step)
        entries.append(number)
        entries.append(line)

    def settled(self, open_count: int) -> bool:
        """Count a settled message; True when so many entries are stale that `watch_again` should rebuild them."""
        self.expiring -= 1
        return self.watched - self.expiring > STALE_ENTRIES_MAX + open_count

    def clear(self) -> None:
        self.numbers = {}
        self.recent_no = -1
        self.far = {}
        self.steps = []
        self.watched = 0
        self.expiring = 0

    def watch_again(self, messages: dict[int, Message], queues: dict[bytes, Queue]) -> None:
        """Rebuild the entries from the open messages: most entries are stale."""
        self.clear()
        for m in messages.values():
            if m.expires_ns != 0:
                self.watch(m.number, m.expires_ns)
        for queue, lane, line in lines_with_tails(queues.values()):
            self.watch_tail(line.tail, line.tail.head, line_code(queue.number, lane, line))

    def take(self, now_ns: int, count_max: int) -> list[int]:
        """Remove and return up to `count_max` due entries: number, line (-1: in memory), number, line, …"""
        steps = self.steps
        found: list[int] = []
        while steps and steps[0] * STEP_NS <= now_ns:
            room = count_max - len(found) // 2
            if room <= 0:
                break
            step = steps[0]
            numbers = self.numbers.get(step)
            if numbers is not None:
                taken = numbers.take_last(room)
                for number in taken:
                    found.append(number)
                    found.append(-1)
                self.watched -= len(taken)
                if numbers.size == 0:
                    del self.numbers[step]
                    self.recent_no = -1
                continue
            far = self.far.get(step)
            if far is not None:
                found.extend(far[-2 * room :])
                del far[-2 * room :]
                if not far:
                    del self.far[step]
                continue
            heapq.heappop(steps)
        return found

    def give_back(self, now_ns: int, due: list[int], at: int) -> None:
        """Add the entries of `due` from `at` on again, as due now: they were not processed."""
        step = now_ns // STEP_NS
        numbers = self.numbers.setdefault(step, ExpiryStep())
        far = self.far.setdefault(step, array("q"))
        for index in range(at, len(due), 2):
            if due[index + 1] < 0:
                numbers.add(due[index])
                self.watched += 1
            else:
                far.append(due[index])
                far.append(due[index + 1])
        heapq.heappush(self.steps, step)

    def watch_tail(self, tail: Tail, start: int, code: int) -> None:
        """Add the messages of a tail from `start` on that have an expiry."""
        for at in range(start, len(tail.numbers)):
            if tail.expires[at] > 0 and tail.numbers[at] > 0:
                self.watch(tail.numbers[at], tail.expires[at])
                self.watch_far(tail.numbers[at], code, tail.expires[at])

    def next_ns(self) -> int:
        """When the next entry is due; 0: there is none."""
        return self.steps[0] * STEP_NS if self.steps else 0
