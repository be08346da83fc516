"""The rows of a story while it is written: each has an instant and a place, which orders rows of the same instant.

A fact's place is ten times its lsn, so that rows without a fact can go before and after it. What existed before the first fact has
negative places.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from dragoman.model.units import SECOND_NS
from dragoman_lab.replay.export.history import Fact
from dragoman_lab.replay.tables import Row

STEPS: Final = 10


class Placed(NamedTuple):
    time_ns: int
    place: int
    row: Row


class Rows:
    """Collects the rows; `start_ns` is second 0."""

    def __init__(self, start_ns: int) -> None:
        self.start_ns = start_ns
        self.placed: list[Placed] = []

    def add(self, time_ns: int, place: int, who: str, what: str, *details: Any) -> None:
        at_s = round((time_ns - self.start_ns) / SECOND_NS, 6)
        self.placed.append(Placed(time_ns, place, (at_s, who, what, *details)))

    def at(self, fact: Fact, who: str, what: str, *details: Any, step: int = 0) -> None:
        self.add(fact["time_ns"], fact["lsn"] * STEPS + step, who, what, *details)

    def story(self) -> list[Row]:
        return [placed.row for placed in sorted(self.placed, key=lambda placed: placed[:2])]

    def of(self, who: str, *whats: str) -> list[Placed]:
        """The rows of `who` with these verbs, in order."""
        found = [placed for placed in self.placed if placed.row[1] == who and placed.row[2] in whats]
        return sorted(found, key=lambda placed: placed[:2])

    def place_at(self, time_ns: int) -> int:
        """A place after everything that is placed up to an instant."""
        return max((placed.place for placed in self.placed if placed.time_ns <= time_ns), default=0) + 1
