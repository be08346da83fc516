"""Simulated time: a heap of events, and the part of an event loop's interface that a broker uses."""

from __future__ import annotations

import asyncio
import heapq
import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, cast

from dragoman.limits import REFILL_COUNT
from dragoman.model.units import MILLISECOND_NS, SECOND_NS

MS_NS = MILLISECOND_NS
# Bytes that all sockets together deliver before the loop runs its scheduled callbacks; one socket delivers a quarter of it at once.
READ_SIZE_MAX = 1 << 18
# Limit on the work of one callback: facts made, disk operations, and pieces of 64 KiB that it reads or writes. The largest is one refill,
# with a read for each message and a second for a large one, plus what the messages of one read cause.
WORK_UNITS_MAX = 2 * REFILL_COUNT + 200


class Timeline:
    """Scheduled events. Events of one instant run in the order in which they were added."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._events: list[tuple[int, int, Callable[[], object]]] = []
        self._count = 0

    def at(self, time_ns: int, event: Callable[[], object]) -> None:
        self._count += 1
        heapq.heappush(self._events, (max(time_ns, self.now_ns), self._count, event))

    def after(self, delay_ns: int, event: Callable[[], object]) -> None:
        self.at(self.now_ns + delay_ns, event)

    def next_ns(self) -> int | None:
        return self._events[0][0] if self._events else None

    def take(self) -> Callable[[], object]:
        """Remove and return the next event; time moves to it."""
        self.now_ns, _, event = heapq.heappop(self._events)
        return event


class SimLoop:
    """One broker's event loop. When the broker dies, its scheduled callbacks are dropped."""

    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.is_alive = True
        self.work: Callable[[], int] = int  # units of work done so far: see `BrokerRun`
        self.pauses: Callable[[], bool] = bool  # called after each callback: whether the others have to wait
        self.read_size = 0  # bytes that sockets delivered since the last turn
        self._counted = 0
        self._ready: deque[Callable[[], object]] = deque()

    def face(self) -> asyncio.AbstractEventLoop:
        return cast(asyncio.AbstractEventLoop, self)

    def call_soon(self, callback: Callable[..., object], *args: Any, context: object = None) -> None:
        self._ready.append(partial(callback, *args))

    call_soon_threadsafe = call_soon

    def call_later(self, delay_s: float, callback: Callable[..., object], *args: Any) -> Timer:
        timer = Timer(partial(callback, *args))
        self.timeline.after(max(int(delay_s * SECOND_NS), 0), lambda: timer.fire(self) if self.is_alive else None)
        return timer

    def create_future(self) -> asyncio.Future[None]:
        return asyncio.Future(loop=self.face())

    def get_debug(self) -> bool:
        return False

    @property
    def is_sated(self) -> bool:
        return self.read_size > READ_SIZE_MAX

    def run_ready(self) -> None:
        """Run the ready callbacks, as a real loop does between two polls."""
        self.read_size = 0
        while self.is_alive and self._ready:
            self.run(self._ready.popleft())
            if self.pauses():
                return

    def run(self, callback: Callable[[], object]) -> None:
        """Run one callback and check that its work is bounded, however much is stored: it blocks everything else."""
        before, inner = self.work(), self._counted
        callback()
        units = self.work() - before
        # Nested reads are callbacks of their own.
        self._counted, units = inner + units, units - (self._counted - inner)
        assert units <= WORK_UNITS_MAX, f"{units} units of work in one callback: {callback}"


class Timer:
    def __init__(self, event: Callable[[], object]) -> None:
        self._event: Callable[[], object] | None = event

    def fire(self, loop: SimLoop) -> None:
        if self._event is not None:
            loop.run(self._event)

    def cancel(self) -> None:
        self._event = None


class SimThread(Executor):
    """A thread that runs each task in one go a while later, between two events of the loop."""

    def __init__(self, loop: SimLoop, pause_ns: Callable[[], int]) -> None:
        self._loop, self._pause_ns = loop, pause_ns

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._loop.timeline.after(self._pause_ns(), lambda: fn(*args, **kwargs) if self._loop.is_alive else None)
        return Future()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Nothing to release."""

    def new_thread(
        self, *, target: Callable[..., object], args: tuple[Any, ...], name: str, daemon: bool
    ) -> threading.Thread:
        return cast(threading.Thread, _Run(self, target, args))


class _Run:
    def __init__(self, thread: SimThread, target: Callable[..., object], args: tuple[Any, ...]) -> None:
        self._thread, self._target, self._args = thread, target, args
        self._is_done = False

    def start(self) -> None:
        self._thread.submit(self._run)

    def _run(self) -> None:
        self._is_done = True
        self._target(*self._args)

    def is_alive(self) -> bool:
        return not self._is_done

    def join(self) -> None:
        if not self._is_done:
            self._run()
