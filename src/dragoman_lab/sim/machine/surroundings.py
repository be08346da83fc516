"""The environment that a simulated broker and its connections need; a seed's world and the stage of a replay both provide it."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dragoman_lab.sim.checks.facts import Chronicle
    from dragoman_lab.sim.machine.disk import SimDisk
    from dragoman_lab.sim.machine.life import Life, WatchedJournal
    from dragoman_lab.sim.machine.loop import Timeline
    from dragoman_lab.sim.plan import Plan


class Surroundings(Protocol):
    """Time, randomness, disk, and the facts so far."""

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
