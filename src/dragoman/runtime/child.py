"""A process beside the broker: started with it, started again whenever it ends, told by lines on its stdin and heard by lines on its stdout.

Neither waits for the other. A child that cannot be started, or dies again and again, costs what it does and nothing else: the pause
before the next one doubles up to a minute. A child ends itself when its stdin ends, so none outlives a broker that was killed.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import structlog

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal

TELL_S: Final = 1.0
RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 60.0
GOOD_LIFE_S: Final = 60.0  # one that lived so long is started again at once

log = structlog.get_logger("dragoman.child")


class Child:
    """One process at a time, of a module of ours, until `stop`. `hear` gets each line it says; `fail`, why none could be started."""

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
        """The running one's; 0 when there is none."""
        process = self._process
        return process.pid if process is not None and process.returncode is None else 0

    async def tell(self, line: str) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdin.is_closing():
            return
        # It has just ended (uvloop calls that a RuntimeError): the next one is told.
        with suppress(OSError, RuntimeError):
            process.stdin.write(line.encode() + b"\n")
            await process.stdin.drain()

    async def stop(self, last_line: str, finish_s: float) -> bool:
        """Let the process end by itself within `finish_s`, after one last line if there is one; False when it had to be killed."""
        task, process = self._task, self._process
        if task is None:
            return True
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if process is None or process.returncode is not None:
            return True
        if last_line:
            await self.tell(last_line)
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), finish_s)
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
                await self._live()
            except OSError as error:
                self._fail(f"the {self.name} does not start: {error}")
            if loop.time() - began_s > GOOD_LIFE_S:
                pause_s = RETRY_S
            log.warning(f"the {self.name} ended and is started again", pause_s=pause_s)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)

    async def _live(self) -> None:
        process = await asyncio.create_subprocess_exec(
            *self._command,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            pass_fds=self._pass_fds,
        )  # fmt: skip
        self._process = process
        self.lives += 1
        listener = asyncio.ensure_future(self._hear_faults(process))
        try:
            assert process.stdout is not None
            while line := await process.stdout.readline():
                self._hear(line.decode("utf-8", "replace").rstrip("\n"))
            await process.wait()
        finally:
            listener.cancel()

    async def _hear_faults(self, process: asyncio.subprocess.Process) -> None:
        """What it says on stderr it has not foreseen; a trace's last line names the fault."""
        assert process.stderr is not None
        while line := await process.stderr.readline():
            log.warning(f"the {self.name} complains", line=line.decode("utf-8", "replace").rstrip())


class Follower:
    """A child that reads the journal's files: told once a second how far they are synced, while that changes. `introduce` tells each
    new process what it needs to know first."""

    def __init__(self, child: Child, journal: Journal, introduce: Callable[[], Awaitable[None]] | None = None) -> None:
        self._child, self._journal, self._introduce = child, journal, introduce
        self._teller: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._child.start()
        self._teller = asyncio.ensure_future(self._tell_on())

    async def stop(self, finish_s: float) -> bool:
        """After the journal was closed: the child does what is left and ends; False when it could not within `finish_s`."""
        if self._teller is None:
            return True
        self._teller.cancel()
        with suppress(asyncio.CancelledError):
            await self._teller
        return await self._child.stop(f"synced {self._journal.synced_lsn}", finish_s)

    async def _tell_on(self) -> None:
        life, told_lsn = 0, -1
        while True:
            if self._child.lives != life:
                life, told_lsn = self._child.lives, -1
                if self._introduce is not None:
                    await self._introduce()
            if self._journal.synced_lsn != told_lsn:
                told_lsn = self._journal.synced_lsn
                await self._child.tell(f"synced {told_lsn}")
            await asyncio.sleep(TELL_S)
