"""A broker on files in memory, in simulated time, with a worker that takes everything that waits.

The broker is the real one from recovery to its connections; only loop, disk and sockets are the simulator's.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.model.units import SECOND_NS
from dragoman.runtime.broker import Broker
from dragoman.runtime.config import Config
from dragoman.runtime.outside import Environment
from dragoman.runtime.recovery import begin_boot, recover
from dragoman.runtime.settings import apply_settings
from dragoman.runtime.upkeep import Upkeep
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.machine.life import SimClock
from dragoman_lab.sim.machine.loop import MS_NS, SimLoop, SimThread, Timeline
from dragoman_lab.sim.machine.net import StillWire, Wire
from tests.damage.specimens import HEAD_MAX, SEGMENT_SIZE

DIRECTORY = "/data/journal"
TOKEN = re.compile(rb"token-[0-9a-f]{15}")
VERSION = b"eMQP/1.0"
SLOTS = 200
QUIET_S = 3  # simulated; a worker that got nothing for so long has everything
CONFIG = replace(Config(), queues=replace(Config().queues, head_max=HEAD_MAX, backoff_initial_s=1.0))


class Stage:
    """Start a broker on `files`; raises what a start raises. Then `drain`."""

    verbose = False

    def __init__(self, files: dict[str, bytes], now_ns: int) -> None:
        self.disk = FakeDisk()
        self.disk.make_directory(DIRECTORY)
        for name, content in files.items():
            self.disk.put(f"{DIRECTORY}/{name}", content)
        self.chance = Random(0)
        self.timeline, self._now_ns, self._numbers = Timeline(), now_ns, 0
        self.loop, self.wires = SimLoop(self.timeline), {}
        self.life = self
        self.journal = Journal.open(
            JournalSettings(DIRECTORY, "os", SEGMENT_SIZE, zero_fill=False), self.disk, now_ns=now_ns
        )
        settings = CoreSettings()
        apply_settings(CONFIG, settings)
        self.core, segments = recover(self.journal, settings)
        clock = SimClock(self, self.core.now_ns)
        begin_boot(self.core, self.journal, clock.now_ns(), bytes(16))
        thread = SimThread(self.loop, lambda: MS_NS)
        upkeep = Upkeep(self.core, self.journal, segments, thread.new_thread)
        self.broker = Broker(
            CONFIG, self.journal, self.core, clock, upkeep, Environment(self.loop.face(), None, bytes(10))
        )
        self.broker.start()
        self.loop.run_ready()

    def wall_ns(self) -> int:
        return self._now_ns + self.timeline.now_ns

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def say(self, line: str) -> None:
        """Nothing is printed."""

    def drain(self) -> Counter[bytes]:
        """Let a worker take all that waits: how often each body came."""
        taker = Taker(self, sorted(self.core.state.queues))
        ends_ns = self.timeline.now_ns + QUIET_S * SECOND_NS
        while (next_ns := self.timeline.next_ns()) is not None and next_ns <= max(
            ends_ns, taker.last_ns + QUIET_S * SECOND_NS
        ):
            self.timeline.take()()
            self.loop.run_ready()
        return taker.bodies

    def set_aside(self) -> dict[int, str]:
        """Quarantined messages by number."""
        return {number: str(m.last_reason) for number, m in self.core.state.quarantine.items()}

    def close(self) -> None:
        self.loop.is_alive = False


class Taker:
    """An eMQP worker that serves every queue and answers every request."""

    name, is_rude = "taker", False

    def __init__(self, stage: Stage, queues: list[bytes]) -> None:
        self.bodies: Counter[bytes] = Counter()
        self.last_ns = 0
        self._stage = stage
        if queues:
            self._wire = StillWire(stage, self, "emqp.worker", b"taker", version=3)
            claims = b"[" + b",".join(b'[10,"%s"]' % name for name in queues) + b"]"
            self._wire.say([b"", VERSION, b"INFORM", b"taker", claims, b"worker", b"bytes"])
            self._beat()

    def _beat(self) -> None:
        if self._wire.is_up:
            self._wire.say([b"", VERSION, b"HEARTBEAT", b"hb", b"1.0"])
            self._stage.timeline.after(SECOND_NS, self._beat)

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        assert frames[2] in (b"ACK", b"REQUEST", b"HEARTBEAT"), frames

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        if frames[2] == b"ACK":
            for _ in range(SLOTS):
                wire.say([b"", VERSION, b"READY", b"rd"])
        elif frames[2] == b"REQUEST":
            self.last_ns = self._stage.timeline.now_ns
            self.bodies[frames[6]] += 1
            wire.say([b"", VERSION, b"REPLY", b"re", b'{"value": 1}', frames[3]])
            wire.say([b"", VERSION, b"READY", b"rd"])

    def on_lost(self, wire: Wire) -> None:
        raise AssertionError("a worker that keeps the protocol was cut off")


def open_messages(core: Core) -> dict[int, int]:
    """Number → place of every message that is open, in memory or on disk."""
    found = {m.number: m.position for m in core.state.messages.values()}
    for queue in core.state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                for at in range(tail.head, len(tail.numbers)):
                    if tail.numbers[at] > 0:
                        found[tail.numbers[at]] = tail.positions[at]
    return found
