"""The indexer's child process, which creates the journal's indexes, so that any message is found fast.

It reads the journal's files; the broker sends it the synced lsn, once per second while that changes. If it is slow or dead,
traces only read more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.runtime.children.child import Child, Follower, Trouble

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.process.home import Home

FINISH_S: Final = 2.0  # the rest is indexed after the next start

log = structlog.get_logger("dragoman.index")


def is_wanted(config: Config) -> bool:
    return config.journal.index == "auto" and config.journal.durability != "memory"


class Indexing:
    """One child at a time, until the broker stops."""

    def __init__(self, home: Home, journal: Journal) -> None:
        arguments = ["--journal", str(home.journal)]
        self.trouble = Trouble(log, "the journal cannot be indexed")
        child = Child("indexer", "dragoman.journal.tools.index_process", arguments, self._hear, self.trouble.fail)
        self._follower = Follower(child, journal)

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        """Called after the journal was closed: the child indexes the last facts and exits."""
        await self._follower.stop(FINISH_S)

    def view(self) -> dict[str, Any]:
        """For `dragoman status`."""
        return {"trouble": self.trouble.words}

    def _hear(self, line: str) -> None:
        word, _, rest = line.partition(" ")
        if word == "indexed":
            self.trouble.end()
        elif word == "trouble":
            self.trouble.hear(rest)
