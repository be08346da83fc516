"""The indexer as a child of the broker: `python -m dragoman.journal.index_process --journal DIR`.

    in    synced <lsn>       so far all is synced; the journal says it too, but only with its next block
    out   trouble <words>    tried again; nothing else is ever said

It looks at the journal once a second and ends with its input, after one last look. It runs at the lowest priority there is: a broker under
load goes first.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from dragoman.errors import DragomanError, OperatorError
from dragoman.journal.beside import Parent, step_back
from dragoman.journal.indexer import Indexer, indexing_alone

LOOK_S: Final = 1.0


def run(directory: str) -> int:
    """Index until the parent ends; the exit code."""
    step_back()
    parent = Parent(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        with indexing_alone(directory):
            _keep_indexed(Indexer(directory), parent)
    except OperatorError as error:
        parent.tell(f"trouble {error}")
        return error.exit_code
    return 0


def _keep_indexed(indexer: Indexer, parent: Parent) -> None:
    trouble = ""
    while not parent.has_ended:
        for word, rest in parent.listen(LOOK_S):
            if word == "synced" and rest.isdecimal():
                indexer.hear(int(rest))
        try:
            indexer.work(parent.has_ended)
            trouble = ""
        except (DragomanError, OSError) as error:  # a full disk, a damaged segment: tried again, told once
            if trouble != str(error):
                trouble = str(error)
                parent.tell(f"trouble {trouble}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m dragoman.journal.index_process", description="Index a journal.")
    parser.add_argument("--journal", required=True, metavar="DIR", help="the journal's directory")
    chosen = parser.parse_args()
    sys.exit(run(chosen.journal))
