"""For processes that follow the journal beside the broker: the two pipes to it, lines of text, `word rest`; the loop that listens and
works; the lock that keeps a second one out; and a place behind all others at the processor, so that a broker under load goes first.

    in    synced <lsn>             so far the journal's facts may be used; the parent says it again and again
          stop                     do what may be done and end; the end of input means the same
    out   trouble <code> <text>    tried again after a while, or, when the process ends with it, not to be helped
"""

from __future__ import annotations

import fcntl
import logging
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from dragoman.errors import DataDirectoryUnusable, DragomanError, OperatorError

log = logging.getLogger("dragoman.beside")

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


class Loop:
    """Listens and works until the parent has ended. Each kind of process says what its work is, and when."""

    hopeless: tuple[type[OperatorError], ...] = ()  # what no later try would mend

    def __init__(self, parent: Parent, directory: str) -> None:
        self.parent = parent
        self.directory = directory  # whose disk it is that fails where a failure has no name of its own
        self.synced_lsn = 0
        self._again_s = 0.0  # not before, after trouble
        self._is_in_trouble = False

    def work(self, now_s: float) -> None:
        """What there is to do now."""
        raise NotImplementedError

    def wait_s(self, now_s: float) -> float:
        """How long nothing needs to be done, unless the parent says a word."""
        raise NotImplementedError

    def pause_s(self, error: DragomanError) -> float:
        """How long to wait after trouble."""
        raise NotImplementedError

    def end_trouble(self) -> None:
        """The work goes on: say the word that the parent takes for the end of trouble."""
        raise NotImplementedError

    def hear(self, word: str, rest: str) -> None:
        """Further words of the parent's. What it says may be secret."""
        log.warning("not understood: %r", word)

    def run(self) -> int:
        """The exit code."""
        parent = self.parent
        while True:
            now_s = time.monotonic()
            self.listen(self._again_s - now_s if now_s < self._again_s else self.wait_s(now_s))
            now_s = time.monotonic()
            if now_s < self._again_s and not parent.has_ended:
                continue
            try:
                self._try_to_work(now_s)
            except DragomanError as error:
                parent.tell(f"trouble {error.code} {error}")
                self._is_in_trouble = True
                if isinstance(error, self.hopeless):
                    return error.exit_code
                if parent.has_ended:
                    return 1
                self._again_s = time.monotonic() + self.pause_s(error)
            else:
                if self._is_in_trouble:
                    self._is_in_trouble = False
                    self.end_trouble()
                if parent.has_ended:
                    return 0

    def listen(self, wait_s: float) -> None:
        for word, rest in self.parent.listen(wait_s):
            if word == "stop" and not rest:
                self.parent.has_ended = True
            elif word == "synced" and rest.isdecimal():
                self.synced_lsn = max(self.synced_lsn, int(rest))
            else:
                self.hear(word, rest)

    def _try_to_work(self, now_s: float) -> None:
        try:
            self.work(now_s)
        except OSError as error:
            raise DataDirectoryUnusable(self.directory, error) from error


def live_beside(alone: AbstractContextManager[None], make: Callable[[Parent], Loop]) -> int:
    """The whole life of such a process, within its lock; the exit code."""
    step_back()
    parent = Parent(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        with alone:
            return make(parent).run()
    except OperatorError as error:
        parent.tell(f"trouble {error.code} {error}")
        return error.exit_code


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
