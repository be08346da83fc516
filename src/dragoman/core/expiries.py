"""Who expires when: numbers of messages by the tenth of a second. One that is settled before stays until most of them are."""

from __future__ import annotations

import heapq
from typing import Final, final

from dragoman.limits import STALE_ENTRIES_MAX

STEP_NS: Final = 100_000_000


@final
class Expiries:
    """Knows numbers only; whether a message is still there is its asker's business."""

    def __init__(self) -> None:
        self.numbers: dict[int, list[int]] = {}  # tenth of a second → numbers
        self.steps: list[int] = []  # heap of the keys above
        self.watched: int = 0  # numbers in all of them
        self.expiring: int = 0  # open messages that expire

    def watch(self, number: int, expires_ns: int) -> None:
        """A message that expires is open."""
        self.expiring += 1
        self.watched += 1
        step = expires_ns // STEP_NS + 1
        numbers = self.numbers.get(step)
        if numbers is None:
            self.numbers[step] = [number]
            heapq.heappush(self.steps, step)
        else:
            numbers.append(number)

    def settled(self, open_count: int) -> bool:
        """One of them is settled; True when so many were that it is time to `clear` and watch just what is open."""
        self.expiring -= 1
        return self.watched - self.expiring > STALE_ENTRIES_MAX + open_count

    def clear(self) -> None:
        self.numbers = {}
        self.steps = []
        self.watched = 0
        self.expiring = 0

    def take(self, now_ns: int) -> list[int]:
        """Those whose time has come; they are watched no more."""
        steps = self.steps
        found: list[int] = []
        while steps and steps[0] * STEP_NS <= now_ns:
            found.extend(self.numbers.pop(heapq.heappop(steps)))
        self.watched -= len(found)
        return found

    def next_ns(self) -> int:
        """When the next time comes; 0: never."""
        return self.steps[0] * STEP_NS if self.steps else 0
