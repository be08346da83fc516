"""Which waiting messages a damaged range of a segment costs: their records are read, those that are damaged are quarantined."""

from __future__ import annotations

from typing import final

from dragoman.core.quarantine import Quarantine
from dragoman.core.state import State
from dragoman.core.tail import Tail


@final
class DamageCheck:
    """Looks through what waits on disk only, some at a time. A message whose body is in memory is not asked: it can be delivered."""

    def __init__(self, state: State, quarantine: Quarantine, begin: int, end: int) -> None:
        """`begin` and `end`: places."""
        self.quarantine = quarantine
        self.begin = begin
        self.end = end
        self.count: int = 0  # quarantined so far
        self.numbers: list[int] = [
            m.number for m in state.messages.values() if begin <= m.place < end and not m.is_loaded
        ]
        self.tails: list[Tail] = []
        for queue in state.queues.values():
            for lane in queue.lanes:
                for line in lane.lines.values():
                    if line.tail.live > 0:
                        self.tails.append(line.tail)
        self.passed: int = 0  # the last number looked at in the last tail: indexes move

    def step(self, most: int, rows_most: int) -> bool:
        """Read up to `most` records, and look at up to `rows_most` rows of tails; False when all is done."""
        while self.numbers and most > 0:
            most -= 1
            if self.quarantine.check(self.numbers.pop()):
                self.count += 1
        while self.tails and rows_most > 0 and not self.numbers:
            tail = self.tails[-1]
            at = tail.after(self.passed)
            stop = min(at + rows_most, len(tail.numbers))
            rows_most -= max(stop - at, 1)
            while at < stop:
                if self.begin <= tail.places[at] < self.end and tail.numbers[at] > 0:
                    self.numbers.append(tail.numbers[at])
                self.passed = abs(tail.numbers[at])
                at += 1
            if at >= len(tail.numbers):
                self.tails.pop()
                self.passed = 0
        return bool(self.numbers) or bool(self.tails)
