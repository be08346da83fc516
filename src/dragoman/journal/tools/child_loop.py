"""Main loop of child processes that read the journal while the broker runs: the two pipes to the parent, the loop that reads commands and does
the work, the lock that allows one process of a kind, and idle scheduling priority, so that the broker goes first under load.

The pipes carry lines of text, `command rest`:

    in    synced <lsn>             facts up to this lsn may be used; the parent repeats it
          stop                     finish the work that can be done and exit; end of input means the same
    out   trouble <code> <text>    the work failed: it is retried later, or, if the process exits with it, a retry cannot help
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

log = logging.getLogger("dragoman.child")

READ_SIZE: Final = 65536


class Parent:
    """The pipes to the parent process. End of input means that the parent has exited."""

    def __init__(self, in_fd: int, out_fd: int) -> None:
        self._in_fd, self._out_fd = in_fd, out_fd
        self._rest = b""
        self.has_ended = False

    def receive(self, wait_s: float) -> list[tuple[str, str]]:
        """All commands received, after waiting at most `wait_s` for the first one."""
        if self.has_ended or not select.select([self._in_fd], [], [], max(wait_s, 0.0))[0]:
            return []
        data = os.read(self._in_fd, READ_SIZE)
        self.has_ended = not data
        *lines, self._rest = (self._rest + data).split(b"\n")
        parted = (line.decode("utf-8", "replace").partition(" ") for line in lines)
        return [(command, rest) for command, _, rest in parted]

    def send(self, line: str) -> None:
        # If the parent has exited, the end of input reports it soon.
        with suppress(BrokenPipeError):
            os.write(self._out_fd, line.replace("\n", " ").encode() + b"\n")


class Loop:
    """Reads commands and works until the parent has ended. A subclass defines the work and its timing."""

    fatal: tuple[type[OperatorError], ...] = ()  # errors that a retry cannot fix
    retry_s: float = 1.0  # pause after an error

    def __init__(self, parent: Parent, directory: str) -> None:
        self.parent = parent
        self.directory = directory  # reported with an OSError that `work` did not convert
        self.synced_lsn = 0
        self._again_s = 0.0  # earliest time of the next attempt after an error
        self._is_in_trouble = False

    def work(self, now_s: float) -> None:
        """Do what there is to do now."""
        raise NotImplementedError

    def wait_s(self, now_s: float) -> float:
        """Seconds to wait for a command before the next `work`."""
        raise NotImplementedError

    def end_trouble(self) -> None:
        """Send the line that the parent takes as the end of trouble."""
        raise NotImplementedError

    def pause_s(self, error: DragomanError) -> float:
        return self.retry_s

    def on_command(self, command: str, rest: str) -> None:
        """Handle a further command. Only the command is logged, because the rest may be secret."""
        log.warning("not understood: %r", command)

    def run(self) -> int:
        """Run until the parent has ended. Return the exit code."""
        parent = self.parent
        while True:
            now_s = time.monotonic()
            self.receive(self._again_s - now_s if now_s < self._again_s else self.wait_s(now_s))
            now_s = time.monotonic()
            if now_s < self._again_s and not parent.has_ended:
                continue
            try:
                try:
                    self.work(now_s)
                except OSError as error:
                    raise DataDirectoryUnusable(self.directory, error) from error
            except DragomanError as error:
                parent.send(f"trouble {error.code} {error}")
                self._is_in_trouble = True
                if isinstance(error, self.fatal):
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

    def receive(self, wait_s: float) -> None:
        for command, rest in self.parent.receive(wait_s):
            if command == "stop" and not rest:
                self.parent.has_ended = True
            elif command == "synced" and rest.isdecimal():
                self.synced_lsn = max(self.synced_lsn, int(rest))
            else:
                self.on_command(command, rest)


def run_child(lock: AbstractContextManager[None], make: Callable[[Parent], Loop]) -> int:
    """Run such a process from start to end while holding its lock. Return the exit code."""
    _lower_priority()
    parent = Parent(sys.stdin.fileno(), sys.stdout.fileno())
    try:
        with lock:
            return make(parent).run()
    except OperatorError as error:
        parent.send(f"trouble {error.code} {error}")
        return error.exit_code


@contextmanager
def exclusive(directory: str, lock_name: str, busy: Callable[[str], DragomanError]) -> Iterator[None]:
    """Hold the lock that one process of a kind may have in a data directory; raise what `busy` returns if another process holds it."""
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


def _lower_priority() -> None:
    """Run only when the CPU is otherwise idle, and ignore Ctrl-C and a closed terminal: the parent decides when this process ends."""
    # Not a session of its own: Linux divides CPU time between sessions first, and a low priority counts only within its session.
    os.setpgid(0, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    except (OSError, AttributeError):  # not available on every system
        os.nice(19)
