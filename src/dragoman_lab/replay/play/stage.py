"""The environment of a replay: one simulated broker, a clock that is moved by hand, and connections without delay or loss.

Everything at one instant happens in the order of the story, each in a tick of its own. The wall clock shows the time of the original
story: expiries go by tenths of its seconds.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dragoman.core.core import Core
from dragoman.journal.settings import JournalSettings
from dragoman.limits import NO_BOUND
from dragoman.model.facts.decode import decode_block
from dragoman.runtime.config import Config
from dragoman_lab.sim.plan import DIRECTORY, Plan
from dragoman_lab.sim.world import World

SEGMENT_SIZE = 1 << 22
SIZE_MAX = 1 << 40  # nothing is ever dropped

Fact = dict[str, Any]


class Stage(World):
    """The environment of one story. `on_fact` is called for each fact as soon as it is stored."""

    def __init__(self, config: Config, start_ns: int, on_fact: Callable[[Fact], None]) -> None:
        journal = JournalSettings(DIRECTORY, "os", SEGMENT_SIZE, SIZE_MAX, zero_fill=False)
        super().__init__(0, plan=Plan(config, journal))
        self.wall_start_ns = start_ns
        self.is_healing = True  # nothing fails by chance
        self._on_fact = on_fact
        self._blocks_read = 0
        self.start()

    def start(self) -> None:
        super().start()
        # Gates alone decide when a worker is given something: its output never blocks it.
        self.running.broker.outboxes.output_step_size = NO_BOUND
        self.settle()

    def end(self, *, is_power: bool = False) -> None:
        """Kill the process. The next one finds what it had written."""
        super().end(is_power=is_power)
        self.settle()

    def act(self, change: Callable[[Core], object]) -> None:
        super().act(change)
        self.settle()

    def settle(self) -> None:
        """Run everything that is due now, and all that follows from it at the same instant."""
        self.advance(self.timeline.now_ns)

    def run_ready(self) -> None:
        super().run_ready()
        while self._blocks_read < len(self.chronicle.blocks):
            self._blocks_read += 1
            for fact in decode_block(self.chronicle.blocks[self._blocks_read - 1].records):
                self._on_fact(fact)
