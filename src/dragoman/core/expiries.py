"""Who expires when: messages by the tenth of a second. One that is settled before stays until most of them are.

A message in memory is known by its number. One that went to the tail of its line is known by that line, too: nobody looks through
all lines of all queues for it.
"""

from __future__ import annotations

import heapq
from array import array
from typing import Final, final

from dragoman.core.lines import line_code
from dragoman.core.queue import Queue
from dragoman.core.tail import Tail
from dragoman.limits import STALE_ENTRIES_MAX
from dragoman.model.message import Message

STEP_NS: Final = 100_000_000


@final
class Expiries:
    """Knows numbers and lines only; whether a message is still there is its asker's business."""

    def __init__(self) -> None:
        self.numbers: dict[int, array[int]] = {}  # tenth of a second → numbers
        self.far: dict[int, array[int]] = {}  # tenth of a second → number, line, number, line, …
        self.steps: list[int] = []  # heap of the keys above
        self.watched: int = 0  # numbers in the first of them
        self.expiring: int = 0  # open messages that expire

    def watch(self, number: int, expires_ns: int) -> None:
        """A message that expires is open."""
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
        """It went to the tail of a line."""
        step = expires_ns // STEP_NS + 1
        entries = self.far.get(step)
        if entries is None:
            entries = array("q")
            self.far[step] = entries
            heapq.heappush(self.steps, step)
        entries.append(number)
        entries.append(line)

    def settled(self, open_count: int) -> bool:
        """One of them is settled; True when so many were that it is time to `clear` and watch just what is open."""
        self.expiring -= 1
        return self.watched - self.expiring > STALE_ENTRIES_MAX + open_count

    def clear(self) -> None:
        self.numbers = {}
        self.far = {}
        self.steps = []
        self.watched = 0
        self.expiring = 0

    def watch_again(self, messages: dict[int, Message], queues: dict[bytes, Queue]) -> None:
        """Watch just what is open: most of what was watched is settled by now."""
        self.clear()
        for m in messages.values():
            if m.expires_ns != 0:
                self.watch(m.number, m.expires_ns)
        for queue in queues.values():
            for lane in queue.lanes:
                for line in lane.lines.values():
                    self.watch_tail(line.tail, line_code(queue.number, lane, line))

    def take(self, now_ns: int, count_max: int) -> list[int]:
        """Those whose time has come, a bounded number of them: number, line (-1: in memory), and so on. They are watched no more."""
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

    def watch_tail(self, tail: Tail, code: int) -> None:
        """Watch what still waits in a tail."""
        for at in range(tail.head, len(tail.numbers)):
            if tail.expires[at] > 0 and tail.numbers[at] > 0:
                self.watch(tail.numbers[at], tail.expires[at])
                self.watch_far(tail.numbers[at], code, tail.expires[at])

    def next_ns(self) -> int:
        """When the next time comes; 0: never."""
        return self.steps[0] * STEP_NS if self.steps else 0
