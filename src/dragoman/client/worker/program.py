"""The `dragoman worker` command: runs jobs in this process or in children, handles signals, drains, and sets the exit code.

With children, this process has one session per child and runs no job itself:

    spawn ──► HELLO: its session starts ──► … ──► the pipe closes: the session is closed, the broker takes its jobs back ──► spawn

So heartbeats continue whatever a child does, and a crash of a child affects only the jobs it was running, which the broker gives to other
workers.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any, Final

import msgspec
import uvloop

from dragoman.client import address
from dragoman.client.worker import SWITCH_INTERVAL_S, WorkerSettings
from dragoman.client.worker.child import CANCEL, ENDED, HELLO, RUN, Orders, Pipe
from dragoman.client.worker.session import WorkerSession
from dragoman.client.worker.worker import Worker, load_app
from dragoman.errors import BadTarget

RESPAWN_FIRST_S: Final = 0.1
RESPAWN_MAX_S: Final = 10.0
STEADY_S: Final = 10.0
END_S: Final = 5.0

log = logging.getLogger("dragoman.worker")


def run(target: str, settings: WorkerSettings, url: str = "", log_level: str = "INFO") -> int:
    """Run until SIGTERM or SIGINT; returns the process's exit code. A second signal exits without waiting for jobs."""
    sys.setswitchinterval(SWITCH_INTERVAL_S)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        if settings.processes == 0:
            return runner.run(_work_here(target, settings, url))
        return runner.run(_work_in_children(target, settings, url, log_level))


async def _work_here(target: str, settings: WorkerSettings, url: str) -> int:
    worker = Worker(load_app(target, url), settings)
    stop = _stop_signal()
    worker.start()
    await stop.wait()
    await worker.stop()
    return 0


async def _work_in_children(target: str, settings: WorkerSettings, url: str, log_level: str) -> int:
    # The parent loads the App only for its address, and to report a bad target once, before it starts a child.
    broker = address.parse(url) if url else load_app(target, "").address
    stop = _stop_signal()
    codes: list[int] = []

    def gave_up(code: int) -> None:
        codes.append(code)
        stop.set()

    children = [
        ChildProcess(number, Orders(target, url, number == 0, log_level, settings), broker, gave_up)
        for number in range(settings.processes)
    ]
    for child in children:
        child.start()
    await stop.wait()
    await asyncio.gather(*(child.stop() for child in children))
    return codes[0] if codes else 0


def _stop_signal() -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def on_signal() -> None:
        if stop.is_set():
            log.warning("signalled to stop twice: not waiting for jobs")
            os._exit(1)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal)
    return stop


class ChildProcess:
    """One child process and its session, replaced together."""

    def __init__(self, number: int, orders: Orders, broker: address.Address, gave_up: Callable[[int], None]) -> None:
        self._number = number
        self._orders = orders
        self._address = broker
        self._gave_up = gave_up
        self._pipe: Pipe | None = None
        self._session: WorkerSession | None = None
        self._gone = asyncio.Event()
        self._has_begun = False
        self._is_stopping = False
        self._process: subprocess.Popen[bytes] | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._keep(), name=f"dragoman child {self._number}")

    async def _keep(self) -> None:
        wait_s = RESPAWN_FIRST_S
        loop = asyncio.get_running_loop()
        while not self._is_stopping:
            began = loop.time()
            await self._spawn()
            await self._gone.wait()
            if self._session is not None:
                await self._session.close()
                self._session = None
            code = await self._reap()
            if self._is_stopping:
                return
            if not self._has_begun and code == BadTarget.exit_code:
                self._gave_up(code)
                return
            log.error("child %d ended with %d; its jobs go back to the broker", self._number, code)
            wait_s = RESPAWN_FIRST_S if loop.time() - began > STEADY_S else min(wait_s * 2, RESPAWN_MAX_S)
            await asyncio.sleep(wait_s)

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            orders = msgspec.json.encode(self._orders).decode()
            command = [sys.executable, "-m", "dragoman.client.worker.child", str(theirs.fileno()), orders]
            # Not asyncio's: uvloop gives a child default signal handlers (`nohup` would end with it) and open descriptors.
            self._process = subprocess.Popen(command, pass_fds=(theirs.fileno(),))  # noqa: ASYNC220 - a fork and exec, no wait
        self._gone.clear()
        self._has_begun = False
        _, self._pipe = await asyncio.get_running_loop().create_connection(
            lambda: Pipe(self._receive, self._gone.set), sock=ours
        )

    async def _reap(self) -> int:
        process = self._process
        assert process is not None
        loop = asyncio.get_running_loop()
        until = loop.time() + END_S
        while process.poll() is None:
            if loop.time() > until:
                process.kill()
            await asyncio.sleep(0.01)
        return process.returncode

    def _receive(self, kind: int, content: Any) -> None:
        if kind == ENDED and self._session is not None:
            self._session.ended([(run_no, value) for run_no, value in content])
        elif kind == HELLO:
            self._has_begun = True
            queues = tuple((int(weight), str(name)) for weight, name in content)
            if queues and not self._is_stopping:
                self._session = WorkerSession(self._address, self._orders.settings, queues, self)
                self._session.start()

    def give(self, jobs: list[tuple[int, bytes]]) -> None:
        if self._pipe is not None:
            self._pipe.send(RUN, jobs)

    def cancel(self, run_no: int) -> None:
        if self._pipe is not None:
            self._pipe.send(CANCEL, run_no)

    async def stop(self) -> None:
        """Drain, then end the child."""
        self._is_stopping = True
        if self._session is not None:
            await self._session.drain()
        if self._pipe is not None:
            self._pipe.close()
        if self._task is not None:
            try:
                async with asyncio.timeout(2 * END_S):
                    await self._task
            except TimeoutError:
                self._task.cancel()
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
