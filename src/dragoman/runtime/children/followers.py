"""The child processes that follow the journal: each reads its files, and the broker sends it the synced lsn, one line per second while that
changes. Here are the sealer, which copies synced facts into the lake, and the indexer; the exporter of traces is in tracing.py.

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
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import structlog

from dragoman.errors import PyarrowMissing
from dragoman.runtime.children.child import Child, end

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.process.home import Home
    from dragoman.runtime.upkeep import Upkeep

SEND_INTERVAL_S: Final = 1.0

log = structlog.get_logger("dragoman.lake")


def as_json(value: object) -> str:
    return msgspec.json.encode(value).decode()


class JournalFollower:
    """One child at a time that reads the journal's files, until the broker stops. It is sent the synced lsn, once per second if that has changed."""

    report_word: ClassVar[str]  # begins the line by which the child reports its progress, and that trouble is over
    finish_s: ClassVar[float]  # time for its last work after the journal was closed
    trouble_event: ClassVar[str]  # logged when the child reports trouble

    def __init__(self, name: str, module: str, arguments: Sequence[str], journal: Journal) -> None:
        self.journal = journal
        self.child = Child(name, module, arguments, self._on_line, self._on_end)
        self.trouble = ""  # why the child does not do its work, shown in `dragoman status` as long as it lasts
        self._task: asyncio.Task[None] | None = None
        self._introduced = 0  # number of the last process that was introduced

    def start(self) -> None:
        self.child.start()
        self._task = asyncio.ensure_future(self._follow())

    async def stop(self) -> None:
        """Called after the journal was closed: the child does the rest of its work and exits."""
        if self._task is None:
            return
        await end(self._task)
        loop = asyncio.get_running_loop()
        end_s = loop.time() + self.finish_s
        # A process that has just started was not introduced yet; one that does not read its stdin must not block the shutdown.
        with suppress(TimeoutError):
            async with asyncio.timeout_at(end_s):
                await self._introduce_once()
        if not await self.child.stop(f"synced {self.journal.synced_lsn}", max(end_s - loop.time(), 0.0)):
            self.on_unfinished()

    async def _introduce_once(self) -> bool:
        """Introduce the current process; False when that was done before."""
        number = self.child.starts
        if number == self._introduced:
            return False
        await self.introduce()
        self._introduced = number
        return True

    async def _follow(self) -> None:
        sent_lsn = -1
        while True:
            if await self._introduce_once():
                sent_lsn = -1
            if self.journal.synced_lsn != sent_lsn:
                sent_lsn = self.journal.synced_lsn
                await self.child.send(f"synced {sent_lsn}")
            await asyncio.sleep(SEND_INTERVAL_S)

    def _on_line(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == self.report_word:
            self.on_report(rest)
            self.trouble = ""
        elif word == "trouble":  # repeated while it lasts, logged once
            code, _, text = rest.partition(" ")
            if self.trouble != text:
                log.error(self.trouble_event, code=code, trouble=text)
            self.trouble = text

    def _on_end(self, reason: str) -> None:
        self.trouble = self.trouble or reason  # the child's own report is more specific

    async def introduce(self) -> None:
        """Send a new process what it needs first."""

    def on_report(self, rest: str) -> None:
        """Handle the child's progress."""

    def on_unfinished(self) -> None:
        """The child could not finish in time."""

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {"trouble": self.trouble}


def is_lake_wanted(config: Config) -> bool:
    """Whether this broker has a lake. `auto`: if pyarrow is installed."""
    mode = config.lake.mode
    if mode == "off" or config.journal.durability == "memory":
        return False
    has_pyarrow = importlib.util.find_spec("pyarrow") is not None
    if mode == "on" and not has_pyarrow:
        raise PyarrowMissing
    return has_pyarrow


class Sealing(JournalFollower):
    report_word, trouble_event = "sealed", "the lake cannot be written"
    finish_s = 20.0

    def __init__(self, config: Config, home: Home, journal: Journal, upkeep: Upkeep) -> None:
        self._upkeep = upkeep
        self.root = config.lake.root or str(home.path / "lake")
        self.sealed_lsn = 0
        names = ("bodies", "interval_s", "rows_max", "incoming_keep_s", "file_mode", "directory_mode")
        options = {name: getattr(config.lake, name) for name in names}
        options |= {"journal": str(home.journal), "root": self.root}
        super().__init__("sealer", "dragoman.lake.process", [as_json(options)], journal)

    def start(self) -> None:
        self._upkeep.copied_lsn = 0
        super().start()
        log.info("the lake is written", root=self.root)

    def on_report(self, rest: str) -> None:
        self.sealed_lsn = self._upkeep.copied_lsn = int(rest.split()[0])

    def on_unfinished(self) -> None:
        log.warning("the lake lags behind; the next start goes on there", sealed_lsn=self.sealed_lsn)

    def view(self) -> dict[str, Any]:
        backlog = max(self.journal.synced_lsn - self.sealed_lsn, 0)
        return {"root": self.root, "sealed_lsn": self.sealed_lsn, "behind": backlog, **super().view()}


class Indexing(JournalFollower):
    """Its child creates the journal's indexes, so that any message is found fast."""

    report_word, trouble_event = "indexed", "the journal cannot be indexed"
    finish_s = 2.0  # the rest is indexed after the next start

    def __init__(self, home: Home, journal: Journal) -> None:
        arguments = [as_json({"journal": str(home.journal)})]
        super().__init__("indexer", "dragoman.journal.tools.indexer", arguments, journal)
