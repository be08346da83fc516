"""The indexer beside the broker: a child process that makes the journal's indexes, so that any message is found at once.

It reads the journal's files; the broker tells it how far they are synced, once a second while that changes. All that a slow or dead
one costs is that traces read more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import structlog

from dragoman.runtime.child import Child, Follower
from dragoman.runtime.trouble import Trouble

if TYPE_CHECKING:
    from dragoman.journal.journal import Journal
    from dragoman.runtime.config import Config
    from dragoman.runtime.home import Home

FINISH_S: Final = 2.0  # what is not indexed by then is indexed after the next start

log = structlog.get_logger("dragoman.index")


def is_wanted(config: Config) -> bool:
    return config.journal.index == "auto" and config.journal.durability != "memory"


class Indexing:
    """One child at a time, until the broker stops."""

    def __init__(self, home: Home, journal: Journal) -> None:
        arguments = ["--journal", str(home.journal)]
        self.trouble = Trouble(log, "the journal cannot be indexed")
        child = Child("indexer", "dragoman.journal.index_process", arguments, self._hear, self.trouble.fail)
        self._follower = Follower(child, journal)

    def start(self) -> None:
        self._follower.start()

    async def stop(self) -> None:
        """After the journal was closed: the last facts are indexed, then the child ends."""
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
