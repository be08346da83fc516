"""One worker from the broker's point of view: its connections, and which of its slots are in use.

At most `slots` runs are active at once, whatever the broker sends: ebus, for one, has no slots and sends a worker all its requests. Jobs
beyond the slots wait here in order of arrival.

A run that exceeds its timeout is answered with a failure immediately, but occupies its slot until it has really ended.
The session never runs a job, and no job runs in its loop: heartbeats go out however busy the jobs are.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final, Protocol

from dragoman.client.address import Address
from dragoman.client.body import failure_of
from dragoman.client.connection import new_identity, new_message_ids
from dragoman.client.features import queue_at
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.connection import ConnectionLease, WorkerConnection
from dragoman.dialects.endpoint import ENVELOPE_SIZE, EndpointSetup
from dragoman.errors import Refused
from dragoman.limits import MESSAGE_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable_bytes

SWEEP_S: Final = 0.05
LOOK_S: Final = 1.0
VALUE_SIZE_MAX: Final = MESSAGE_SIZE_MAX - ENVELOPE_SIZE

log = logging.getLogger("dragoman.worker")


class Crew(Protocol):
    """Runs the jobs."""

    def give(self, jobs: list[tuple[int, bytes]]) -> None:
        """Start these runs: (run number, body)."""

    def cancel(self, run_no: int) -> None:
        """End a run that exceeded its timeout or that the broker withdrew, if that is possible."""


class Run:
    """A job that was received and has not ended."""

    __slots__ = ("is_answered", "lease", "request_id", "timeout_s", "until")

    def __init__(self, lease: ConnectionLease, request_id: bytes, timeout_s: float) -> None:
        self.lease = lease
        self.request_id = request_id
        self.timeout_s = timeout_s
        self.until = 0.0
        self.is_answered = False


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
        self._runs: dict[int, Run] = {}  # running or waiting
        self._waiting: deque[tuple[int, bytes]] = deque()
        self._busy = 0
        self._timed: dict[int, Run] = {}
        self._idle = asyncio.Event()
        self._told_problem = self._connections[0].problem
        self._sweeper: asyncio.TimerHandle | None = None
        self._looker: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> int:
        return len(self._runs)

    def start(self) -> None:
        for connection in self._connections:
            connection.start()
        self._look()

    # -- for its connections --------------------------------------------------------------------------------------------

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
        taken = len(self._runs) if self._profile.answers_survive else 0
        return max(0, self._settings.slots - taken)

    def begin(self, lease: ConnectionLease, jobs: list[tuple[bytes, float, bytes]]) -> None:
        run_no = self._run_no
        given: list[tuple[int, bytes]] = []
        for request_id, timeout_s, body in jobs:
            run_no += 1
            run = self._runs[run_no] = Run(lease, request_id, timeout_s)
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

    def withdraw(self, lease: ConnectionLease, request_ids: list[bytes]) -> None:
        found = {run.request_id: run_no for run_no, run in self._runs.items() if run.lease is lease}
        for request_id in request_ids:
            run_no = found.get(request_id)
            if run_no is not None:
                self._runs[run_no].is_answered = True
                self._crew.cancel(run_no)

    def _look(self) -> None:
        """Log each reason for having no broker once."""
        problem = self._connections[0].problem
        if not self._connections[0].is_serving and problem != self._told_problem:
            self._told_problem = problem
            log.warning("no broker yet: %s", problem)
        self._looker = self.loop.call_later(LOOK_S, self._look)

    # -- runs -----------------------------------------------------------------------------------------------------------

    def _give(self) -> None:
        given: list[tuple[int, bytes]] = []
        waiting = self._waiting
        while waiting and self._busy < self._settings.slots:
            job = waiting.popleft()
            run = self._runs[job[0]]
            if run.is_answered or (run.lease.is_lost and not self._profile.answers_survive):
                # Withdrawn, timed out, or another worker has it by now.
                del self._runs[job[0]]
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
            run = self._runs.pop(run_no, None)
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
        if not self._runs:
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

    # -- the end --------------------------------------------------------------------------------------------------------

    async def drain(self) -> bool:
        """Accept no new jobs and wait for the running ones; True when all ended within `drain_s`."""
        for connection in self._connections:
            connection.leave()
        self._idle.clear()
        if self._runs:
            log.info("draining: %d jobs still run", len(self._runs))
            try:
                async with asyncio.timeout(self._settings.drain_s):
                    await self._idle.wait()
            except TimeoutError:
                log.warning(
                    "%d jobs did not end within %g s; the broker gives them to others",
                    len(self._runs),
                    self._settings.drain_s,
                )
                return False
        return True

    async def close(self) -> None:
        for timer in (self._sweeper, self._looker):
            if timer is not None:
                timer.cancel()
        await asyncio.gather(*(connection.close() for connection in self._connections))


def too_large(value: bytes) -> bytes:
    """The failure sent instead of an oversized result: the broker would close the connection and take back every job on it."""
    return failure_of(ValueError(f"the result has {len(value)} bytes; at most {VALUE_SIZE_MAX} are allowed"))
