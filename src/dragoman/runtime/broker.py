"""The composition root: core, dialect, journal and connections, driven by one tick.

The tick: everything that has arrived is decoded and decided while it is read; then the facts are committed as one block, and
what they caused is sent. One clock read per tick, one write per connection per tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from dragoman.core.core import Core
from dragoman.core.timers import Timers
from dragoman.dialects.registry import Dialects
from dragoman.dialects.session import Hub, Session
from dragoman.errors import JournalFull, PeerError
from dragoman.journal.journal import Journal
from dragoman.limits import CHECKPOINT_PAUSE_S, CLOCK_STEP_NS, NEWS_BUFFER_SIZE, STALL_NS, STILL_NS, WRITE_BUFFER_SIZE
from dragoman.model.words import DRAINING, JOURNAL_FAILING, JOURNAL_FULL, PROTOCOL_FAULT, TAKEN
from dragoman.runtime.admission import ADDRESS_FULL, FULL, Admission
from dragoman.runtime.clock import Clock
from dragoman.runtime.committer import KEPT, STARTED, Committer
from dragoman.runtime.config import Config
from dragoman.runtime.connection import Connection
from dragoman.runtime.fault_log import FaultLog
from dragoman.runtime.memory import MemoryBudget
from dragoman.runtime.outside import Outside
from dragoman.runtime.settings import apply_core, apply_dialects, legacy_listeners, ns
from dragoman.runtime.upkeep import Upkeep

SWEEP_S = 0.1
TOPIC_LISTENERS = ("emqp.subscribe", "ebus.subscribe")
SCALE0_PUBLISH = "scale0.publish"
SETTLE_S = 5.0
# At the end, what was sent may leave: for so long in all, and while it moves at all.
FLUSH_S = 10.0
FLUSH_STALL_S = 1.0
FLUSH_STEP_S = 0.01
SECOND_NS = 1_000_000_000
T = TypeVar("T")

log = structlog.get_logger("dragoman")


class Broker:
    """Everything of one broker that lives on its loop."""

    def __init__(
        self, config: Config, journal: Journal, core: Core, clock: Clock, upkeep: Upkeep, outside: Outside | None = None
    ) -> None:
        outside = outside or Outside.real(journal.settings.durability)
        self.config, self.journal, self.core, self.clock, self.upkeep = config, journal, core, clock, upkeep
        self.loop, self.watchdog, upkeep.watchdog = outside.loop, outside.watchdog, outside.watchdog
        self.timers = Timers(core)
        self.hub = Hub(core)
        self.hub.boot_no = core.state.boot_no
        self.dialects = Dialects(self.hub, outside.id_seed)
        self.committer = Committer(core, journal, outside, self._on_synced, upkeep.on_appended)
        self.faults = FaultLog()
        self.connections: dict[Session, Connection] = {}
        self.on_stop: Callable[[], None] = lambda: None
        self.is_draining = False
        self.out_buffer_max = 0
        self.admission = Admission(self._drop_unfinished)
        self._ending: set[Connection] = set()
        self._resting: list[Connection] = []  # had their share of this tick
        self._batch: list[tuple[Session, bytes]] = []  # bytes that wait for the sync under way
        self.memory = MemoryBudget(self)
        self._waiters: list[asyncio.Future[None]] = []
        self._batch_waiters: list[asyncio.Future[None]] = []
        self._is_awake = False
        self._is_step_planned = False
        self._is_stopped = False
        self._is_congested = False
        self._still_ns = 0  # where the core's time stands still; 0: it does not
        self._next_second_ns = 0
        self._swept_ns = 0
        self._was_stalled = False
        self._timer: asyncio.TimerHandle | None = None
        self.apply(config)

    def apply(self, config: Config) -> None:
        """Take over settings, at the start and at a reload."""
        self.config = config
        self.admission.apply(config)
        self.hub.legacy_listeners = legacy_listeners(config)
        self.memory.apply()
        # The largest message allowed must not look like a peer that does not read.
        self.out_buffer_max = config.limits.out_buffer_max + self.memory.message_size_max
        apply_core(config, self.core.settings)
        apply_dialects(config, self.dialects)

    # -- the tick -------------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something arrived: there will be a tick once all that is there has been read."""
        if not self._is_awake:
            self._is_awake = True
            self._read_clock()
            self.loop.call_soon(self.tick)

    def _read_clock(self) -> None:
        """The core's time stands still while a slow disk holds facts back. Who signed meanwhile signed later than that time says."""
        before_ns, now_ns = self.core.now_ns, self.clock.now_ns()
        self.core.set_time(now_ns)
        if self.core.now_ns == before_ns:
            if now_ns - before_ns > STILL_NS:
                self._still_ns = before_ns
        elif self._still_ns:
            for dialect in self.dialects.all:
                dialect.went_on(self._still_ns)
            self._still_ns = 0

    def tick(self) -> None:
        if self._is_stopped:
            return
        self._is_awake = False
        roster = self.core.roster
        if roster.has_more():
            self.watchdog.run("what was broken off", roster.go_on)
        self._commit()
        resting, self._resting = self._resting, []
        for connection in resting:
            connection.go_on()
        if self.hub.stop_requested:
            self.hub.stop_requested = False
            self.on_stop()
        self.watchdog.end_turn()
        if roster.has_more():
            self.wake()

    def _commit(self) -> None:
        found = self.committer.commit()
        if found == KEPT:
            self.hub.send_all()
            self._end_finished()
            _tell(self._waiters)
        else:
            self.hub.send_free()
            if found == STARTED:
                self._batch += self.hub.take_batch()
                self._batch_waiters += self._waiters
                self._waiters.clear()
        if self.core.refusing == TAKEN and not (self.committer.trouble is None and self.journal.accepts_new_work):
            self._check_trouble()  # at once: what is left of a full disk is for settling
        if self.upkeep.has_more and not self._is_step_planned:
            self._is_step_planned = True
            self.loop.call_later(CHECKPOINT_PAUSE_S, self._next_step)
        self._check_congestion()
        self.memory.check()

    def _next_step(self) -> None:
        """A checkpoint is under way, and the next of its steps comes with the next commit."""
        self._is_step_planned = False
        self.wake()

    def _on_synced(self) -> None:
        """All that the batch was held for is kept: send it, and go on with what has gathered meanwhile."""
        if self._is_stopped:
            return
        batch, self._batch = self._batch, []
        for session, data in batch:
            self.hub.traffic_size += len(data)
            session.sink(data)
        self._end_finished()
        _tell(self._batch_waiters)
        self._commit()

    def _end_finished(self) -> None:
        """Close the connections whose last word is out; while one still waits for a commit, later."""
        if not self.hub.finished:
            return
        finished, self.hub.finished = self.hub.finished, []
        syncing = {id(session) for session, _ in self._batch}
        for session in finished:
            connection = self.connections.get(session)
            if connection is None:
                continue
            if session.is_holding or session.is_dirty or id(session) in syncing:
                self.hub.finished.append(session)
            else:
                self._end_slowly(connection)

    def _end_slowly(self, connection: Connection) -> None:
        connection.end()
        connection.ending_ns = self.core.now_ns
        self._ending.add(connection)  # until it has read its last words, or its time is up

    async def act(self, change: Callable[[Core], T]) -> T:
        """Let the operator change something; returns once the facts of it are kept."""
        self.wake()
        result = change(self.core)
        waiter: asyncio.Future[None] = self.loop.create_future()
        self._waiters.append(waiter)
        await waiter
        return result

    # -- connections ----------------------------------------------------------------------------------------------------

    def admit(self, connection: Connection) -> Session | None:
        """A session for a new connection, or None at a limit."""
        self.core.set_time(self.clock.now_ns())
        connection.opened_ns = self.core.now_ns
        found = self.admission.admit(connection)
        if found == FULL:
            self._log_ended(connection, "connection refused", code="TOO_MANY_CONNECTIONS")
            return None
        if found == ADDRESS_FULL:
            self._log_ended(connection, "connection refused", code="TOO_MANY_FROM_ADDRESS")
            return None
        session = self.dialects.session(connection.listener)
        self.connections[session] = connection
        return session

    def _drop_unfinished(self, connection: Connection) -> None:
        self._log_ended(connection, "handshake cut short for a new connection", code="HANDSHAKE_PREEMPTED")
        connection.abort()

    def _log_ended(self, connection: Connection, event: str, code: str) -> None:
        self.faults.write_rarely(
            self.core.now_ns, connection.host, event, code, connection.listener, peer=connection.host
        )

    def words_when_full(self, listener: str) -> bytes:
        return self.dialects.of(listener).words_when_full()

    def write_buffer_size(self, listener: str) -> int:
        """Bytes that may wait for a peer before it counts as not reading. What Scale0's workers are told on their PUB port would be
        dropped from there on, so that is given more than one burst."""
        if listener in TOPIC_LISTENERS:
            return NEWS_BUFFER_SIZE
        return self.config.limits.out_buffer_max // 2 if listener == SCALE0_PUBLISH else WRITE_BUFFER_SIZE

    @property
    def batch_size(self) -> int:
        """Bytes that wait for the sync under way."""
        return sum([len(data) for _, data in self._batch])

    def rest(self, connection: Connection) -> None:
        """One that sends without end is not read again before the others have had their turn."""
        connection.set_resting(True)
        self._resting.append(connection)

    def forget(self, connection: Connection, session: Session) -> None:
        self.connections.pop(session, None)
        self.admission.leave(connection)
        self._ending.discard(connection)
        self.memory.forget(connection)
        session.note_unfinished(0, True, False)

    def on_fault(self, connection: Connection, fault: PeerError) -> None:
        """A peer broke its protocol: it is told what its protocol can tell, and its connection ends."""
        session = connection.session
        if session is None or connection.is_over:
            return
        self.core.note(session, fault.code)
        self.faults.write_fault(self.core.now_ns, connection.host, session, fault)
        session.sink(session.take_free() + fault.answer)
        session.lost(PROTOCOL_FAULT)
        self._end_slowly(connection)

    def on_overflow(self, connection: Connection) -> None:
        self.faults.write("peer does not read, connection ended", listener=connection.listener, code="OUT_BUFFER_FULL")
        connection.abort()

    def balance(self, connection: Connection) -> None:
        """A client that does not read, or every client while too much is uncommitted, is not read from; a worker always is: its
        replies drain us, and its silence would count against it."""
        session = connection.session
        if session is not None:
            is_over = session.is_blocked or self._is_congested or connection.is_sender_paused
            connection.set_paused(is_over and not session.holds_work())

    def _check_congestion(self) -> None:
        size = self.committer.uncommitted_size
        most = self.memory.uncommitted_max
        if self._is_congested != (size > (most // 2 if self._is_congested else most)):
            self._is_congested = not self._is_congested
            for connection in list(self.connections.values()):
                self.balance(connection)

    # -- time -----------------------------------------------------------------------------------------------------------

    def start(self) -> None:
        for dialect in self.dialects.all:
            dialect.listening()
        self.watchdog.start()
        self._swept_ns = self.clock.now_ns()
        self._sweep()

    def _sweep(self) -> None:
        run = self.watchdog.run
        now_ns = self.clock.now_ns()
        self.wake()
        if self._has_stalled(now_ns):
            self._timer = self.loop.call_later(SWEEP_S, self._sweep)
            return
        wall_ns = self.clock.wall_ns()
        self.hub.wall_ns = wall_ns
        run("sweep of the core", self.timers.sweep, now_ns, wall_ns)
        for dialect in self.dialects.all:
            run("sweep of a dialect", dialect.sweep, now_ns)
        run("upkeep", self.upkeep.sweep, now_ns)
        run("sweep of the memory budget", self.memory.sweep)
        self._check_trouble()
        if now_ns >= self._next_second_ns:
            self._next_second_ns = now_ns + SECOND_NS
            run("once a second", self._each_second, now_ns)
        wait_s = (run("what is due next", self.timers.when_next) - self.clock.now_ns()) / SECOND_NS
        self._timer = self.loop.call_later(min(max(wait_s, 0.001), SWEEP_S), self._sweep)

    def _has_stalled(self, now_ns: int) -> bool:
        """Whether this process stood still (a stopped machine, a starved one). What peers said meanwhile lies unread in their sockets:
        nobody is silent or late before it has been read."""
        stall_ns = now_ns - self._swept_ns
        self._swept_ns = now_ns
        # One that stalls for ever still sweeps, every other time.
        self._was_stalled = stall_ns > STALL_NS and not self._was_stalled
        if stall_ns > STALL_NS:
            log.warning("the broker stood still", seconds=round(stall_ns / SECOND_NS, 3))
            for dialect in self.dialects.all:
                dialect.excuse(stall_ns)
        return self._was_stalled

    def _each_second(self, now_ns: int) -> None:
        self.faults.each_second()
        step_ns = self.clock.step_ns(CLOCK_STEP_NS)
        if step_ns:
            log.warning("the wall clock stepped", seconds=step_ns / SECOND_NS)
            self.timers.clock_stepped(step_ns)
        self._end_impatiently(now_ns - ns(self.config.limits.handshake_s))
        self.memory.end_stalled(self.core.now_ns - ns(self.config.limits.unfinished_s))
        self.memory.each_second()

    def _end_impatiently(self, before_ns: int) -> None:
        """Cut off those that began to open, or to close, before an instant and have not finished."""
        for connection in self.admission.late(before_ns):
            self._log_ended(connection, "no handshake in time", code="HANDSHAKE_TIMEOUT")
            connection.abort()
        for connection in list(self._ending):
            if connection.ending_ns < before_ns:
                connection.abort()

    def _check_trouble(self) -> None:
        """Refuse new work while the journal cannot keep it; take it again when it can."""
        committer = self.committer
        if committer.trouble is not None and not committer.is_stuck and self.journal.accepts_new_work:
            committer.trouble = None
        trouble = committer.trouble or self.journal.trouble
        refusing = TAKEN
        if self.is_draining:
            refusing = DRAINING
        elif trouble is not None:
            refusing = JOURNAL_FULL if isinstance(trouble, JournalFull) else JOURNAL_FAILING
        elif self.upkeep.is_full:
            refusing = JOURNAL_FULL
        if refusing != self.core.refusing:
            was, self.core.refusing = self.core.refusing, refusing
            if trouble is not None:
                log.error("new work is refused", code=trouble.code, trouble=str(trouble))
            elif was in (JOURNAL_FULL, JOURNAL_FAILING):
                log.info("new work is taken again")

    def drain(self) -> None:
        """No new work from now on; what workers hold they may finish."""
        self.is_draining = True
        self.core.refusing = DRAINING
        self.core.dispatch.is_stopped = True
        for dialect in self.dialects.all:
            dialect.draining()
        self.wake()

    @property
    def leases(self) -> int:
        return sum(len(worker.held) for worker in self.core.workers.values())

    def say_goodbye(self) -> None:
        for dialect in self.dialects.all:
            dialect.closing()
        self.wake()

    async def settle(self) -> None:
        """Wait until everything decided so far is kept and sent, for as long as the journal can keep it."""
        await asyncio.wait([asyncio.ensure_future(self.act(lambda core: None))], timeout=SETTLE_S)

    async def flush(self, hurry: asyncio.Event) -> None:
        """Wait until what was sent has left for its peers, as long as they take it."""
        end_s = self.loop.time() + FLUSH_S
        unsent, moved_s = -1, 0.0
        while not hurry.is_set() and self.loop.time() < end_s:
            was, unsent = unsent, sum(connection.unsent_size for connection in self.connections.values())
            if unsent != was:
                moved_s = self.loop.time()
            if unsent == 0 or self.loop.time() - moved_s > FLUSH_STALL_S:
                return
            await asyncio.sleep(FLUSH_STEP_S)

    def halt(self) -> None:
        """Decide, keep and send nothing more: a fault of our own has left the state in doubt, what is kept is not."""
        self._is_stopped = True

    def stop(self) -> None:
        """End every connection; the journal is closed by its owner afterwards, so no tick may follow."""
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self.connections.values()):
            connection.end()
        self.committer.close()
        self.upkeep.close()


def _tell(waiters: list[asyncio.Future[None]]) -> None:
    for waiter in waiters:
        if not waiter.done():
            waiter.set_result(None)
    waiters.clear()
