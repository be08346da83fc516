"""The sealer beside the broker: a child process that copies committed facts into the lake, started again whenever it ends.

The broker tells it how far facts are synced, one line a second while that changes; it tells how far it has come, and the journal keeps what
it has not. Neither waits for the other: all that a slow or dead sealer costs is room on the disk.

    to the child    synced <lsn>
    from the child  sealed <lsn> <rows> <bytes>     also at its start, for what the lake holds already
                    trouble <code> <words>
"""

from __future__ import annotations

import asyncio
import importlib.util
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.errors import PyarrowMissing

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.home import Home
    from dragoman.runtime.upkeep import Upkeep

TELL_S: Final = 1.0
RETRY_S: Final = 1.0
RETRY_S_MAX: Final = 60.0
GOOD_LIFE_S: Final = 60.0  # one that lived so long is started again at once
FINISH_S: Final = 20.0  # what was accepted before the end is given this long to reach the lake

log = structlog.get_logger("dragoman.lake")


def is_wanted(config: Config) -> bool:
    """Whether this broker has a lake. `auto`: if pyarrow is here to write it."""
    mode = config.lake.mode
    if mode == "off" or config.journal.durability == "memory":
        return False
    has_pyarrow = importlib.util.find_spec("pyarrow") is not None
    if mode == "on" and not has_pyarrow:
        raise PyarrowMissing
    return has_pyarrow


class Sealing:
    """One child at a time, until the broker stops."""

    def __init__(self, config: Config, home: Home, journal: Journal, upkeep: Upkeep) -> None:
        self._journal = journal
        self._upkeep = upkeep
        self.root = config.lake.root or str(home.path / "lake")
        self.sealed_lsn = 0
        self.trouble = ""
        self._arguments = [
            "--journal", str(home.journal),
            "--root", self.root,
            "--bodies", config.lake.bodies,
            "--interval-s", str(config.lake.interval_s),
            "--rows-max", str(config.lake.rows_max),
            "--incoming-keep-s", str(config.lake.incoming_keep_s),
        ]  # fmt: skip
        self._child: asyncio.subprocess.Process | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._upkeep.copied_lsn = 0
        self._task = asyncio.ensure_future(self._keep())
        log.info("the lake is written", root=self.root)

    async def stop(self) -> None:
        """After the journal was closed: the last facts go to the lake, then the child ends."""
        task, child = self._task, self._child
        if task is None:
            return
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
        if child is None or child.returncode is not None:
            return
        await self._tell(child, self._journal.synced_lsn)
        assert child.stdin is not None
        child.stdin.close()
        try:
            await asyncio.wait_for(child.wait(), FINISH_S)
        except TimeoutError:
            log.warning("the lake lags behind; the next start goes on there", sealed_lsn=self.sealed_lsn)
            child.kill()
            await child.wait()

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {
            "root": self.root,
            "sealed_lsn": self.sealed_lsn,
            "behind": max(self._journal.synced_lsn - self.sealed_lsn, 0),
            "trouble": self.trouble,
        }

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        pause_s = RETRY_S
        while True:
            began_s = loop.time()
            try:
                await self._live()
            except OSError as error:
                self.trouble = f"the sealer does not start: {error}"
            if loop.time() - began_s > GOOD_LIFE_S:
                pause_s = RETRY_S
            log.warning("the sealer ended and is started again", pause_s=pause_s, trouble=self.trouble)
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, RETRY_S_MAX)

    async def _live(self) -> None:
        """One life of the child."""
        child = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "dragoman.lake", *self._arguments,
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        self._child = child
        teller, listener = asyncio.ensure_future(self._tell_on(child)), asyncio.ensure_future(self._hear_faults(child))
        try:
            assert child.stdout is not None
            while line := await child.stdout.readline():
                self._hear(line.decode("utf-8", "replace"))
            await child.wait()
        finally:
            teller.cancel()
            listener.cancel()

    async def _tell_on(self, child: asyncio.subprocess.Process) -> None:
        told_lsn = -1
        while True:
            if (lsn := self._journal.synced_lsn) != told_lsn:
                await self._tell(child, lsn)
                told_lsn = lsn
            await asyncio.sleep(TELL_S)

    async def _tell(self, child: asyncio.subprocess.Process, lsn: int) -> None:
        assert child.stdin is not None
        with suppress(OSError):  # it has just ended: the next one is told
            child.stdin.write(b"synced %d\n" % lsn)
            await child.stdin.drain()

    async def _hear_faults(self, child: asyncio.subprocess.Process) -> None:
        """What it says on stderr it has not foreseen; a trace's last line names the fault."""
        assert child.stderr is not None
        while line := await child.stderr.readline():
            text = line.decode("utf-8", "replace").rstrip()
            log.warning("the sealer complains", line=text)

    def _hear(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == "sealed":
            self.sealed_lsn = int(rest.split()[0])
            self._upkeep.copied_lsn = self.sealed_lsn
            self.trouble = ""
        elif word == "trouble":
            code, _, text = rest.partition(" ")
            if self.trouble != text:  # once for each time it is in trouble
                log.error("the lake cannot be written", code=code, trouble=text)
            self.trouble = text
