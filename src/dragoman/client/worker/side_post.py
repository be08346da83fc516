"""A worker's post in any dialect with a worker side: its connections, and which of its slots are taken.

No more runs are begun at once than there are slots, whatever the broker sends: ebus, for one, knows no slots and sends a worker all it
has. What came too early waits here, in the order it came.

A run over its time is answered with a failure at once, but its slot stays taken until it has really ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import Final

from dragoman.client import sides
from dragoman.client.address import Address
from dragoman.client.body import failure_of
from dragoman.client.features import queue_at
from dragoman.client.worker.berth import Berth, Stand
from dragoman.client.worker.post import VALUE_SIZE_MAX, Crew
from dragoman.client.worker.settings import WorkerSettings
from dragoman.errors import Refused
from dragoman.limits import NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable_bytes

SWEEP_S: Final = 0.05
LOOK_S: Final = 1.0

log = logging.getLogger("dragoman.worker")


class SideRun:
    """A job in our hands."""

    __slots__ = ("body", "is_answered", "request_id", "stand", "timeout_s", "until")

    def __init__(self, stand: Stand, request_id: bytes, timeout_s: float, body: bytes) -> None:
        self.stand = stand
        self.request_id = request_id
        self.timeout_s = timeout_s
        self.body = body
        self.until = 0.0
        self.is_answered = False


class SidePost:
    """One worker, on as many connections as its dialect wants. Lives in one loop; `ended` must be called there."""

    def __init__(
        self, address: Address, settings: WorkerSettings, queues: tuple[tuple[int, str], ...], crew: Crew
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_serving = asyncio.Event()  # the broker has taken us on, on all our connections
        self._settings = settings
        self._crew = crew
        named = sorted({(weight, queue_at(address, name).encode()) for weight, name in queues}, reverse=True)
        berths, slots = (settings.slots, 1) if address.tongue.one_job else (1, settings.slots)
        try:
            sides.worker_side(address.tongue.name).serve(named, slots)
        except ValueError as error:  # told now, and not at each connection
            raise Refused("INEXPRESSIBLE", str(error)) from None
        self._berths = [Berth(address, named, slots, self._take, self._withdrawn, self._changed) for _ in range(berths)]
        self._names = b", ".join(name for _, name in named).decode()
        self._run_no = 0
        self._runs: dict[int, SideRun] = {}  # begun or waiting
        self._by_request: dict[tuple[Stand, bytes], int] = {}
        self._waiting: deque[int] = deque()
        self._busy = 0
        self._timed: dict[int, SideRun] = {}
        self._is_leaving = False
        self._idle = asyncio.Event()
        self._told_problem = self._berths[0].problem
        self._sweeper: asyncio.TimerHandle | None = None
        self._looker: asyncio.TimerHandle | None = None

    @property
    def runs(self) -> int:
        return len(self._runs)

    def start(self) -> None:
        for berth in self._berths:
            berth.start()
        self._look()

    def _changed(self) -> None:
        if all(berth.is_serving for berth in self._berths):
            if not self.is_serving.is_set():
                log.info("serving %s with %d slots", self._names, self._settings.slots)
            self.is_serving.set()
        else:
            self.is_serving.clear()

    def _look(self) -> None:
        """Tell once why there is no broker."""
        problem = self._berths[0].problem
        if not self._berths[0].is_serving and problem != self._told_problem:
            self._told_problem = problem
            log.warning("no broker yet: %s", problem)
        self._looker = self.loop.call_later(LOOK_S, self._look)

    # -- runs -----------------------------------------------------------------------------------------------------------

    def _take(self, stand: Stand, jobs: list[tuple[bytes, float, bytes]]) -> None:
        for request_id, timeout_s, body in jobs:
            self._run_no += 1
            run = self._runs[self._run_no] = SideRun(stand, request_id, timeout_s, body)
            self._by_request[stand, request_id] = self._run_no
            if timeout_s > 0:
                run.until = self.loop.time() + timeout_s
                self._timed[self._run_no] = run
                if self._sweeper is None:
                    self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)
            self._waiting.append(self._run_no)
        self._begin()

    def _begin(self) -> None:
        given: list[tuple[int, bytes]] = []
        while self._waiting and self._busy < self._settings.slots:
            run_no = self._waiting.popleft()
            run = self._runs[run_no]
            if run.is_answered or run.stand.is_lost:
                self._forget(run_no, run)  # withdrawn, out of time, or another worker has it by now
                continue
            self._busy += 1
            given.append((run_no, run.body))
        if given:
            self._crew.give(given)

    def ended(self, done: list[tuple[int, bytes]]) -> None:
        """Runs have ended, with these values."""
        for run_no, value in done:
            run = self._runs.get(run_no)
            if run is None:
                continue
            self._busy -= 1
            self._answer(run, value)
            self._forget(run_no, run)
        self._begin()
        if not self._runs:
            self._idle.set()

    def _answer(self, run: SideRun, value: bytes) -> None:
        if run.is_answered:
            return
        run.is_answered = True
        if run.stand.is_lost:
            log.warning("the answer to a job was lost with its connection; the broker gives the job to another worker")
            return
        if len(value) > VALUE_SIZE_MAX:  # the broker would end the connection, and every job here would go back
            text = f"the result has {len(value)} bytes; at most {VALUE_SIZE_MAX} are allowed"
            value = failure_of(ValueError(text))
        run.stand.reply(run.request_id, value)

    def _forget(self, run_no: int, run: SideRun) -> None:
        """It has ended, or never began: its slot is free."""
        del self._runs[run_no]
        self._by_request.pop((run.stand, run.request_id), None)
        if run.timeout_s:
            self._timed.pop(run_no, None)
        stand = run.stand
        if not stand.is_lost:
            if not self._is_leaving and not stand.is_leaving:
                stand.side.ready(1)
            stand.push()
            stand.release()

    def _withdrawn(self, stand: Stand, request_ids: list[bytes]) -> None:
        """The broker wants no answer to these any more."""
        for request_id in request_ids:
            run_no = self._by_request.get((stand, request_id))
            if run_no is not None:
                self._runs[run_no].is_answered = True
                self._crew.cancel(run_no)

    def _sweep(self) -> None:
        now = self.loop.time()
        for run_no, run in [(n, r) for n, r in self._timed.items() if r.until <= now]:
            del self._timed[run_no]
            request = printable_bytes(run.request_id, NAME_SHOWN_SIZE_MAX)
            log.warning("run %s took longer than its %g s", request, run.timeout_s)
            self._answer(run, failure_of(TimeoutError(f"the job took longer than {run.timeout_s:g} s")))
            self._crew.cancel(run_no)
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep) if self._timed else None

    # -- the end --------------------------------------------------------------------------------------------------------

    async def drain(self) -> bool:
        """Take nothing new, let runs end; True when all did in time."""
        self._is_leaving = True
        for berth in self._berths:
            berth.leave()
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
        await asyncio.gather(*(berth.close() for berth in self._berths))
