"""The indexer as a child of the broker: `python -m dragoman.journal.index_process --journal DIR`.

    in    synced <lsn>       so far all is synced; the journal says it too, but only with its next block
    out   trouble <words>    tried again; nothing else is ever said

It looks at the journal once a second and ends with its input, after one last look. It runs at the lowest priority there is: a broker under
load goes first.
"""

from __future__ import annotations

import argparse
import os
import select
import signal
import sys
from contextlib import suppress
from typing import Final

from dragoman.errors import DragomanError, IndexerBusy
from dragoman.journal.indexer import Indexer, indexing_alone

LOOK_S: Final = 1.0
READ_SIZE: Final = 4096


def run(directory: str, in_fd: int, out_fd: int) -> int:
    """Index until the input ends; the exit code."""
    try:
        with indexing_alone(directory):
            _keep_indexed(Indexer(directory), in_fd, out_fd)
    except IndexerBusy as error:
        _tell(out_fd, str(error))
        return error.exit_code
    return 0


class Parent:
    """What whoever started us says."""

    def __init__(self, in_fd: int) -> None:
        self._in_fd = in_fd
        self._rest = b""
        self.synced_lsn = 0
        self.has_ended = False

    def listen(self, wait_s: float) -> None:
        """Hear all that was said, after waiting for the first word at most so long."""
        readable, _, _ = select.select([self._in_fd], [], [], wait_s)
        if not readable:
            return
        data = os.read(self._in_fd, READ_SIZE)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            word, _, number = line.partition(b" ")
            if word == b"synced" and number.isdigit():
                self.synced_lsn = int(number)


def _keep_indexed(indexer: Indexer, in_fd: int, out_fd: int) -> None:
    parent, trouble = Parent(in_fd), ""
    while not parent.has_ended:
        parent.listen(LOOK_S)
        indexer.hear(parent.synced_lsn)
        try:
            indexer.work(parent.has_ended)
            trouble = ""
        except (DragomanError, OSError) as error:  # a full disk, a damaged segment: tried again, told once
            if trouble != str(error):
                trouble = str(error)
                _tell(out_fd, trouble)


def _tell(out_fd: int, text: str) -> None:
    with suppress(BrokenPipeError):
        os.write(out_fd, f"trouble {text}".replace("\n", " ").encode() + b"\n")


def be_last() -> None:
    """Run only when nobody else wants to; Ctrl-C is for the parent, which decides when we end."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.nice(19)
    with suppress(OSError, AttributeError):  # not everywhere
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m dragoman.journal.index_process", description="Index a journal.")
    parser.add_argument("--journal", required=True, metavar="DIR", help="the journal's directory")
    chosen = parser.parse_args()
    be_last()
    sys.exit(run(chosen.journal, sys.stdin.fileno(), sys.stdout.fileno()))
