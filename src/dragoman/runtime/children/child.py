"""A child process of the broker: started with it, restarted whenever it ends, controlled by lines on its stdin, reporting by lines on its stdout.

Neither waits for the other. A child that does not start, or dies repeatedly, affects only its own task: the pause
before the next start doubles up to a minute. A child exits when its stdin ends, so none outlives a killed broker.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import structlog
from structlog.typing import FilteringBoundLogger

RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 60.0
GOOD_LIFE_S: Final = 60.0  # after a run of this length the pause starts at RETRY_S again
LINE_SIZE_MAX: Final = 2**20  # children send short lines; the beginning of a longer one is lost
SHOWN_SIZE_MAX: Final = 200  # characters logged of a line that cannot be parsed

log = structlog.get_logger("dragoman.child")


class Child:
    """Runs one process of a dragoman module at a time, until `stop`. `hear` is called with each line on its stdout; `fail` with the reason when the
    process has ended or does not start."""

    def __init__(
        self,
        name: str,
        module: str,
        arguments: Sequence[str],
        hear: Callable[[str], None],
        fail: Callable[[str], None],
        pass_fds: Sequence[int] = (),
    ) -> None:
        self.name = name
        self._command = [sys.executable, "-m", module, *arguments]
        self._hear, self._fail = hear, fail
        self._pass_fds = tuple(pass_fds)
        self._process: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None
        self.lives = 0

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._keep())

    @property
    def pid(self) -> int:
        """The pid of the running process; 0 when there is none."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def tell(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        # The process has just ended (uvloop raises RuntimeError); the next one gets the line.
        with suppress(OSError, RuntimeError):
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()

    async def stop(self, last_line: str, finish_s: float) -> bool:
        """Let the process exit by itself within `finish_s`, after one last line if there is one. False when it had to be killed."""
        task, process = self._task, self._process
        if task is None:
            return True
        await end(task)
        if process is None or process.returncode is not None:
            return True
        assert process.stdin is not None
        try:
            async with asyncio.timeout(finish_s):
                if last_line:
                    await self.tell(last_line)
                process.stdin.close()
                await process.wait()
        except TimeoutError:
            process.kill()
            await process.wait()
            return False
        return True

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = RETRY_S
        while True:
            began_s = loop.time()
            try:
                exit_code = await self._live()
            except OSError as error:
                self._fail(f"the {self.name} does not start: {error}")
            else:
                self._fail(f"the {self.name} ended with exit code {exit_code}")
            if loop.time() - began_s > GOOD_LIFE_S:
                pause_s = RETRY_S
            log.warning(f"the {self.name} ended and is started again", pause_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)

    async def _live(self) -> int:
        """Run one process from start to end. Return its exit code."""
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            pass_fds=self._pass_fds,
            limit=LINE_SIZE_MAX,
        )  # fmt: skip
        self._process = process
        self.lives += 1
        listener = asyncio.ensure_future(self._hear_faults(process))
        try:
            async for line in self._lines(process.stdout):
                try:
                    self._hear(line)
                except (ValueError, IndexError):
                    log.warning(f"the {self.name} is not understood", line=line[:SHOWN_SIZE_MAX])
            return await process.wait()
        finally:
            listener.cancel()

    async def _hear_faults(self, process: asyncio.subprocess.Process) -> None:
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


async def end(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait for it. An earlier failure is logged, not raised."""
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled() and task.exception() is not None:
        log.error("a task beside the broker has failed", exc_info=task.exception())


class Trouble:
    """Why a child does not do its work: logged once, and shown in `dragoman status` as long as it lasts. `sentence`: the log line."""

    def __init__(self, log: FilteringBoundLogger, sentence: str) -> None:
        self._log, self._sentence = log, sentence
        self.words = ""

    def hear(self, rest: str) -> None:
        """Handle the child's report, a code and a text, which it repeats while the trouble lasts."""
        code, _, words = rest.partition(" ")
        if self.words != words:
            self._log.error(self._sentence, code=code, trouble=words)
        self.words = words

    def fail(self, words: str) -> None:
        """The child has ended. Keeps the child's own report, if there is one, because it is more specific."""
        self.words = self.words or words

    def end(self) -> None:
        self.words = ""
