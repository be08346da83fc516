"""One run of a broker, from recovery to its end: the real journal, core, dialects, connections and tick."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dragoman.core.settings import CoreSettings
from dragoman.journal.journal import Journal
from dragoman.runtime.broker import Broker
from dragoman.runtime.clock import Clock
from dragoman.runtime.outside import Environment
from dragoman.runtime.recovery import begin_boot, recover
from dragoman.runtime.settings import apply_settings
from dragoman.runtime.upkeep import Upkeep
from dragoman.runtime.watchdog import Watchdog
from dragoman_lab.sim.checks.facts import Chronicle
from dragoman_lab.sim.checks.recount import agree
from dragoman_lab.sim.machine.loop import MS_NS, SimLoop, SimThread

if TYPE_CHECKING:
    from dragoman_lab.sim.machine.net import Wire
    from dragoman_lab.sim.world import World

# Few, so that checkpoints of so small a state take many steps, and facts are written between them.
CHECKPOINT_STEP_COUNT = 3
PIECE_SIZE = 65_536  # written or read: counts as one unit of work


class WatchedJournal(Journal):
    """Adds every appended block to the chronicle; `tried` is the block that it was appending when the power was cut."""

    chronicle: Chronicle | None = None
    tried: tuple[bytes, int, int] | None = None

    def append(
        self, parts: list[bytes], count: int, time_ns: int, *, settling: bool = False, position: int | None = None
    ) -> int:
        records = b"".join(parts)
        self.tried = (records, count, time_ns)
        last = super().append(parts, count, time_ns, settling=settling, position=position)
        self.tried = None
        if self.chronicle is not None:
            self.chronicle.append(records, count, time_ns)
        return last


class SimClock(Clock):
    """Wall time at boot, advanced by simulated time, as the real one."""

    def __init__(self, world: World, not_before_ns: int) -> None:
        self._world = world
        self._offset_ns = max(world.wall_ns(), not_before_ns) - world.timeline.now_ns
        self._apart_ns = self.wall_ns() - self.now_ns()

    def now_ns(self) -> int:
        return self._world.timeline.now_ns + self._offset_ns

    def wall_ns(self) -> int:
        return self._world.wall_ns()


class BrokerRun:
    """Made when the broker starts; a crash may end it at any disk operation, also during the start."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.wires: dict[int, Wire] = {}
        self.loop = SimLoop(world.timeline)
        try:
            self._start(world)
        except BaseException:
            self.loop.is_alive = False  # its scheduled callbacks must not run
            raise

    def _start(self, world: World) -> None:
        plan, chance = world.plan, world.chance
        self.journal = WatchedJournal.open(
            plan.journal, world.disk, now_ns=world.wall_ns(), new_broker_id=b"simulated broker"
        )
        world.on_recovered(self.journal)
        settings = CoreSettings()
        apply_settings(plan.config, settings)
        settings.load_step_size = plan.load_step_size
        self.core, segments = recover(self.journal, settings)
        agree(self.core, world.chronicle)
        self.journal.chronicle = world.chronicle
        clock = SimClock(world, self.core.now_ns)
        begin_boot(self.core, self.journal, clock.now_ns(), b"simulated id key")
        thread = SimThread(self.loop, lambda: (chance.choice(plan.sync_ms) + world.disk.pause_ms) * MS_NS)
        commit_thread = thread if plan.durability == "disk" else None
        write_thread = None if plan.durability == "memory" else thread  # as `Environment.real`
        # The watchdog's clocks stand still: simulated callbacks take no time.
        outside = Environment(
            self.loop.face(), commit_thread, chance.randbytes(10), Watchdog(int, int), write_thread=write_thread
        )
        upkeep = Upkeep(self.core, self.journal, segments, thread.new_thread)
        upkeep.checkpoint_step = CHECKPOINT_STEP_COUNT
        upkeep.live_step, upkeep.carry_size = plan.live_step, plan.load_step_size
        self.broker = Broker(plan.config, self.journal, self.core, clock, upkeep, outside)
        self.loop.work = self.work
        self.broker.start()

    def work(self) -> int:
        """Units of work so far: facts made, disk operations, pieces of 64 KiB read and written."""
        disk = self.world.disk
        facts = self.world.chronicle.next_lsn + self.broker.committer.stuck_count + self.core.log.count
        return facts + disk.operations + disk.moved_size // PIECE_SIZE

    @property
    def is_settled(self) -> bool:
        return self.core.log.size() == 0 and not self.broker.committer.is_stuck and self.journal.trouble is None

    def kept_lsn(self) -> int:
        """The highest lsn that is as durable as promised."""
        return self.journal.synced_lsn if self.world.plan.durability == "disk" else self.world.chronicle.next_lsn - 1

    def end(self) -> None:
        """End the process: its connections break."""
        self.loop.is_alive = False
        for wire in list(self.wires.values()):
            wire.broken_off()
