"""The demo's own counts of calls, replies, kept messages and runs, independent of the broker's."""

from __future__ import annotations

from collections import Counter
from typing import Final

from dragoman.dialects.registry import DESCRIPTIONS

NAMES: Final = [described.name for described in DESCRIPTIONS]


class Tally:
    """Counts by dialect; each call has a number."""

    def __init__(self) -> None:
        self.cells: Counter[tuple[str, str]] = Counter()  # answered, by client and worker
        self.asked: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.troubles: list[str] = []
        self.kept: dict[str, set[int]] = {}  # calls that the broker confirmed as kept, by client
        self.runs: Counter[int] = Counter()  # how often each call was run, by workers of any dialect
        self._last = 0

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def answer(self, client: str, worker: str) -> None:
        self.answered[client] += 1
        self.cells[client, worker] += 1

    @property
    def missing_cells(self) -> list[tuple[str, str]]:
        return [(client, worker) for client in NAMES for worker in NAMES if not self.cells[client, worker]]

    @property
    def ran_twice(self) -> int:
        """Repeated runs: the price of losing nothing when the broker cannot know whether a message was processed."""
        return self.runs.total() - len(self.runs)

    def unrun(self, client: str) -> int:
        """The number of messages kept for this client that never ran."""
        return sum(1 for number in self.kept.get(client, ()) if not self.runs[number])

    def losses(self) -> list[str]:
        """Every broken promise, as a sentence."""
        found = list(self.troubles)
        for name in NAMES:
            lost = self.asked[name] - self.answered[name]
            if lost:
                found.append(f"{name}: {lost} of {self.asked[name]} calls were never answered")
            if self.unrun(name):
                found.append(f"{name}: {self.unrun(name)} of {len(self.kept[name])} kept messages never ran")
        found += [f"no message went from {client} to {worker}" for client, worker in self.missing_cells]
        return found
