"""The world of one seed: a broker that is started, crashed and healed among its peers, with checks all the time."""

from __future__ import annotations

import copy
import logging
import traceback
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from random import Random

import structlog

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.errors import JournalDamaged, JournalUnavailable
from dragoman.journal.journal import Journal
from dragoman.model.enums import EBUS, EMQP, REFUSAL_CODES
from dragoman.model.facts.records import carried_at
from dragoman.model.units import SECOND_NS
from dragoman.runtime.recovery import recover
from dragoman.runtime.settings import apply_settings
from dragoman_lab.sim.checks.facts import Chronicle
from dragoman_lab.sim.checks.ledger import Ledger
from dragoman_lab.sim.checks.recount import agree, check_bounds, check_memory, recount
from dragoman_lab.sim.machine.disk import PowerCut, SimDisk
from dragoman_lab.sim.machine.failures import Corruption, plan_troubles
from dragoman_lab.sim.machine.life import BrokerRun, WatchedJournal
from dragoman_lab.sim.machine.loop import MS_NS, Timeline
from dragoman_lab.sim.peers.operator import SimOperator, drive
from dragoman_lab.sim.peers.rude import GarbagePeer, Probe, RudePeer
from dragoman_lab.sim.plan import PEERS, Plan, plan_of, with_steps

WALL_START_NS = 1_700_000_000 * SECOND_NS
HEALING_S_MAX = 300
# Limit on pauses between the turns of loads in one world: with more of them everything is late, and a re-sent request may rightly run
# again.
PAUSES_MAX = 40


