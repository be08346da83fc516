"""Which callback held the loop, and for how long: measured by the CPU time of its thread, so that a busy machine is held against nobody.

What runs seldom (sweeps, steps of a checkpoint, admin operations, ended connections, reads of many bytes) is measured each by itself. The reads and
the commit of one turn are measured together, by the monotonic clock first: the thread's clock is a system call, and is asked only when
enough time has passed since the last time. A turn of several reads that took too long is no single callback's doing; for a second after one,
each read is measured by itself.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, ParamSpec, TypeVar

import structlog

from dragoman.limits import LOOP_HOLD_NS

# The thread's clock is asked at the end of a turn when this much time has passed: what came before a long turn is off by no more.
MARK_INTERVAL_NS: Final = 5_000_000
CLOSE_WATCH_NS: Final = 1_000_000_000
LOG_INTERVAL_NS: Final = 1_000_000_000

P = ParamSpec("P")
T = TypeVar("T")
log = structlog.get_logger("dragoman")


class Watchdog:
    """Counts the callbacks that held the loop for longer than `LOOP_HOLD_NS`, and names the longest."""

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
        """The loop runs from now on: what was done before it held up nobody."""
        self._marked_cpu_ns, self._marked_ns = self._cpu_ns(), self._clock_ns()
        self._ended_ns = self._marked_ns
        self._counted_ns = 0  # CPU since the mark that was measured by itself
        self._reads = 0

    # -- what is measured by itself -------------------------------------------------------------------------------------

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
        """The same, with each of its turns on the loop measured."""
        return _Watched(self, work, operation)

    # -- the turn -------------------------------------------------------------------------------------------------------

    def begin_read(self, listener: str) -> int:
        """Before few bytes are taken: what `end` wants, or 0 when they are measured with their turn."""
        if self._close_until_ns:
            return self._cpu_ns()
        self._reads += 1
        self._last_read = listener
        return 0

    def end_turn(self) -> None:
        """All that had arrived was read and committed."""
        now_ns = self._clock_ns()
        if now_ns - self._marked_ns < MARK_INTERVAL_NS:
            self._ended_ns = now_ns
            self._reads = 0
            return
        cpu_ns = self._cpu_ns()
        before_ns = self._ended_ns - self._marked_ns  # earlier turns, and waiting: they took no more than this
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
    """Drives a coroutine as its task would, and measures each stretch between two waits."""

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
