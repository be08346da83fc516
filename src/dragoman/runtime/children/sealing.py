"""The sealer's child process, which copies committed facts into the lake; restarted whenever it ends.

The broker sends it the synced lsn, one line per second while that changes. It reports how far it has come, and the journal keeps the facts
that it has not copied. Neither waits for the other: a slow or dead sealer costs only disk space.

    to the child    synced <lsn>
    from the child  sealed <lsn> <rows> <bytes>     also at its start, for what the lake already has
                    trouble <code> <words>
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.errors import PyarrowMissing
from dragoman.runtime.children.child import Child, Follower, Trouble

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.process.home import Home
    from dragoman.runtime.upkeep import Upkeep

FINISH_S: Final = 20.0  # time for the last facts to reach the lake

log = structlog.get_logger("dragoman.lake")


def is_wanted(config: Config) -> bool:
    """Whether this broker has a lake. `auto`: if pyarrow is installed."""
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
        self.trouble = Trouble(log, "the lake cannot be written")
        arguments = [
            "--journal", str(home.journal),
            "--root", self.root,
            "--bodies", config.lake.bodies,
            "--interval-s", str(config.lake.interval_s),
            "--rows-max", str(config.lake.rows_max),
            "--incoming-keep-s", str(config.lake.incoming_keep_s),
            "--file-mode", f"{config.lake.file_mode:o}",
            "--directory-mode", f"{config.lake.directory_mode:o}",
        ]  # fmt: skip
        self._follower = Follower(Child("sealer", "dragoman.lake", arguments, self._hear, self.trouble.fail), journal)

    def start(self) -> None:
        self._upkeep.copied_lsn = 0
        self._follower.start()
        log.info("the lake is written", root=self.root)

    async def stop(self) -> None:
        """Called after the journal was closed: the child copies the last facts to the lake and exits."""
        if not await self._follower.stop(FINISH_S):
            log.warning("the lake lags behind; the next start goes on there", sealed_lsn=self.sealed_lsn)

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {
            "root": self.root,
            "sealed_lsn": self.sealed_lsn,
            "behind": max(self._journal.synced_lsn - self.sealed_lsn, 0),
            "trouble": self.trouble.words,
        }

    def _hear(self, line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word == "sealed":
            self.sealed_lsn = int(rest.split()[0])
            self._upkeep.copied_lsn = self.sealed_lsn
            self.trouble.end()
        elif word == "trouble":
            self.trouble.hear(rest)
