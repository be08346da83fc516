"""The `dragoman worker` command: runs jobs in this process or in children, handles signals, drains, and sets the exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys

import uvloop

from dragoman.client import address
from dragoman.client.worker import SWITCH_INTERVAL_S, WorkerSettings
from dragoman.client.worker.child import Orders
from dragoman.client.worker.parent import ChildProcess
from dragoman.client.worker.worker import Worker, load_app

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
