"""What a simulated broker and its connections need around them: the whole world of a seed has it, and so has the stage of a replay."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dragoman.testing.sim.disk import SimDisk
    from dragoman.testing.sim.facts import Chronicle
    from dragoman.testing.sim.life import Life, WatchedJournal
    from dragoman.testing.sim.loop import Timeline
    from dragoman.testing.sim.plan import Plan


class Surroundings(Protocol):
    """Time, chance, disk, and what has happened so far."""

    verbose: bool
    chance: Random
    plan: Plan
    timeline: Timeline
    disk: SimDisk
    chronicle: Chronicle
    life: Life | None

    def wall_ns(self) -> int: ...

    def next_number(self) -> int: ...

    def say(self, line: str) -> None: ...

    def on_recovered(self, journal: WatchedJournal) -> None: ...
