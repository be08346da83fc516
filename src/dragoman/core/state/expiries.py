"""Expiry times of messages, grouped by tenths of a second. Entries of settled messages stay until most entries are stale.

A message in memory is found by its number. For a message in the tail of a line, the entry also names that line, so that not all
lines of all queues need to be searched.
"""

from __future__ import annotations

import heapq
from array import array
from typing import Final, final

from dragoman.core.state.lines import line_code
from dragoman.core.state.queue import Queue, lines_with_tails
from dragoman.core.state.tail import Tail
from dragoman.limits import STALE_ENTRIES_MAX
from dragoman.model.message import Message

STEP_NS: Final = 100_000_000


@final
class Expiries:
    """Entries are message numbers and lines; the caller checks whether a message is still open."""

    def __init__(self) -> None:
        self.numbers: dict[int, array[int]] = {}  # tenth of a second → numbers
        self.far: dict[int, array[int]] = {}  # tenth of a second → number, `line_code`, number, `line_code`, …
        self.steps: list[int] = []  # heap of the keys of both
        self.watched: int = 0  # entries in `numbers`
        self.expiring: int = 0  # open messages that have an expiry

    def watch(self, number: int, expires_ns: int) -> None:
        """Add an open message that has an expiry."""
        self.expiring += 1
        self.watched += 1
        step = expires_ns // STEP_NS + 1
        numbers = self.numbers.get(step)
        if numbers is None:
            numbers = array("q")
            self.numbers[step] = numbers
            heapq.heappush(self.steps, step)
        numbers.append(number)

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
                for number in numbers[-room:]:
                    found.append(number)
                    found.append(-1)
                self.watched -= min(room, len(numbers))
                del numbers[-room:]
                if not numbers:
                    del self.numbers[step]
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
        numbers = self.numbers.setdefault(step, array("q"))
        far = self.far.setdefault(step, array("q"))
        for index in range(at, len(due), 2):
            if due[index + 1] < 0:
                numbers.append(due[index])
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
