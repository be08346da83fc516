"""Measures which callback blocked the event loop and for how long, in CPU time of its thread, so that time lost to other processes does not count.

Rare callbacks (sweeps, steps of a checkpoint, admin operations, ended connections, reads of many bytes) are measured one by one. The reads and
the commit of one turn are measured together, by the monotonic clock first: the thread's CPU clock is a system call, and is read only when
enough time has passed since the last reading. If a turn of several reads took too long, no single callback is to blame; for one second after it,
each read is measured on its own.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, ParamSpec, TypeVar

import structlog

from dragoman.limits import LOOP_HOLD_NS

# Minimum interval between readings of the thread's clock at the end of a turn, and so the error in the measurement of a long turn.
MARK_INTERVAL_NS: Final = 5_000_000
CLOSE_WATCH_NS: Final = 1_000_000_000
LOG_INTERVAL_NS: Final = 1_000_000_000

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger("dragoman")


class Watchdog:
    """Counts the callbacks that blocked the event loop for longer than `LOOP_HOLD_NS`, and names the longest."""

    def __init__(
        self, cpu_ns: Callable[[], int] = time.thread_time_ns, clock_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._cpu_ns, self._clock_ns = cpu_ns, clock_ns
        self.holds = 0
        self.longest_ns = 0  # of any callback, long or not
        self.longest_operation = ""
        self.long_turns = 0  # turns of several reads that took too long together
        self.start()
        self._last_read = ""
        self._close_until_ns = 0
        self._next_log_ns = 0
        self._unlogged = 0

    def start(self) -> None:
        """Start measuring. What ran before the event loop does not count."""
        self._marked_cpu_ns, self._marked_ns = self._cpu_ns(), self._clock_ns()
        self._ended_ns = self._marked_ns
        self._counted_ns = 0  # CPU time since the last reading that was measured on its own
        self._reads = 0

    # -- measured one by one ---------------------------------------------------------------------------------------------

    def begin(self) -> int:
        return self._cpu_ns()

    def end(self, began_ns: int, operation: str, detail: object = "") -> None:
        took_ns = self._cpu_ns() - began_ns
        self._counted_ns += took_ns
        if took_ns > self.longest_ns or took_ns > LOOP_HOLD_NS:
            self._note(took_ns, f"{operation} {detail}".rstrip())

    def run(self, operation: str, work: Callable[P, T], *args: P.args, **named: P.kwargs) -> T:
        began_ns = self._cpu_ns()
        try:
            return work(*args, **named)
        finally:
            self.end(began_ns, operation)

    def watched(self, work: Coroutine[Any, Any, T], operation: str) -> Awaitable[T]:
        """Wrap a coroutine so that each of its steps on the event loop is measured."""
        return _Watched(self, work, operation)

    # -- the turn -------------------------------------------------------------------------------------------------------

    def begin_read(self, listener: str) -> int:
        """Before a small read: the start time for `end`, or 0 when it is measured together with its turn."""
        if self._close_until_ns:
            return self._cpu_ns()
        self._reads += 1
        self._last_read = listener
        return 0

    def end_turn(self) -> None:
        """Called when everything that had arrived was read and committed."""
        now_ns = self._clock_ns()
        if now_ns - self._marked_ns < MARK_INTERVAL_NS:
            self._ended_ns = now_ns
            self._reads = 0
            return
        cpu_ns = self._cpu_ns()
        before_ns = self._ended_ns - self._marked_ns  # upper bound of earlier turns and waiting
        took_ns = cpu_ns - self._marked_cpu_ns - self._counted_ns - before_ns
        if took_ns > LOOP_HOLD_NS:
            if self._reads > 1:
                self._note_turn(took_ns, now_ns)
            else:
                self._note(took_ns, f"{self._last_read} read and commit" if self._reads else "commit")
        if self._close_until_ns and now_ns > self._close_until_ns:
            self._close_until_ns = 0
        self._marked_cpu_ns, self._marked_ns, self._ended_ns = cpu_ns, now_ns, now_ns
        self._counted_ns = self._reads = 0

    def _note_turn(self, took_ns: int, now_ns: int) -> None:
        self.long_turns += 1
        self._close_until_ns = now_ns + CLOSE_WATCH_NS

    def _note(self, took_ns: int, operation: str) -> None:
        if took_ns > self.longest_ns:
            self.longest_ns, self.longest_operation = took_ns, operation
        if took_ns <= LOOP_HOLD_NS:
            return
        self.holds += 1
        self._unlogged += 1
        now_ns = self._clock_ns()
        if now_ns >= self._next_log_ns:
            more = self._unlogged - 1
            log.warning("the loop was held", code="LOOP_HELD", operation=operation, ms=took_ns // 1_000_000, more=more)
            self._next_log_ns, self._unlogged = now_ns + LOG_INTERVAL_NS, 0

    def view(self) -> dict[str, object]:
        return {
            "holds": self.holds,
            "bound_ns": LOOP_HOLD_NS,
            "longest_ns": self.longest_ns,
            "longest_operation": self.longest_operation,
            "long_turns": self.long_turns,
        }


class _Watched(Awaitable[T]):
    """Drives a coroutine as its task would, and measures the time between two awaits."""

    def __init__(self, watchdog: Watchdog, work: Coroutine[Any, Any, T], operation: str) -> None:
        self._watchdog, self._work, self._operation = watchdog, work, operation

    def __await__(self) -> Generator[Any, Any, T]:
        value: Any = None
        error: BaseException | None = None
        while True:
            began_ns = self._watchdog.begin()
            try:
                waits_for = self._work.throw(error) if error is not None else self._work.send(value)
            except StopIteration as ended:
                result: T = ended.value
                return result
            finally:
                self._watchdog.end(began_ns, self._operation)
            value = error = None
            try:
                value = yield waits_for
            except BaseException as raised:
                error = raised
