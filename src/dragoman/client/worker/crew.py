"""A crew in this process: runs coroutines on an event loop in a separate thread, and plain functions in threads.

The session's loop is neither of them, so nothing a job does stops heartbeats (except C code that keeps the interpreter lock for seconds;
child processes solve that).

Coroutines that never suspend run one after another in one task, the *driver*: a task per job costs more than a small job. When one does
suspend, its driver becomes the task of that job and another driver takes the rest; from then on that function gets its own task
immediately.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import logging
import queue
import threading
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

from dragoman.client.app import App
from dragoman.client.body import failure_of, value_of
from dragoman.client.news import Handler
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.lookup import Lookup
from dragoman.limits import NAME_SHOWN_SIZE_MAX
from dragoman.printable import printable, printable_bytes, traceback_text

NEWS_RUN = 0  # the run number of a handler's run: no answer is sent for it
NEWS_MAX = 10_000  # handler runs begun and not ended; news beyond this is dropped

log = logging.getLogger("dragoman.worker")

Begun = tuple[int, Callable[..., Any], list[Any], dict[str, Any]]


class LocalCrew:
    """Runs jobs; `ended` is called in `loop` with the runs that have ended."""

    def __init__(
        self,
        app: App,
        settings: WorkerSettings,
        loop: asyncio.AbstractEventLoop,
        ended: Callable[[list[tuple[int, bytes]]], None],
    ) -> None:
        self._app = app
        self._lookup = Lookup(app.jobs, settings.allow_import)
        self._session_loop = loop
        self._report_ended = ended
        self._threads = Threads(settings.slots, "dragoman job")
        self._news_threads = Threads(settings.slots, "dragoman news")
        self._news_runs = 0
        self._begun: deque[Begun] = deque()
        self._ended: deque[tuple[int, bytes]] = deque()
        self._is_delivery_due = False
        self._driver: object | None = None
        self._waiting_functions: set[Callable[..., Any]] = set()  # functions seen to suspend: they get their own tasks
        self._tasks: dict[int, asyncio.Task[None]] = {}  # by run number
        self._live_tasks: set[asyncio.Task[None]] = set()
        self._cancelled: set[int] = set()
        self._context = contextvars.copy_context()  # every job starts with a copy of it
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="dragoman coroutines", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Stop the jobs' loop; jobs still running in threads are abandoned."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(1.0)

    def _serve(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(self._app.close())  # the connections of jobs that call jobs
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        self._loop.close()

    # -- in the session's loop ---------------------------------------------------------------------------------------------

    def give(self, jobs: list[tuple[int, bytes]]) -> None:
        has_begun = False
        for run_no, body in jobs:
            try:
                function, args, kwargs, is_async = self._lookup.find(body)
            except Exception as error:  # any exception of an import or a decoder becomes the answer
                self._end(run_no, failure_of(error))
                continue
            if is_async:
                self._begun.append((run_no, function, args, kwargs))
                has_begun = True
            else:
                self._threads.put(functools.partial(self._run_plain, run_no, function, args, kwargs))
        if has_begun:
            self._loop.call_soon_threadsafe(self._drive)

    def cancel(self, run_no: int) -> None:
        self._loop.call_soon_threadsafe(self._cancel, run_no)

    def handle_news(self, handlers: list[Handler], topic: bytes, body: bytes) -> None:
        """Run the handlers whose prefix matches the topic."""
        for handler in handlers:
            if not topic.startswith(handler.prefix):
                continue
            if self._news_runs >= NEWS_MAX:
                log.warning("news of %s dropped: %d handlers are still busy", shown_topic(topic), NEWS_MAX)
                continue
            try:
                args = handler.arguments(topic, body)
            except Exception as error:
                log.error("news of %s cannot be read\n%s", shown_topic(topic), traceback_text(error))
                continue
            self._news_runs += 1
            if handler.is_async:
                self._begun.append((NEWS_RUN, handler.function, args, {}))
                self._loop.call_soon_threadsafe(self._drive)
            else:
                self._news_threads.put(functools.partial(self._run_plain, NEWS_RUN, handler.function, args, {}))

    def _deliver(self) -> None:
        self._is_delivery_due = False
        done: list[tuple[int, bytes]] = []
        ended = self._ended
        while ended:
            item = ended.popleft()
            if item[0] == NEWS_RUN:
                self._news_runs -= 1
            else:
                done.append(item)
        if done:
            self._report_ended(done)

    # -- in any thread --------------------------------------------------------------------------------------------------

    def _end(self, run_no: int, value: bytes) -> None:
        # The order matters: `_deliver` clears the flag first, then reads the list.
        self._ended.append((run_no, value))
        if not self._is_delivery_due:
            self._is_delivery_due = True
            try:
                self._session_loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:
                pass  # the program has ended in the meantime

    def _run_plain(self, run_no: int, function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> None:
        try:
            value = value_of(self._context.copy().run(function, *args, **kwargs))
        except BaseException as error:  # not even a job's SystemExit may end the worker's thread
            value = self._failed(function, error)
        self._end(run_no, value)

    def _failed(self, function: Callable[..., Any], error: BaseException) -> bytes:
        name = printable(str(getattr(function, "__qualname__", function)), NAME_SHOWN_SIZE_MAX)
        # Not with `exc_info`: a program's own logging would write all 70 MB of an exception that large.
        log.warning("%s failed\n%s", name, traceback_text(error))
        return failure_of(error)

    # -- in the jobs' loop ----------------------------------------------------------------------------------------------

    def _drive(self) -> None:
        """Start a driver for the pending runs, unless one is active."""
        if self._driver is None and self._begun:
            driver = self._driver = object()
            self._task(self._run_all(driver))
            self._loop.call_soon(self._relieve, driver)

    def _task(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work, context=self._context.copy())
        self._live_tasks.add(task)  # the loop keeps only weak references to its tasks
        task.add_done_callback(self._live_tasks.discard)

    def _relieve(self, driver: object) -> None:
        """Called right after the driver's first step: if it is still the driver, a job in it is suspended, and it becomes that job's task."""
        if self._driver is driver:
            self._driver = None
            self._drive()

    async def _run_all(self, driver: object) -> None:
        begun = self._begun
        clean = self._context
        while begun:
            work = begun.popleft()
            if work[1] in self._waiting_functions:
                self._task(self._run(work))
                continue
            await self._run(work)
            if self._driver is not driver:
                self._waiting_functions.add(work[1])
                return
            if contextvars.copy_context() != clean:
                break  # the job changed its context, which the next one must not see
        self._driver = None
        self._drive()

    async def _run(self, work: Begun) -> None:
        run_no, function, args, kwargs = work
        if run_no in self._cancelled:
            self._cancelled.discard(run_no)
            self._end(run_no, failure_of(TimeoutError("out of time before it began")))
            return
        task = asyncio.current_task()
        assert task is not None
        self._tasks[run_no] = task
        try:
            value = value_of(await function(*args, **kwargs))
        except BaseException as error:  # not even a job's SystemExit may end the jobs' loop
            value = self._failed(function, error)
        self._tasks.pop(run_no, None)
        self._end(run_no, value)

    def _cancel(self, run_no: int) -> None:
        task = self._tasks.get(run_no)
        if task is not None:
            task.cancel()
        elif any(work[0] == run_no for work in self._begun):
            self._cancelled.add(run_no)


class Threads:
    """Threads for plain functions: as many as are busy at once, never more than the slots.

    They are daemon threads: a job that outlasts the drain must not keep the process alive.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def put(self, work: Callable[[], None]) -> None:
        """Queue work for a thread. Call it from one thread only."""
        self._work.put(work)
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, name=f"{self._name} {self._count}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._work.get()()
            self._idle.release()


def shown_topic(topic: bytes) -> str:
    return printable_bytes(topic, NAME_SHOWN_SIZE_MAX)
