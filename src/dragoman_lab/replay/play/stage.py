"""The environment of a replay: one simulated broker, a clock that is moved by hand, and connections without delay or loss.

Everything at one instant happens in the order of the story, each in a tick of its own. The wall clock shows the time of the original
story: expiries go by tenths of its seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

from dragoman.core.core import Core
from dragoman.journal.settings import JournalSettings
from dragoman.limits import NO_BOUND
from dragoman.model.facts.decode import decode_block
from dragoman.runtime.config import Config
from dragoman_lab.sim.checks.facts import Chronicle
from dragoman_lab.sim.machine.disk import SimDisk
from dragoman_lab.sim.machine.life import Life, WatchedJournal
from dragoman_lab.sim.machine.loop import Timeline
from dragoman_lab.sim.peers.operator import drive
from dragoman_lab.sim.plan import DIRECTORY
from dragoman_lab.sim.steps import bare_plan

SEGMENT_SIZE = 1 << 22
SIZE_MAX = 1 << 40  # nothing is ever dropped

Fact = dict[str, Any]


class Stage:
    """The environment of one story. `on_fact` is called for each fact as soon as it is kept."""

    verbose = False

    def __init__(self, config: Config, start_ns: int, on_fact: Callable[[Fact], None]) -> None:
        self.plan = bare_plan(config, JournalSettings(DIRECTORY, "os", SEGMENT_SIZE, SIZE_MAX, zero_fill=False))
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

    # -- environment of a simulated broker ------------------------------------------------------------------------------

    def wall_ns(self) -> int:
        return self._start_ns + self.timeline.now_ns

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, line: str) -> None:
        """Ignored."""

    def on_recovered(self, journal: WatchedJournal) -> None:
        """Does nothing: a replay has no failing disks; the simulator's seeds test those."""

    # -- the broker -----------------------------------------------------------------------------------------------------

    @property
    def core(self) -> Core:
        assert self.life is not None, "the broker does not run"
        return self.life.core

    def start(self) -> None:
        self.life = Life(self)
        # Gates alone decide when a worker is given something: its output never blocks it.
        self.life.broker.outboxes.output_step_size = NO_BOUND
        self.settle()

    def end(self) -> None:
        """Kill the process. The next one finds what it had written."""
        if self.life is not None:
            self.life.end()
            self.life = None
            self.disk.kill()
            self.settle()

    def act(self, change: Callable[[Core], object]) -> None:
        """Make an operator's change."""
        assert self.life is not None, "the broker does not run"
        drive(self.life.broker.act(change), lambda: None)
        self.settle()

    # -- time -----------------------------------------------------------------------------------------------------------

    def settle(self) -> None:
        """Run everything that is due now, and all that follows from it at the same instant."""
        self.advance(self.timeline.now_ns)

    def advance(self, until_ns: int, is_over: Callable[[], bool] = lambda: False) -> None:
        """Advance time to an instant, or until `is_over`."""
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
