"""The stage of a replay: one simulated broker, a clock that is moved by hand, and wires that neither delay nor lose.

Everything that happens at one instant happens in the order in which it was done, each in a tick of its own. The wall clock shows what it
showed when the story happened: expiries go by tenths of its seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from dragoman.core.core import Core
from dragoman.journal.settings import JournalSettings
from dragoman.model.decode import decode_block
from dragoman.runtime.config import Config
from dragoman.testing.sim.disk import SimDisk
from dragoman.testing.sim.facts import Chronicle
from dragoman.testing.sim.life import Life, WatchedJournal
from dragoman.testing.sim.loop import Timeline
from dragoman.testing.sim.operator import drive
from dragoman.testing.sim.plan import DIRECTORY, Plan

SEGMENT_SIZE = 1 << 22
SIZE_MAX = 1 << 40  # nothing is ever dropped

Fact = dict[str, Any]


class Stage:
    """Where a story is played. `on_fact` hears each fact as soon as it is kept."""

    verbose = False

    def __init__(self, config: Config, start_ns: int, on_fact: Callable[[Fact], None]) -> None:
        self.plan = plan_of(config)
        self.chance = Random(0)
        self.timeline = Timeline()
        self.disk = SimDisk()
        self.chronicle = Chronicle()
        self.life: Life | None = None
        self._start_ns = start_ns
        self._on_fact = on_fact
        self._numbers = 0
        self._blocks_told = 0
        self.start()

    # -- what a simulated broker needs around it ------------------------------------------------------------------------

    def wall_ns(self) -> int:
        return self._start_ns + self.timeline.now_ns

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, line: str) -> None:
        """Nobody listens."""

    def on_recovered(self, journal: WatchedJournal) -> None:
        """A replay has no disks that fail: the simulator's seeds look after that."""

    # -- the broker -----------------------------------------------------------------------------------------------------

    @property
    def core(self) -> Core:
        assert self.life is not None, "the broker does not run"
        return self.life.core

    def start(self) -> None:
        self.life = Life(self)
        self.settle()

    def end(self) -> None:
        """The process is killed. What it had written is there for the next one."""
        if self.life is not None:
            self.life.end()
            self.life = None
            self.disk.kill()
            self.settle()

    def act(self, change: Callable[[Core], object]) -> None:
        """Let the operator change something."""
        assert self.life is not None, "the broker does not run"
        drive(self.life.broker.act(change), lambda: None)
        self.settle()

    # -- time -----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Everything that is due by now, and all that follows from it at once."""
        self.advance(self.timeline.now_ns)

    def advance(self, until_ns: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Let time pass until an instant, or until something is over."""
        self._run_ready()
        while not is_over():
            next_ns = self.timeline.next_ns()
            if next_ns is None or next_ns > until_ns:
                self.timeline.now_ns = max(until_ns, self.timeline.now_ns)
                return
            self.timeline.take()()
            self._run_ready()

    def _run_ready(self) -> None:
        if self.life is not None:
            self.life.loop.run_ready()
        blocks = self.chronicle.blocks
        while self._blocks_told < len(blocks):
            block = blocks[self._blocks_told]
            self._blocks_told += 1
            for fact in decode_block(block.records):
                self._on_fact(fact)


def plan_of(config: Config) -> Plan:
    """No guests, no troubles: the story brings its own."""
    return Plan(
        durability="os",
        config=config,
        journal=JournalSettings(DIRECTORY, "os", SEGMENT_SIZE, SIZE_MAX, zero_fill=False),
        queues=(),
        fills=(),
        unfit_share=0.0,
        seconds=0,
        requests_max=0,
        clients=(),
        workers=(),
        rude=0,
        crashes=0,
        troubles=0,
        sync_ms=(1,),
    )
