"""One worker from the broker's point of view: its connections, and which of its slots are in use.

At most `slots` runs are active at once, whatever the broker sends: ebus, for one, has no slots and sends a worker all its requests. Jobs
beyond the slots wait here in order of arrival.

A run that exceeds its timeout is answered with a failure immediately, but occupies its slot until it has really ended.
The session never runs a job, and no job runs in its loop: heartbeats go out however busy the jobs are.

    WorkerSession ─┬─ WorkerConnection (one; in a dialect with one job per connection, one per slot)
                   │     ├─ ReconnectingConnection ── the current Link; makes the next one when it is lost
                   │     └─ ConnectionLease of each Link that is not lost: the current one, and old ones kept open for their answers
                   └─ Run of each job ──► the ConnectionLease it came on ──► WorkerConnection, endpoint, Link

A `ConnectionRuns` outlasts its `Link` (`is_lost`) until the last `Run` that refers to it has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

import msgspec

from dragoman.client.address import Address
from dragoman.client.body import failure_of
from dragoman.client.connection import ReconnectingConnection, new_identity, new_message_ids
from dragoman.client.features import queue_at
from dragoman.client.link import Link
from dragoman.client.worker import WorkerSettings
from dragoman.dialects.description import WORKER
from dragoman.dialects.endpoint import ENVELOPE_SIZE, EndpointSetup, WorkerEndpoint
from dragoman.errors import Refused
from dragoman.limits import MESSAGE_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable_bytes

SWEEP_S: Final = 0.05
LOOK_S: Final = 1.0
SILENT_S: Final = 5.0  # a broker that has not sent a byte by then is given up
VALUE_SIZE_MAX: Final = MESSAGE_SIZE_MAX - ENVELOPE_SIZE

log = logging.getLogger("dragoman.worker")


class Crew(Protocol):
    """Runs the jobs."""

    def give(self, jobs: list[tuple[int, bytes]]) -> None:
        """Start these runs: (run number, body)."""

    def cancel(self, run_no: int) -> None:
        """End a run that exceeded its timeout or that the broker withdrew, if that is possible."""


class ConnectionRuns(msgspec.Struct, eq=False):
    """The jobs of one connection that have not ended."""

    connection: WorkerConnection
    endpoint: WorkerEndpoint
    link: Link[WorkerEndpoint]
    runs: int = 0  # jobs received on it that have not ended
    is_leaving: bool = False
    is_lost: bool = False


class Run(msgspec.Struct, eq=False):
    """A job that was received and has not ended."""

    lease: ConnectionRuns
    request_id: bytes
    timeout_s: float
    until: float = 0.0
    is_answered: bool = False


class WorkerConnection:
    """One connection of a session.

        connect ──► serve ──► accepted by the broker ──► jobs and answers ──► lost, silent or closed by the broker ──► connect …

    Where answers do not survive their connection, an answer whose connection is lost is dropped: the broker has given the job to another
    worker by then. Where they do (eMQP), it is sent on the next connection. A broker that closes its worker connections may still want the
    answers to running jobs (rq, scale0): the old connection stays open until they are sent.
    """

    def __init__(
        self, address: Address, settings: WorkerSettings, queues: list[tuple[int, bytes]], session: WorkerSession
    ) -> None:
        self.is_serving = False
        self.is_dismissed = False
        self._profile = address.profile
        self._settings = settings
        self._queues = queues
        self._session = session
        self._program = new_identity()  # the same on every connection, so that a dismissal by the operator outlasts one
        self._unsent: list[tuple[bytes, bytes]] = []  # answers that wait for a connection; at most one per slot
        self._lease: ConnectionRuns | None = None
        self._leases: dict[Link[WorkerEndpoint], ConnectionRuns] = {}  # of all connections that are not lost
        self._is_leaving = False
        self.connection = ReconnectingConnection(address, WORKER, self._make, self._up, self._down)

    def answer(self, lease: ConnectionRuns, request_id: bytes, value: bytes) -> bool:
        """Send an answer; False when it is lost with its connection."""
        if lease.is_lost:
            if not self._profile.answers_survive:
                return False
            # `is_serving` may still refer to the lost connection.
            if not self.is_serving or self._lease is None or self._lease.is_lost:
                self._unsent.append((request_id, value))
                return True
            lease = self._lease
        lease.endpoint.reply(request_id, value)
        lease.link.push()
        return True

    def finish(self, lease: ConnectionRuns, request_id: bytes, value: bytes | None) -> bool:
        """Answer a job, unless it is already answered (None), and free its slot; False when the answer is lost with its connection."""
        lease.runs -= 1
        if lease.is_lost:
            return self._finish_lost(lease, request_id, value)
        endpoint, link = lease.endpoint, lease.link
        if value is not None:
            endpoint.reply(request_id, value)
        if not lease.is_leaving and not self._is_leaving:
            endpoint.ready(1)
        if not link.is_flush_due:
            link.push()
        if lease.is_leaving and lease.runs <= 0:
            link.close()
        return True

    def _finish_lost(self, lease: ConnectionRuns, request_id: bytes, value: bytes | None) -> bool:
        is_sent = value is None or self.answer(lease, request_id, value)
        carrier = self._lease if self._profile.answers_survive else None
        if carrier is not None and not carrier.is_lost and not self._is_leaving:
            carrier.endpoint.ready(1)
            carrier.link.push()
        return is_sent

    def _make(self, setup: EndpointSetup) -> Link[WorkerEndpoint]:
        setup.program = self._program
        setup.heartbeat_s = self._settings.heartbeat_s
        setup.broker_lost_s = self._settings.broker_lost_s
        endpoint = self._profile.endpoints().worker(setup)
        if not self._is_leaving:
            endpoint.serve(self._queues, self._session.free_slots())
        link = Link(endpoint, self._receive, self._over, self._gone, self._readied, self._profile.hello)
        self._lease = self._leases[link] = ConnectionRuns(self, link.endpoint, link)
        return link

    def _up(self, link: Link[WorkerEndpoint]) -> None:
        link.loop.call_later(SILENT_S, self._check, link)

    def _check(self, link: Link[WorkerEndpoint]) -> None:
        if not link.has_received and not link.lost.is_set():
            link.abort(f"the broker sent nothing for {SILENT_S:g} s")

    def _readied(self, link: Link[WorkerEndpoint]) -> None:
        self.is_serving = True
        # Before the broker learns of free slots: it would assign these jobs to another worker.
        for request_id, value in self._unsent:
            link.endpoint.reply(request_id, value)
        self._unsent.clear()
        if self._is_leaving:
            self._leave(self._leases[link])
        else:
            self._session.connection_changed()

    def _down(self) -> None:
        if self.is_serving:
            self.is_serving = False
            if not self._is_leaving:
                log.warning("lost the broker: %s", self.connection.problem)
            self._session.connection_changed()

    def _receive(self, link: Link[WorkerEndpoint], data: bytes) -> None:
        endpoint = link.endpoint
        jobs = endpoint.receive(data)
        if jobs:
            self._session.begin(self._leases[link], jobs)
        if endpoint.cancelled:
            cancelled, endpoint.cancelled = endpoint.cancelled, []
            self._session.withdraw(self._leases[link], cancelled)
        if endpoint.is_dismissed != self.is_dismissed:
            self._set_dismissed(endpoint.is_dismissed)

    def _set_dismissed(self, is_dismissed: bool) -> None:
        self.is_dismissed = is_dismissed
        if is_dismissed:
            log.warning("dismissed by the operator: what runs is finished, nothing new comes until we are admitted")
        elif self.is_serving:
            log.info("admitted by the operator")

    def _over(self, link: Link[WorkerEndpoint], is_silent: bool) -> None:
        lease = self._leases[link]
        if is_silent:
            link.abort(link.reason)
        elif self._profile.stays and lease.runs > 0:
            lease.is_leaving = True
            link.left.set()
        else:
            # Jobs that end from now on are answered over the next connection, whether or not this one can still send what it has buffered.
            lease.is_lost = self._profile.answers_survive
            link.leave()

    def _gone(self, link: Link[WorkerEndpoint]) -> None:
        self._leases.pop(link).is_lost = True

    def _leave(self, lease: ConnectionRuns) -> None:
        # Where answers survive, the connection stays open: the answer to a job of an earlier connection may have to be sent on it.
        lease.is_leaving = not self._profile.answers_survive
        lease.endpoint.goodbye()
        lease.link.push()
        if lease.runs <= 0 and self._profile.one_job:
            lease.link.close()  # the dialect has no goodbye: the next job would arrive

    def leave(self) -> None:
        """Accept no new jobs; running jobs are still answered, where their connection is open or answers survive."""
        self._is_leaving = True
        if not self._profile.answers_survive:
            self.connection.is_last = True
        if self._lease is not None and self.is_serving:
            self._leave(self._lease)

    async def close(self) -> None:
        for lease in list(self._leases.values()):
            if lease is not self._lease:
                lease.link.close()
        await self.connection.close()


class WorkerSession:
    """One worker, on as many connections as its dialect needs. It belongs to one event loop; `ended` must be called there.

    Raises NotInDialect when the dialect has no such queues, and Refused when it cannot express them.
    """

    def __init__(
        self, address: Address, settings: WorkerSettings, queues: tuple[tuple[int, str], ...], crew: Crew
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_serving = asyncio.Event()  # the broker has accepted all our connections
        self._settings = settings
        self._profile = address.profile
        self._crew = crew
        named = sorted({(weight, queue_at(address, name).encode()) for weight, name in queues}, reverse=True)
        try:
            setup = EndpointSetup(new_identity(), new_message_ids())
            self._profile.endpoints().worker(setup).serve(named, settings.slots)
        except ValueError as error:  # once, instead of at each connection
            raise Refused("INEXPRESSIBLE", str(error)) from None
        count = settings.slots if self._profile.one_job else 1
        self._connections = [WorkerConnection(address, settings, named, self) for _ in range(count)]
        self._names = b", ".join(name for _, name in named).decode()
        self._run_no = 0
        self.runs: dict[int, Run] = {}  # running or waiting
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._busy = 0
        self._timed: dict[int, Run] = {}
        self._idle = asyncio.Event()
        self._logged_problem = self._connections[0].connection.problem
        self._sweeper: asyncio.TimerHandle | None = None
        self._looker: asyncio.TimerHandle | None = None

    def start(self) -> None:
        for connection in self._connections:
            connection.connection.start()
        self._look()

    def connection_changed(self) -> None:
        if all(connection.is_serving for connection in self._connections):
            if not self.is_serving.is_set():
                log.info("serving %s with %d slots", self._names, self._settings.slots)
            self.is_serving.set()
        else:
            self.is_serving.clear()

    def free_slots(self) -> int:
        """The slots for a new connection. Where answers survive, the runs of earlier connections still occupy theirs."""
        if self._profile.one_job:
            return 1
        occupied = len(self.runs) if self._profile.answers_survive else 0
        return max(0, self._settings.slots - occupied)

    def begin(self, lease: ConnectionRuns, jobs: list[tuple[bytes, float, bytes]]) -> None:
        run_no = self._run_no
        given: list[tuple[int, bytes]] = []
        for request_id, timeout_s, body in jobs:
            run_no += 1
            run = self.runs[run_no] = Run(lease, request_id, timeout_s)
            if timeout_s > 0:
                run.until = self.loop.time() + timeout_s
                self._timed[run_no] = run
                if self._sweeper is None:
                    self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)
            given.append((run_no, body))
        self._run_no = run_no
        lease.runs += len(given)
        if not self._waiting and self._busy + len(given) <= self._settings.slots:
            self._busy += len(given)
            self._crew.give(given)
        else:
            self._waiting.extend(given)
            self._give()

    def withdraw(self, lease: ConnectionRuns, request_ids: list[bytes]) -> None:
        found = {run.request_id: run_no for run_no, run in self.runs.items() if run.lease is lease}
        for request_id in request_ids:
            run_no = found.get(request_id)
            if run_no is not None:
                self.runs[run_no].is_answered = True
                self._crew.cancel(run_no)

    def _look(self) -> None:
        """Log each reason for having no broker once."""
        problem = self._connections[0].connection.problem
        if not self._connections[0].is_serving and problem != self._logged_problem:
            self._logged_problem = problem
            log.warning("no broker yet: %s", problem)
        self._looker = self.loop.call_later(LOOK_S, self._look)

    def _give(self) -> None:
        given: list[tuple[int, bytes]] = []
        waiting = self._waiting
        while waiting and self._busy < self._settings.slots:
            job = waiting.popleft()
            run = self.runs[job[0]]
            if run.is_answered or (run.lease.is_lost and not self._profile.answers_survive):
                # Withdrawn, timed out, or another worker has it by now.
                del self.runs[job[0]]
                self._timed.pop(job[0], None)
                run.lease.connection.finish(run.lease, run.request_id, None)
                continue
            self._busy += 1
            given.append(job)
        if given:
            self._crew.give(given)

    def ended(self, done: list[tuple[int, bytes]]) -> None:
        """Handle runs that have ended, with their values."""
        for run_no, value in done:
            run = self.runs.pop(run_no, None)
            if run is None:
                continue
            self._busy -= 1
            if run.timeout_s:
                self._timed.pop(run_no, None)
            lease = run.lease
            answer = None if run.is_answered else value if len(value) <= VALUE_SIZE_MAX else too_large(value)
            if not lease.connection.finish(lease, run.request_id, answer):
                log.warning("the answer to a job was lost with its connection; another worker gets the job")
        if self._waiting:
            self._give()
        if not self.runs:
            self._idle.set()

    def _sweep(self) -> None:
        now = self.loop.time()
        for run_no, run in [(n, r) for n, r in self._timed.items() if r.until <= now]:
            del self._timed[run_no]
            request = printable_bytes(run.request_id, NAME_SHOWN_SIZE_MAX)
            log.warning("run %s took longer than its %g s", request, run.timeout_s)
            if not run.is_answered:
                run.is_answered = True
                failure = failure_of(TimeoutError(f"the job took longer than {run.timeout_s:g} s"))
                run.lease.connection.answer(run.lease, run.request_id, failure)
            self._crew.cancel(run_no)
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep) if self._timed else None

    async def drain(self) -> bool:
        """Accept no new jobs and wait for the running ones; True when all ended within `drain_s`."""
        for connection in self._connections:
            connection.leave()
        self._idle.clear()
        if self.runs:
            log.info("draining: %d jobs still run", len(self.runs))
            try:
                async with asyncio.timeout(self._settings.drain_s):
                    await self._idle.wait()
            except TimeoutError:
                text = "%d jobs did not end within %g s; the broker gives them to others"
                log.warning(text, len(self.runs), self._settings.drain_s)
        return not self.runs

    async def close(self) -> None:
        for timer in (self._sweeper, self._looker):
            if timer is not None:
                timer.cancel()
        await asyncio.gather(*(connection.close() for connection in self._connections))


def too_large(value: bytes) -> bytes:
    """The failure sent instead of an oversized result: the broker would close the connection and take back every job on it."""
    return failure_of(ValueError(f"the result has {len(value)} bytes; at most {VALUE_SIZE_MAX} are allowed"))
