"""The indexer as a child process of the broker: `python -m dragoman.journal.tools.index_process --journal DIR`.

    out   indexed    the indexer works: sent once at the start, and after trouble

journal/tools/child_loop.py has the other lines of both directions. The parent sends the synced lsn because the journal itself records it only with
its next block. The process checks the journal once per second and exits, after a last check, when its input ends. It runs at idle priority: under
load the broker goes first.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from dragoman.errors import DragomanError
from dragoman.journal.tools.child_loop import Loop, Parent, live_beside
from dragoman.journal.tools.indexer import Indexer, indexing_alone

LOOK_S: Final = 1.0


class IndexLoop(Loop):
    """Indexes what is synced."""

    def __init__(self, directory: str, parent: Parent) -> None:
        super().__init__(parent, directory)
        self._indexer = Indexer(directory)
        self._has_begun = False

    def work(self, now_s: float) -> None:
        self._indexer.hear(self.synced_lsn)
        self._indexer.work(self.parent.has_ended)
        if not self._has_begun:
            self._has_begun = True
            self.end_trouble()

    def wait_s(self, now_s: float) -> float:
        return LOOK_S

    def pause_s(self, error: DragomanError) -> float:
        return LOOK_S

    def end_trouble(self) -> None:
        self.parent.tell("indexed")


def run(directory: str) -> int:
    """Index until the parent ends. Return the exit code."""
    return live_beside(indexing_alone(directory), lambda parent: IndexLoop(directory, parent))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        prog="python -m dragoman.journal.tools.index_process", description="Index a journal."
    )
    parser.add_argument("--journal", required=True, metavar="DIR", help="the journal's directory")
    chosen = parser.parse_args()
    sys.exit(run(chosen.journal))