class World:
    """The whole run of one seed. `say` prints a line for each notable event with --verbose."""

    def __init__(self, seed: int, verbose: bool = False, plan: Plan | None = None) -> None:
        self.seed, self.verbose = seed, verbose
        self.chance = Random(seed)
        self._steps = Random(f"{seed} steps")
        self._pauses_left = PAUSES_MAX
        self.plan = plan if plan is not None else with_steps(plan_of(self.chance), self._steps)
        self.timeline = Timeline()
        self.disk = SimDisk()
        self.disk.capacity = self.disk_size = self.plan.disk_size
        self.chronicle = Chronicle()
        self.ledger = Ledger()
        self.corruption = Corruption()
        self._last_life: BrokerRun | None = None  # of the broker that runs, or ran last
        self.life: BrokerRun | None = None
        self.is_healing = False
        self.wall_start_ns, self.wall_jump_ns = WALL_START_NS, 0
        self.has_lost_time = False  # a boot may count hours as passed that did not
        self.boots = 0
        self.tally: Counter[str] = Counter()
        self._numbers = 0
        self._dying: WatchedJournal | None = None  # the journal that was opened last; also by a start that failed
        self._was_power = False
        self._operator = SimOperator(self)
        self._clients = [PEERS[dialect].client(self, n, kind) for n, (dialect, kind) in enumerate(self.plan.clients)]
        self._rude = [RudePeer(self, n) for n in range(self.plan.rude)]
        self._garbage = [GarbagePeer(self, n) for n in range(self.plan.garbage)]
        self._workers = [
            PEERS[dialect].worker(self, n, shape, temper, slots, self._served())
            for n, (dialect, shape, temper, slots) in enumerate(self.plan.workers)
        ]

    def _served(self) -> list[bytes]:
        return self.chance.sample(self.plan.queues, k=self.chance.randint(1, len(self.plan.queues)))

    def next_number(self) -> int:
        self._numbers += 1
        return self._numbers

    def wall_ns(self) -> int:
        return self.wall_start_ns + self.timeline.now_ns + self.wall_jump_ns

    def act_again(self, least_ms: int, most_ms: int, act: Callable[[], None]) -> BrokerRun | None:
        """Schedule a peer's next action, until the world heals; return the broker if it runs."""
        if self.is_healing:
            return None
        self.timeline.after(self.chance.randint(least_ms, most_ms) * MS_NS, act)
        return self.life

    def set_clock(self, by_ns: int) -> None:
        self.wall_jump_ns += by_ns
        self.has_lost_time = self.has_lost_time or by_ns > 100 * SECOND_NS
        self.chronicle.was_set_back = self.chronicle.was_set_back or by_ns < 0

    def say(self, line: str) -> None:
        if self.verbose:
            print(f"{self.timeline.now_ns / SECOND_NS:9.3f}  {line}")

    def run(self) -> None:
        self.say(f"{self.plan}")
        self.start()
        end_ns = self.plan.seconds * SECOND_NS
        acts = [*(c.act for c in self._clients), *(r.act for r in self._rude), *(g.act for g in self._garbage)]
        for act in [*acts, self._operator.act]:
            self.timeline.at(self.chance.randint(0, 500) * MS_NS, act)
        for worker in self._workers:
            self.timeline.at(self.chance.randint(0, 2000) * MS_NS, worker.come)
        plan_troubles(self, end_ns)
        self.run_until(end_ns)
        self.heal()
        self.check_end()
        self.tally += self.chronicle.tally

    def run_until(self, end_ns: int) -> None:
        while (next_ns := self.timeline.next_ns()) is not None and next_ns <= end_ns:
            try:
                self._step()
            except PowerCut:
                self.crash()
            if self.life is not None and self.chance.random() < 0.03:
                with self.disk.unharmed():
                    self.check()

    def _step(self) -> None:
        """Run the next event; usually all that arrives at one instant is in one tick."""
        self.timeline.take()()
        while self.timeline.next_ns() == self.timeline.now_ns and self.chance.random() < 0.8:
            if self.life is not None and self.life.loop.is_sated:
                self.life.loop.run_ready()
            self.timeline.take()()
        self.run_ready()

    def run_ready(self) -> None:
        if self.life is not None:
            self.life.loop.run_ready()

    def advance(self, until_ns: int, is_over: Callable[[], bool] = bool) -> None:
        """Run every event up to an instant, one by one, or until `is_over`; for runs by explicit steps."""
        self.run_ready()
        while not is_over():
            next_ns = self.timeline.next_ns()
            if next_ns is None or next_ns > until_ns:
                self.timeline.now_ns = max(until_ns, self.timeline.now_ns)
                return
            self.timeline.take()()
            self.run_ready()

    @property
    def running(self) -> BrokerRun:
        assert self.life is not None, "the broker does not run"
        return self.life

    def act(self, change: Callable[[Core], object]) -> None:
        drive(self.running.broker.act(change), lambda: None)

    def start(self) -> None:
        if self.life is not None:
            return
        self.disk.restore()
        if self.chance.random() < 0.1 and self.boots and not self.is_healing:
            self.disk.cut_after(self.chance.randint(0, 40))  # it dies during recovery
        try:
            self.life = BrokerRun(self)
        except PowerCut:
            self.say("dies while it starts")
            self.crash()
        except JournalDamaged as refusal:
            self.say(f"refuses to start: {refusal}")
            self.corruption.restore(self, refusal)
            self.crash()
        except (JournalUnavailable, OSError) as trouble:
            self.say(f"cannot start: {trouble}")
            self._make_room()
            self.crash()
        else:
            self._last_life = self.life
            self.life.loop.pauses = self._pauses
            self.boots += 1
            self.disk.restore()
            self.say(f"started: boot {self.life.core.state.boot_no}, {len(self.chronicle.open)} open")

    def _pauses(self) -> bool:
        """Whether something else happens before the next turn of a load."""
        if self.life is None or self.life.core.dispatch.load is None:
            return False
        self.tally["step of a load"] += 1
        if self._pauses_left == 0 or self._steps.random() >= self.plan.pause_share:
            return False
        self._pauses_left -= 1
        return True

    def crash(self) -> None:
        """End the process or the machine, and start again a while later."""
        is_power = self.chance.random() < (0.8 if self.plan.durability == "disk" else 0.15)
        self.say("power is lost" if is_power else "killed")
        self.end(is_power=is_power)
        self.timeline.after(self.chance.randint(1, 1500) * MS_NS, self.start)

    def end(self, *, is_power: bool = False) -> None:
        """End the process, or by a power loss the machine: then any part of the unsynced data may be left."""
        if self.life is not None:
            self.life.end()
        self.life = None
        self._was_power = self._was_power or is_power
        if is_power:
            self.disk.crash(self.chance)
        else:
            self.disk.kill()
        self.ledger.all_disturbed()

    def stop_in_order(self) -> None:
        """SIGTERM: drain, notify the workers, exit."""
        life = self.life
        if life is None or self.is_healing:
            return
        self.say("stops in order")
        life.broker.drain()
        self.timeline.after(1 * SECOND_NS, lambda: self._stop(life))

    def _stop(self, life: BrokerRun) -> None:
        if self.life is not life:
            return
        try:
            self.shut_down(life)
        except JournalUnavailable as trouble:
            self.say(f"the journal does not close: {trouble}")
            self.clear_disk()
        self.end()
        self.timeline.after(self.chance.randint(1, 500) * MS_NS, self.start)

    def shut_down(self, life: BrokerRun) -> None:
        life.broker.say_goodbye()
        life.loop.run_ready()
        life.broker.stop()
        life.loop.run_ready()
        life.end()
        life.journal.close()

    def on_recovered(self, journal: WatchedJournal) -> None:
        """Check what a crash left: a prefix of the facts, with everything in it that was promised."""
        was, self._dying = self._dying, journal
        if was is None:
            return
        if was.tried is not None and journal.next_lsn > self.chronicle.next_lsn:
            self.chronicle.append(*was.tried)  # written, but the power was cut before the append returned
            was.tried = None
        assert journal.next_lsn <= self.chronicle.next_lsn, "there are facts on disk that were never made"
        assert journal.next_lsn > was.synced_lsn, "what was synced is lost"
        if not self._was_power and (self.plan.durability == "os" or was.trouble is None):
            assert journal.next_lsn == self.chronicle.next_lsn, (
                "what was written is lost, although only the process died"
            )
        if journal.next_lsn < self.chronicle.next_lsn:
            self.tally += self.chronicle.tally
            self.chronicle = self.chronicle.cut(journal.next_lsn)
            self.tally -= self.chronicle.tally
        if not self.corruption.numbers:
            self._compare_blocks(journal)
        if self._was_power and self.plan.durability == "os":
            self.ledger.forgive(self.chronicle)
        self.ledger.check_kept(self.chronicle)
        self._was_power = False

    def _compare_blocks(self, journal: WatchedJournal) -> None:
        known = {block.first_lsn: block for block in self.chronicle.blocks if block.count}
        with self.disk.unharmed():
            for found in journal.read(1):
                mine = known[found.first_lsn]
                assert (found.records, found.count, found.time_ns) == (mine.records, mine.count, mine.time_ns)

    def corrupt(self) -> None:
        """Flip a bit on disk, while the broker runs or while it is down."""
        if self._last_life is not None and not self.is_healing:
            self.corruption.strike(self, self._last_life)

    def _make_room(self) -> None:
        """Waiting messages fill the whole disk, and the broker died: the operator frees a little, so that it can start and settle them."""
        if self.disk_size is not None:
            self.disk_size = max(self.disk_size, self.disk.used() + 4 * self.plan.journal.segment_size)
        self.clear_disk()

    def clear_disk(self) -> None:
        self.disk.capacity = self.disk_size
        self.disk.pause_ms = 0
        self.disk.fail_syncs(0)
        self.disk.fail_writes(0)

    def check(self) -> None:
        assert self.life is not None
        recount(self.life.core)
        self._check_signs(self.life)
        check_memory(self.life.broker.memory)
        self.corruption.check(self.chronicle.damaged)
        if self.life.is_settled:
            agree(self.life.core, self.chronicle)
            if self.chance.random() < 0.05:
                check_replica(self, self.life)

    def _check_cut_off(self) -> None:
        if not self._garbage:
            return
        within_s = self.plan.config.limits.handshake_s
        self.run_until(self.timeline.now_ns + round((within_s + 4) * SECOND_NS))
        for garbage in self._garbage:
            garbage.check_cut_off(within_s)

    def _check_signs(self, life: BrokerRun) -> None:
        """Check that the core has no worker that has been silent for too long."""
        now_ns, config = life.core.now_ns, life.broker.config  # it does not advance while a slow disk delays facts
        ebus = config.dialects["ebus"]
        lost_ns = {
            EMQP: int(config.dialects["emqp"].worker_lost_s * SECOND_NS),
            # It is sent a PING each time, and one more interval may pass before the first and after the last.
            EBUS: int((ebus.ping_s * (ebus.pings_max + 2) + ebus.heartbeat_s) * SECOND_NS),
        }
        for peer in life.core.workers.values():
            most_ns = lost_ns.get(peer.dialect)
            assert most_ns is None or peer.work.is_leaving or now_ns - peer.last_sign_ns <= most_ns + SECOND_NS // 2, (
                f"a silent worker is not lost: {peer.identity!r}"
            )

    def heal(self) -> None:
        self.say("healing")
        self.is_healing = True
        self.disk.restore()
        self.clear_disk()
        if self.life is not None and self.life.broker.is_draining:
            self.run_until(self.timeline.now_ns + 2 * SECOND_NS)  # let an orderly stop that had begun finish
        while self.life is None:
            self.run_until(self.timeline.now_ns + SECOND_NS)
            self.start()
        for rude in self._rude:
            if rude.wire is not None:
                rude.wire.cut()
        for worker in self._workers:
            if worker.wire is not None:
                worker.wire.cut()
            worker.be_good()
        for number in range(2):
            PEERS["emqp"].worker(self, 100 + number, "bytes", "good", 50, list(self.plan.queues)).come()
        end_ns = self.timeline.now_ns + HEALING_S_MAX * SECOND_NS
        while True:
            self._operator.heal(self.life)
            self.run_until(self.timeline.now_ns + SECOND_NS)
            if self.timeline.now_ns > end_ns or self._is_quiet():
                break

    def _is_quiet(self) -> bool:
        assert self.life is not None
        is_kept = self.life.kept_lsn() >= self.chronicle.next_lsn - 1  # else replies are still pending
        return not self.chronicle.open and self.life.is_settled and is_kept and not self.life.core.state.schedules

    def check_end(self) -> None:
        """Check the end: everything is settled, nothing is left over, and a new client is served."""
        assert self.life is not None
        end_ns = self.timeline.now_ns + HEALING_S_MAX * SECOND_NS
        while self.timeline.now_ns < end_ns and self.life.core.refusing:
            self.run_until(self.timeline.now_ns + SECOND_NS // 4)
        assert not self.life.core.refusing, f"new work is refused for ever: {REFUSAL_CODES[self.life.core.refusing]}"
        probe = Probe(self, self.plan.queues[0])
        # Not quiet before: the broker may only now have read what a stalled client had sent long ago.
        while self.timeline.now_ns < end_ns and not (probe.is_answered and self._is_quiet()):
            if probe.is_refused and not self.life.core.refusing:
                probe.ask()
            self._operator.heal(self.life)
            self.run_until(self.timeline.now_ns + SECOND_NS // 4)
        assert probe.is_answered, "a new client is not served"
        recount(self.life.core)
        agree(self.life.core, self.chronicle)
        check_bounds(self.life.core)
        check_replica(self, self.life)
        self.ledger.check_counts()
        self.ledger.check_kept(self.chronicle)
        self.ledger.check_end(self.chronicle)
        if self.plan.remembers_keys and not self.has_lost_time:
            self.chronicle.check_keys()
        self._check_cut_off()
        assert set(self.life.broker.connections) == {wire.connection.session for wire in self.life.wires.values()}


def check_replica(world: World, life: BrokerRun) -> None:
    """Promise 4: the state replayed from disk has the same canonical encoding as the state in memory, byte for byte. Open a copy of the disk beside the running broker and compare the states. Record references change at a start, so the record's
    checksum is compared instead of its reference: that also proves that every reference still leads to the right record."""
    if world.plan.durability == "memory" or not life.is_settled or world.corruption.numbers:
        return
    disk = copy.deepcopy(world.disk)
    disk.restore()
    disk.kill()
    disk.capacity = None
    disk.fail_syncs(0)
    disk.fail_writes(0)
    journal = Journal.open(world.plan.journal, disk, now_ns=world.wall_ns())
    settings = CoreSettings()
    apply_settings(world.plan.config, settings)
    replica, _ = recover(journal, settings)
    here, there = fingerprints(life.core, life.journal), fingerprints(replica, journal)
    for mine, other in zip(here, there, strict=False):
        assert mine == other, f"replay differs:\n  live     {mine.hex()}\n  replayed {other.hex()}"
    assert len(here) == len(there)


def fingerprints(core: Core, journal: Journal) -> list[bytes]:
    def checksum(ref: int) -> int:
        record = journal.read_record(ref)
        return zlib.crc32(record[carried_at(record) :])

    return encode(core.state, checksum)


@dataclass(frozen=True, slots=True)
class Verdict:
    """One seed's result. `failure` is empty if every promise held."""

    seed: int
    digest: str
    facts: int
    requests: int
    boots: int
    tally: Counter[str]  # facts by name and reason
    failure: str = ""

    @property
    def replay(self) -> str:
        return f"python -m dragoman_lab.sim --seed {self.seed} --verbose"


def run_seed(seed: int, *, verbose: bool = False) -> Verdict:
    world = World(seed, verbose)
    failure = ""
    with quiet_logs():
        try:
            world.run()
        except Exception:
            failure = traceback.format_exc()
    facts = world.chronicle.next_lsn - 1
    return Verdict(seed, world.chronicle.digest(), facts, len(world.ledger.requests), world.boots, world.tally, failure)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Silence the logs: a broker that crashes a hundred times logs too much."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=False
    )
    try:
        yield
    finally:
        structlog.configure(**before)
