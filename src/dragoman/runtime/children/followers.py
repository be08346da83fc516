"""The child processes that follow the journal: each reads its files, and the broker sends it the synced lsn, one line per second while that
changes. Here are the sealer, which copies committed facts into the lake, and the indexer; the exporter of traces is in tracing.py.

    to the child    synced <lsn>
    from the child  sealed <lsn> <rows> <bytes>     the sealer; also at its start, for what the lake already has
                    indexed                         the indexer, once it works
                    trouble <code> <words>

Neither waits for the other. The journal keeps the facts that are not in the lake yet: a slow or dead sealer costs only disk space. Without
the indexer traces only read more.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import structlog

from dragoman.errors import PyarrowMissing
from dragoman.runtime.children.child import Child, Trouble, end

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.process.home import Home
    from dragoman.runtime.upkeep import Upkeep

TELL_S: Final = 1.0

log = structlog.get_logger("dragoman.lake")


class Follower:
    """A child that reads the journal's files: once per second, if it changed, it is sent the synced lsn. `introduce` sends each
    new process what it needs first."""

    def __init__(self, child: Child, journal: Journal, introduce: Callable[[], Awaitable[None]] | None = None) -> None:
        self._child, self._journal, self._introduce = child, journal, introduce
        self._teller: asyncio.Task[None] | None = None
        self._life = 0  # number of the last process that was introduced

    def start(self) -> None:
        self._child.start()
        self._teller = asyncio.ensure_future(self._tell_on())

    async def stop(self, finish_s: float) -> bool:
        """Called after the journal was closed: the child finishes its work and exits. False when it did not within `finish_s`."""
        if self._teller is None:
            return True
        await end(self._teller)
        end_s = asyncio.get_running_loop().time() + finish_s
        # A process that has just started was not introduced yet; one that does not read its stdin must not block the shutdown.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end_s):
                await self._meet()
        left_s = max(end_s - asyncio.get_running_loop().time(), 0.0)
        return await self._child.stop(f"synced {self._journal.synced_lsn}", left_s)

    async def _meet(self) -> bool:
        """Introduce the current process; False when that was done before."""
        life = self._child.lives
        if life == self._life:
            return False
        if self._introduce is not None:
            await self._introduce()
        self._life = life
        return True

    async def _tell_on(self) -> None:
        told_lsn = -1
        while True:
            if await self._meet():
                told_lsn = -1
            if self._journal.synced_lsn != told_lsn:
                told_lsn = self._journal.synced_lsn
                await self._child.tell(f"synced {told_lsn}")
            await asyncio.sleep(TELL_S)


class JournalReading:
    """One child at a time that follows the journal, until the broker stops. It gets its options as JSON, its only argument."""

    report_word: ClassVar[str]  # begins the line by which the child reports its progress, and that trouble is over
    finish_s: ClassVar[float]  # time for its last work after the journal was closed

    def __init__(self, name: str, module: str, options: dict[str, object], journal: Journal, trouble: Trouble) -> None:
        self.trouble = trouble
        self.child = Child(name, module, [msgspec.json.encode(options).decode()], self._hear, trouble.fail)
        self._follower = Follower(self.child, journal, self.introduce)

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        """Called after the journal was closed: the child does the rest of its work and exits."""
        if not await self._follower.stop(self.finish_s):
            self.lags()

    def _hear(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == self.report_word:
            self.report(rest)
            self.trouble.end()
        elif word == "trouble":
            self.trouble.hear(rest)

    async def introduce(self) -> None:
        """Send a new process what it needs first."""

    def report(self, rest: str) -> None:
        """Take over the child's progress."""

    def lags(self) -> None:
        """The child could not finish in time."""

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {"trouble": self.trouble.words}


def is_lake_wanted(config: Config) -> bool:
    """Whether this broker has a lake. `auto`: if pyarrow is installed."""
    mode = config.lake.mode
    if mode == "off" or config.journal.durability == "memory":
        return False
    has_pyarrow = importlib.util.find_spec("pyarrow") is not None
    if mode == "on" and not has_pyarrow:
        raise PyarrowMissing
    return has_pyarrow


class Sealing(JournalReading):
    report_word = "sealed"
    finish_s = 20.0

    def __init__(self, config: Config, home: Home, journal: Journal, upkeep: Upkeep) -> None:
        self._journal = journal
        self._upkeep = upkeep
        self.root = config.lake.root or str(home.path / "lake")
        self.sealed_lsn = 0
        options = {
            "journal": str(home.journal),
            "root": self.root,
            "bodies": config.lake.bodies,
            "interval_s": config.lake.interval_s,
            "rows_max": config.lake.rows_max,
            "incoming_keep_s": config.lake.incoming_keep_s,
            "file_mode": config.lake.file_mode,
            "directory_mode": config.lake.directory_mode,
        }
        super().__init__(
            "sealer", "dragoman.lake.process", options, journal, Trouble(log, "the lake cannot be written")
        )

    def start(self) -> None:
        self._upkeep.copied_lsn = 0
        super().start()
        log.info("the lake is written", root=self.root)

    def report(self, rest: str) -> None:
        self.sealed_lsn = self._upkeep.copied_lsn = int(rest.split()[0])

    def lags(self) -> None:
        log.warning("the lake lags behind; the next start goes on there", sealed_lsn=self.sealed_lsn)

    def view(self) -> dict[str, Any]:
        behind = max(self._journal.synced_lsn - self.sealed_lsn, 0)
        return {"root": self.root, "sealed_lsn": self.sealed_lsn, "behind": behind, **super().view()}


def is_index_wanted(config: Config) -> bool:
    return config.journal.index == "auto" and config.journal.durability != "memory"


class Indexing(JournalReading):
    """Its child creates the journal's indexes, so that any message is found fast."""

    report_word = "indexed"
    finish_s = 2.0  # the rest is indexed after the next start

    def __init__(self, home: Home, journal: Journal) -> None:
        trouble = Trouble(structlog.get_logger("dragoman.index"), "the journal cannot be indexed")
        super().__init__("indexer", "dragoman.journal.tools.indexer", {"journal": str(home.journal)}, journal, trouble)
