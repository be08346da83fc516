"""A worker's post: its connection to the broker, and which of its slots are taken.

    INFORM ──► ACK: READY per free slot ──► REQUEST: a run begins ──► it ends: REPLY and READY
    lost, silent for 15 s, or DISCONNECT ──► the same again under a new identity; runs go on, and are answered there

A run over its time is answered with a failure at once, but its slot stays taken until it has really ended.
The post never runs a job, and no job runs in its loop: heartbeats go out however busy the jobs are.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from typing import Final, Protocol

import msgspec

from dragoman.client.address import WORKER, Address
from dragoman.client.body import failure_of
from dragoman.client.line import Line
from dragoman.client.link import Link, ZmtpLink
from dragoman.client.sides import new_identity
from dragoman.client.worker.settings import WorkerSettings
from dragoman.dialects.emqp.client_side import MessageIds
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.emqp.worker_side import WorkerSide
from dragoman.limits import MESSAGE_SIZE_MAX, NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable_bytes

SWEEP_S: Final = 0.05
VALUE_SIZE_MAX: Final = MESSAGE_SIZE_MAX - 1024  # room for the other frames of a REPLY

log = logging.getLogger("dragoman.worker")


class Crew(Protocol):
    """Who runs the jobs."""

    def give(self, jobs: list[tuple[int, bytes]]) -> None:
        """Begin these runs: (run number, body)."""

    def cancel(self, run_no: int) -> None:
        """A run is over its time: end it if that is possible."""


class Run:
    """A job under way."""

    __slots__ = ("is_answered", "request_id", "timeout_s", "until")

    def __init__(self, request_id: bytes, timeout_s: float) -> None:
        self.request_id = request_id
        self.timeout_s = timeout_s
        self.until = 0.0
        self.is_answered = False


class Post:
    """One worker, as the broker sees it. Lives in one loop; `ended` must be called there."""

    def __init__(
        self, address: Address, settings: WorkerSettings, queues: tuple[tuple[int, str], ...], crew: Crew
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_serving = asyncio.Event()  # the broker has taken us on
        self._settings = settings
        self._queues = msgspec.json.encode(queues)
        self._names = ", ".join(name for _, name in queues)
        self._crew = crew
        self._ids = MessageIds(id_prefix_of(os.urandom(10)))
        self._line = Line(address, WORKER, self._make, self._up, self._down)
        self._link: Link | None = None
        self._side: WorkerSide | None = None
        self._has_said_ready = False
        self._run_no = 0
        self._runs: dict[int, Run] = {}
        self._timed: dict[int, Run] = {}
        self._unsaid: list[tuple[bytes, bytes]] = []  # answers waiting for a connection; at most one per slot
        self._is_leaving = False
        self._is_dismissed = False
        self._program = new_identity()  # the same on every connection, so that a dismissal outlasts one
        self._told_problem = self._line.problem
        self._idle = asyncio.Event()
        self._timers: list[asyncio.TimerHandle] = []

    @property
    def runs(self) -> int:
        return len(self._runs)

    def start(self) -> None:
        self._line.start()
        self._beat()

    # -- the connection -------------------------------------------------------------------------------------------------

    def _make(self) -> Link:
        self._side = WorkerSide(new_identity(), MESSAGE_SIZE_MAX, self._ids)
        self._side.zmtp.program = self._program
        self._has_said_ready = False
        return ZmtpLink(self._side.zmtp, self._hear)

    def _up(self, link: Link) -> None:
        assert self._side is not None
        self._link = link
        if self._is_leaving:
            # No INFORM any more; an answer is matched by its request's id alone.
            self._has_said_ready = True
            self._say_unsaid(self._side)
        else:
            self._side.inform(self._queues)
        self._flush()

    def _down(self) -> None:
        self._link = None
        if self.is_serving.is_set():
            log.warning("lost the broker: %s", self._line.problem)
        self.is_serving.clear()

    def _hear(self, data: bytes) -> None:
        side = self._side
        assert side is not None
        jobs = side.receive(data)
        if jobs:
            self._begin(jobs)
        if side.is_acknowledged and not self._has_said_ready:
            self._enlist(side)
        if side.is_dismissed != self._is_dismissed:
            self._tell_dismissed(side.is_dismissed)
        if side.is_sent_away and self._link is not None:
            self._link.abort("the broker sent us away: we inform again")

    def _tell_dismissed(self, is_dismissed: bool) -> None:
        self._is_dismissed = is_dismissed
        if is_dismissed:
            log.warning("dismissed by the operator: what runs is finished, nothing new comes until we are admitted")
        elif self.is_serving.is_set():
            log.info("admitted by the operator")

    def _enlist(self, side: WorkerSide) -> None:
        self._has_said_ready = True
        self._say_unsaid(side)
        if not self._is_leaving:
            side.ready(max(0, self._settings.slots - len(self._runs)))
        self._flush()
        self.is_serving.set()
        log.info("serving %s with %d slots", self._names, self._settings.slots)

    def _say_unsaid(self, side: WorkerSide) -> None:
        for request_id, value in self._unsaid:
            side.reply(request_id, value)
        self._unsaid.clear()

    def _flush(self) -> None:
        if self._link is not None and self._side is not None:
            data = self._side.take_out()
            if data:
                self._link.send(data)

    # -- runs -----------------------------------------------------------------------------------------------------------

    def _begin(self, jobs: list[tuple[bytes, float, bytes]]) -> None:
        given: list[tuple[int, bytes]] = []
        run_no = self._run_no
        for request_id, timeout_s, body in jobs:
            run_no += 1
            run = self._runs[run_no] = Run(request_id, timeout_s)
            given.append((run_no, body))
            if timeout_s > 0:
                run.until = self.loop.time() + timeout_s
                if not self._timed:
                    self._timers.append(self.loop.call_later(SWEEP_S, self._sweep))
                self._timed[run_no] = run
        self._run_no = run_no
        self._crew.give(given)

    def ended(self, done: list[tuple[int, bytes]]) -> None:
        """Runs have ended, with these values."""
        side = self._side if self._link is not None and self._has_said_ready else None
        for run_no, value in done:
            run = self._runs.pop(run_no, None)
            if run is None:
                continue
            if run.timeout_s:
                self._timed.pop(run_no, None)
            if not run.is_answered:
                self._answer(side, run, value)
            if side is not None and not self._is_leaving:
                side.ready(1)
        if side is not None:
            self._flush()
        if not self._runs:
            self._idle.set()

    def _answer(self, side: WorkerSide | None, run: Run, value: bytes) -> None:
        run.is_answered = True
        if len(value) > VALUE_SIZE_MAX:  # the broker would end the connection, and every job here would go back
            text = f"the result has {len(value)} bytes; at most {VALUE_SIZE_MAX} are allowed"
            value = failure_of(ValueError(text))
        if side is not None:
            side.reply(run.request_id, value)
        else:
            self._unsaid.append((run.request_id, value))

    def _sweep(self) -> None:
        now = self.loop.time()
        side = self._side if self._link is not None and self._has_said_ready else None
        for run_no, run in [(n, r) for n, r in self._timed.items() if r.until <= now]:
            del self._timed[run_no]
            request = printable_bytes(run.request_id, NAME_SHOWN_SIZE_MAX)
            log.warning("run %s took longer than its %g s", request, run.timeout_s)
            self._answer(side, run, failure_of(TimeoutError(f"the job took longer than {run.timeout_s:g} s")))
            self._crew.cancel(run_no)
        self._flush()
        self._timers = [timer for timer in self._timers if not timer.cancelled() and timer.when() > now]
        if self._timed:
            self._timers.append(self.loop.call_later(SWEEP_S, self._sweep))

    # -- life signs -----------------------------------------------------------------------------------------------------

    def _beat(self) -> None:
        link, side = self._link, self._side
        if link is not None and side is not None:
            if self.loop.time() - link.heard_at > self._settings.broker_lost_s:
                link.abort(f"the broker was silent for {self._settings.broker_lost_s:g} s")
            elif self._has_said_ready and not self._is_leaving:
                side.heartbeat(f"{time.time():.6f}".encode())
                self._flush()
        elif self._line.problem != self._told_problem:
            self._told_problem = self._line.problem
            log.warning("no broker yet: %s", self._told_problem)
        self._timers = [timer for timer in self._timers if not timer.cancelled() and timer.when() > self.loop.time()]
        self._timers.append(self.loop.call_later(self._settings.heartbeat_s, self._beat))

    # -- the end --------------------------------------------------------------------------------------------------------

    async def drain(self) -> bool:
        """Take nothing new, let runs end; True when all did in time."""
        self._is_leaving = True
        if self._side is not None and self._link is not None:
            self._side.goodbye()
            self._flush()
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
        for timer in self._timers:
            timer.cancel()
        await self._line.close()
