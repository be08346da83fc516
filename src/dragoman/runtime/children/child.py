"""A child process of the broker: started with it, restarted whenever it ends, controlled by lines on its stdin, reporting by lines on its stdout.

Neither waits for the other. A child that does not start, or dies repeatedly, affects only its own task: the pause
before the next start doubles up to a minute. A child exits when its stdin ends, so none outlives a killed broker.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import structlog

RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 60.0
RAISE_INTERVAL_S: Final = 0.5  # a process that has just started lowers its priority only after its imports
GOOD_RUN_S: Final = 60.0  # after a run of this length the pause starts at RETRY_S again
LINE_SIZE_MAX: Final = 2**20  # children send short lines; the beginning of a longer one is lost
SHOWN_SIZE_MAX: Final = 200  # characters logged of a line that cannot be parsed

log = structlog.get_logger("dragoman.child")


class Child:
    """Runs one process of a dragoman module at a time, until `stop`. `on_line` is called with each line on its stdout; `on_end` with the reason when the
    process has ended or does not start."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        on_line: Callable[[str], None],
        on_end: Callable[[str], None],
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]
        self._on_line, self._on_end = on_line, on_end
        self._pass_fds = tuple(pass_fds)
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.starts = 0

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._run_forever())

    @property
    def pid(self) -> int:
        """The pid of the running process; 0 when there is none."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def send(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        # The process has just ended (uvloop raises RuntimeError); the next one gets the line.
        with suppress(OSError, RuntimeError):
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()

    async def stop(self, last_line: str, finish_s: float) -> bool:
        """Let the process exit by itself within `finish_s`, after one last line if there is one, at normal priority: at idle priority it would not get
        there while others use all cores. False when it had to be killed."""
        task, process = self._task, self._process
        if task is None:
            return True
        await end(task)
        if process is None or process.returncode is not None:
            return True
        assert process.stdin is not None
        raising = asyncio.ensure_future(keep_priority_normal(process.pid))
        try:
            async with asyncio.timeout(finish_s):
                if last_line:
                    await self.send(last_line)
                process.stdin.close()
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            return False
        finally:
            raising.cancel()
        return True

    async def _run_forever(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = RETRY_S
        while True:
            began_s = loop.time()
            try:
                exit_code = await self._run_once()
            except OSError as error:
                self._on_end(f"the {self.name} does not start: {error}")
            else:
                self._on_end(f"the {self.name} ended with exit code {exit_code}")
            if loop.time() - began_s > GOOD_RUN_S:
                pause_s = RETRY_S
            log.warning(f"the {self.name} ended and is started again", pause_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)

    async def _run_once(self) -> int:
        """Run one process from start to end. Return its exit code."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            pass_fds=self._pass_fds,
            limit=LINE_SIZE_MAX,
        )  # fmt: skip
        self._process = process
        self.starts += 1
        logging = asyncio.ensure_future(self._log_errors(process))
        try:
            async for line in self._lines(process.stdout):
                try:
                    self._on_line(line)
                except (ValueError, IndexError):
                    log.warning(f"the {self.name} is not understood", line=line[:SHOWN_SIZE_MAX])
            return await process.wait()
        finally:
            logging.cancel()

    async def _log_errors(self, process: asyncio.subprocess.Process) -> None:
        """Log the process's stderr: unexpected errors, such as a traceback."""
        async for line in self._lines(process.stderr):
            log.warning(f"the {self.name} complains", line=line.rstrip())

    async def _lines(self, stream: asyncio.StreamReader | None) -> AsyncIterator[str]:
        assert stream is not None
        while True:
            try:
                line = await stream.readline()
            except ValueError:  # the stream has discarded the beginning of the line
                log.warning(f"the {self.name} says too much in one line", size_max=LINE_SIZE_MAX)
                continue
            if not line:
                return
            yield line.decode("utf-8", "replace").rstrip("\n")


async def keep_priority_normal(pid: int) -> None:
    """Raise the priority of a process repeatedly, until cancelled."""
    while True:
        raise_priority(pid)
        await asyncio.sleep(RAISE_INTERVAL_S)


def raise_priority(pid: int) -> None:
    """Give every thread of a process the broker's own priority. An unprivileged broker may do so only if its limit (RLIMIT_NICE) allows it; otherwise,
    and on systems without such priorities, nothing changes."""
    with suppress(OSError, AttributeError):
        nice = os.getpriority(os.PRIO_PROCESS, 0)
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setscheduler(int(thread.name), os.SCHED_OTHER, os.sched_param(0))
            os.setpriority(os.PRIO_PROCESS, int(thread.name), nice)


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for it. An earlier failure is logged, not raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is not None:
        log.error("a task beside the broker has failed", exc_info=task.exception())
