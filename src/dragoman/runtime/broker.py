"""The broker on its event loop: connects core, dialects, journal and connections, driven by one tick.

Everything that has arrived is decoded and decided as it is read. Then the tick commits the facts as one block and sends the resulting
output. One clock read per tick (and one per new connection; a sweep reads it again), one write per connection per tick.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

import structlog

from dragoman import limits
from dragoman.core.core import Core
from dragoman.core.timers import Timers
from dragoman.dialects.description import BROADCASTS, NEWS
from dragoman.dialects.registry import LISTENERS_BY_NAME, Dialects
from dragoman.dialects.session import Outboxes, Session
from dragoman.errors import JournalFull, PeerError
from dragoman.journal.journal import Journal
from dragoman.model.enums import DRAINING, JOURNAL_FAILING, JOURNAL_FULL, PROTOCOL_FAULT, TAKEN
from dragoman.model.units import SECOND_NS
from dragoman.runtime.admission import ADDRESS_FULL, FULL, Admission
from dragoman.runtime.clock import Clock
from dragoman.runtime.committer import DURABLE, STARTED, Committer
from dragoman.runtime.config import Config
from dragoman.runtime.config.targets import ns
from dragoman.runtime.connection import Connection
from dragoman.runtime.fault_log import FaultLog
from dragoman.runtime.memory import MemoryBudget
from dragoman.runtime.outside import Environment
from dragoman.runtime.settings import apply_settings, legacy_listeners
from dragoman.runtime.upkeep import Upkeep

SWEEP_S = 0.1
SETTLE_S = 5.0
# At shutdown, pending output may still be sent: for at most FLUSH_S, and only while it makes progress.
FLUSH_S = 10.0
FLUSH_STALL_S = 1.0
FLUSH_STEP_S = 0.01
T = TypeVar("T")

log = structlog.get_logger("dragoman")


class Broker:
    """All parts of one broker that run on its event loop."""

    def __init__(
        self,
        config: Config,
        journal: Journal,
        core: Core,
        clock: Clock,
        upkeep: Upkeep,
        outside: Environment | None = None,
    ) -> None:
        outside = outside or Environment.real(journal.settings.durability)
        self.config, self.journal, self.core, self.clock, self.upkeep = config, journal, core, clock, upkeep
        self.loop, self.watchdog, upkeep.watchdog = outside.loop, outside.watchdog, outside.watchdog
        self.timers = Timers(core)
        self.outboxes = Outboxes(core)
        self.outboxes.boot_no = core.state.boot_no
        self.dialects = Dialects(self.outboxes, outside.id_seed)
        self.committer = Committer(core, journal, outside, self._on_synced, self._on_written, upkeep.on_appended)
        self.faults = FaultLog()
        self.connections: dict[Session, Connection] = {}
        self.on_stop: Callable[[], None] = lambda: None
        self.is_draining = False
        self.out_buffer_max = 0
        self.admission = Admission(self._drop_unfinished)
        self._ending: set[Connection] = set()
        self._resting: list[Connection] = []  # not read again before the next tick
        self._batch: list[tuple[Session, bytes]] = []  # output that waits for the running sync
        self.memory = MemoryBudget(self, outside.resident_size)
        self._waiters: list[asyncio.Future[None]] = []
        self._batch_waiters: list[asyncio.Future[None]] = []
        self._is_awake = False
        self._is_step_planned = False
        self._is_stopped = False
        self._is_congested = False
        self._still_ns = 0  # the core's time while it stands still; 0: it advances
        self._next_second_ns = 0
        self._swept_ns = 0
        self._was_stalled = False
        self._timer: asyncio.TimerHandle | None = None
        self.apply(config)

    def apply(self, config: Config) -> None:
        """Apply settings, at start and at a reload."""
        self.config = config
        self.admission.apply(config)
        self.outboxes.legacy_listeners = legacy_listeners(config)
        self.memory.apply()
        # The largest message allowed must not look like a peer that does not read.
        self.out_buffer_max = config.limits.out_buffer_max + self.memory.message_size_max
        self.outboxes.output_step_size = min(
            limits.OUTPUT_STEP_SIZE, config.limits.out_buffer_max // 2, self.memory.size_max // 64
        )
        apply_settings(config, self.core.settings)
        for dialect in self.dialects.all:
            apply_settings(config, getattr(dialect, "settings", None))
            dialect.reconfigured()

    # -- the tick -------------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Input arrived: schedule a tick for after everything available has been read."""
        if not self._is_awake:
            self._is_awake = True
            core, now_ns = self.core, self.clock.now_ns()
            before_ns = core.now_ns
            core.set_time(now_ns)
            if self._still_ns or now_ns - before_ns > limits.STILL_NS:
                self._watch_time(before_ns)
            self.loop.call_soon(self.end_tick)

    def _watch_time(self, before_ns: int) -> None:
        """Notice when the core's time stops (while a slow disk delays facts) and when it advances again. Heartbeats received in between carry the
        time of the stop, which is too early: dialects correct them."""
        if self.core.now_ns == before_ns:
            self._still_ns = self._still_ns or before_ns
        elif self._still_ns:
            for dialect in self.dialects.all:
                dialect.went_on(self._still_ns)
            self._still_ns = 0

    def end_tick(self) -> None:
        if self._is_stopped:
            return
        self._is_awake = False
        roster, outboxes = self.core.roster, self.outboxes
        if roster.has_more():
            self.watchdog.run("what was broken off", roster.go_on)
        if outboxes.deferred:
            self.watchdog.run("what was put off", outboxes.catch_up)
        self._commit()
        if self._resting:
            resting, self._resting = self._resting, []
            for connection in resting:
                connection.go_on()
        if outboxes.stop_requested:
            outboxes.stop_requested = False
            self.on_stop()
        self.watchdog.end_turn()
        if roster.has_more() or outboxes.deferred:
            self.wake()

    def _commit(self) -> None:
        outboxes = self.outboxes
        found = self.committer.commit()
        if found == DURABLE:
            outboxes.send_all()
            if outboxes.finished:
                self._end_finished()
            if self._waiters:
                _tell(self._waiters)
            if outboxes.full:
                self._release_full()
        else:
            outboxes.send_free()
            if found == STARTED:
                self._batch += outboxes.take_batch()
                self._batch_waiters += self._waiters
                self._waiters.clear()
        if self.core.refusing == TAKEN and not (self.committer.trouble is None and self.journal.accepts_new_work):
            self._check_trouble()  # at once: what is left of a full disk is for settling
        if self.upkeep.has_more and not self._is_step_planned:
            self._is_step_planned = True
            self.loop.call_later(limits.CHECKPOINT_PAUSE_S, self._next_step)
        self._check_congestion()
        self.memory.check()

    def _release_full(self) -> None:
        self.wake()
        self.outboxes.release_full()

    def _next_step(self) -> None:
        """Run a commit, which writes the next step of the checkpoint in progress."""
        self._is_step_planned = False
        self.wake()

    def _on_synced(self) -> None:
        """The facts that the batch waited for are durable: send it, and commit what has accumulated since."""
        if self._is_stopped:
            return
        batch, self._batch = self._batch, []
        for session, data in batch:
            self.outboxes.traffic_size += len(data)
            session.sink(data)
        if self.outboxes.full:
            self._release_full()
        self._end_finished()
        _tell(self._batch_waiters)
        self._commit()

    def _on_written(self) -> None:
        """A large block was written: commit what has accumulated since. What waits for a sync waits on."""
        if not self._is_stopped:
            self._commit()

    def _end_finished(self) -> None:
        """Close connections whose last output was sent; those with output that waits for a commit are closed later."""
        if not self.outboxes.finished:
            return
        finished, self.outboxes.finished = self.outboxes.finished, []
        syncing = {id(session) for session, _ in self._batch}
        for session in finished:
            connection = self.connections.get(session)
            if connection is None:
                continue
            if session.is_holding or session.is_dirty or id(session) in syncing:
                self.outboxes.finished.append(session)
            else:
                self._end_slowly(connection)

    def _end_slowly(self, connection: Connection) -> None:
        connection.end()
        connection.ending_ns = self.core.now_ns
        self._ending.add(connection)  # until the peer has read the last output, or times out

    async def act(self, change: Callable[[Core], T]) -> T:
        """Run an operator's change. Returns once its facts are durable."""
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
        """Bytes that may wait for a peer before it counts as not reading."""
        output = LISTENERS_BY_NAME[listener].output
        if output == NEWS:
            return limits.NEWS_BUFFER_SIZE
        return self.config.limits.out_buffer_max // 2 if output == BROADCASTS else limits.WRITE_BUFFER_SIZE

    @property
    def batch_size(self) -> int:
        """Bytes that wait for the running sync."""
        return sum([len(data) for _, data in self._batch])

    def rest(self, connection: Connection) -> None:
        """Do not read a connection that sends without pause again before the other connections were read."""
        connection.set_resting(True)
        self._resting.append(connection)

    def forget(self, connection: Connection, session: Session) -> None:
        self.connections.pop(session, None)
        self.admission.leave(connection)
        self._ending.discard(connection)
        self.memory.forget(connection)
        session.note_unfinished(0, True, False)

    def on_fault(self, connection: Connection, fault: PeerError) -> None:
        """Handle a protocol error of a peer: send the error answer, if its protocol has one, and close the connection."""
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
        """Pause or resume reading. A client that does not read, or every client while too much is uncommitted, is paused. A worker is never
        paused, because its replies free memory, and its silence would count against it."""
        session = connection.session
        if session is not None:
            is_over = (
                session.is_socket_full or self._is_congested or connection.is_sender_paused or connection.waits_its_turn
            )
            connection.set_paused(is_over and not session.holds_work())

    def _check_congestion(self) -> None:
        size = self.committer.unsynced_size
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
        self.outboxes.wall_ns = wall_ns
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
        """Whether this process was suspended or starved of CPU. Input from that time is still unread in the sockets, so
        no peer counts as silent or late before it has been read."""
        stall_ns = now_ns - self._swept_ns
        self._swept_ns = now_ns
        # Under permanent stalls, every other sweep still runs.
        self._was_stalled = stall_ns > limits.STALL_NS and not self._was_stalled
        if stall_ns > limits.STALL_NS:
            log.warning("the broker stood still", seconds=round(stall_ns / SECOND_NS, 3))
            for dialect in self.dialects.all:
                dialect.excuse(stall_ns)
        return self._was_stalled

    def _each_second(self, now_ns: int) -> None:
        self.faults.each_second()
        step_ns = self.clock.step_ns(limits.CLOCK_STEP_NS)
        if step_ns:
            log.warning("the wall clock stepped", seconds=step_ns / SECOND_NS)
            self.timers.clock_stepped(step_ns)
        self._end_impatiently(now_ns - ns(self.config.limits.handshake_s))
        self.memory.end_stalled(self.core.now_ns - ns(self.config.limits.unfinished_s))
        self.memory.each_second()

    def _end_impatiently(self, before_ns: int) -> None:
        """Abort connections that began their handshake, or their close, before `before_ns` and have not finished it."""
        for connection in self.admission.late(before_ns):
            self._log_ended(connection, "no handshake in time", code="HANDSHAKE_TIMEOUT")
            connection.abort()
        for connection in list(self._ending):
            if connection.ending_ns < before_ns:
                connection.abort()

    def _check_trouble(self) -> None:
        """Refuse new work while the journal cannot store it; accept it again when it can."""
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
        """Accept no new work from now on; workers may finish what they hold."""
        self.is_draining = True
        self.core.refusing = DRAINING
        self.core.dispatch.is_stopped = True
        for dialect in self.dialects.all:
            dialect.draining()
        self.wake()

    @property
    def leases(self) -> int:
        return sum(len(worker.work.leases) for worker in self.core.workers.values())

    def say_goodbye(self) -> None:
        for dialect in self.dialects.all:
            dialect.closing()
        self.wake()

    async def wait_durable(self) -> None:
        """Wait until everything decided so far is durable and sent, for at most SETTLE_S."""
        await asyncio.wait([asyncio.ensure_future(self.act(lambda core: None))], timeout=SETTLE_S)

    async def flush(self, hurry: asyncio.Event) -> None:
        """Wait until pending output has been sent, as long as peers keep reading; `hurry` ends the wait."""
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
        """Stop deciding, committing and sending: after an internal error the state in memory is in doubt, the journal is not."""
        self._is_stopped = True

    def stop(self) -> None:
        """Close every connection. No tick may follow, because the owner closes the journal afterwards."""
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
