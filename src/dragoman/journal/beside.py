"""For processes that follow the journal beside the broker: the two pipes to it, lines of text, `word rest`; the lock that keeps a
second one out; and a place behind all others at the processor, so that a broker under load goes first."""

from __future__ import annotations

import fcntl
import os
import select
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Final

from dragoman.errors import DataDirectoryUnusable, DragomanError

READ_SIZE: Final = 65536


class Parent:
    """Its end is the end of our input."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in_fd, self._out_fd = in_fd, out_fd
        self._rest = b""
        self.has_ended = False

    def listen(self, wait_s: float) -> list[tuple[str, str]]:
        """All that was said, after waiting for the first word at most so long."""
        if self.has_ended:
            return []
        readable, _, _ = select.select([self._in_fd], [], [], max(wait_s, 0.0))
        if not readable:
            return []
        data = os.read(self._in_fd, READ_SIZE)
        if not data:
            self.has_ended = True
        *lines, self._rest = (self._rest + data).split(b"\n")
        heard = (line.decode("utf-8", "replace").partition(" ") for line in lines)
        return [(word, rest) for word, _, rest in heard]

    def tell(self, line: str) -> None:
        # A parent that is gone hears nothing; the end of input tells us so in a moment.
        with suppress(BrokenPipeError):
            os.write(self._out_fd, line.replace("\n", " ").encode() + b"\n")


@contextmanager
def only_one(directory: str, lock_name: str, busy: Callable[[str], DragomanError]) -> Iterator[None]:
    """Hold the lock that one process of a kind may have in a data directory; what `busy` makes is raised where another one does."""
    try:
        fd = os.open(f"{directory}/{lock_name}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DataDirectoryUnusable(directory, error) from error
    try:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise busy(directory) from error
        yield
    finally:
        os.close(fd)


def step_back() -> None:
    """Run only when nobody else wants to. Ctrl-C and a closed terminal are for the parent, which decides when we end."""
    # Not a session of our own: Linux shares the processor between sessions first, and our low priority would count within ours only.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (OSError, AttributeError):  # not everywhere
        os.nice(19)
