"""App: a broker's address with the jobs, handlers and schedules of a program."""

from __future__ import annotations

import asyncio
import concurrent.futures
import logging
import math
import os
import threading
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, overload
from urllib.parse import quote

from dragoman.client import address, features, news
from dragoman.client.body import encode_finite
from dragoman.client.caller import Caller, too_long
from dragoman.client.features import DEFAULT_QUEUE
from dragoman.client.job import Handle, Job
from dragoman.client.news import Handler
from dragoman.client.options import Options, call_options
from dragoman.dialects.endpoint import ClientEndpoint
from dragoman.errors import Refused
from dragoman.limits import CALLS_MAX, CALLS_SIZE_MAX

log = logging.getLogger("dragoman.client")

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., Any])


class LoopConnections:
    """The caller and the publisher of one event loop."""

    def __init__(self, app: App) -> None:
        self.loop = asyncio.get_running_loop()
        self.caller = Caller(app.address, app.calls_max, app.calls_size_max)
        self.publisher = news.Publisher(app.address, app.wait_s)

    async def close(self) -> None:
        await asyncio.gather(self.caller.close(), self.publisher.close())


class App:
    """A program's connection to one broker. It connects on first use, separately in each event loop that uses it.

    `wait_s` limits how long a call waits for the broker (delay, state, cancel, every, publish), `answer_s` how long `ask` waits for a
    worker's result.
    """

    def __init__(
        self,
        broker: str = "emqp://127.0.0.1",
        *,
        wait_s: float = 30.0,
        answer_s: float = 300.0,
        calls_max: int = CALLS_MAX,
        calls_size_max: int = CALLS_SIZE_MAX,
    ) -> None:
        self.address = address.parse(broker)
        self.wait_s = wait_s
        self.answer_s = answer_s
        self.calls_max = calls_max
        self.calls_size_max = calls_size_max
        self.background = Background()
        self.jobs: dict[tuple[str, str], Job[..., Any, Any]] = {}
        self.handlers: list[Handler] = []
        self.schedules: list[Schedule] = []
        self._connections: dict[asyncio.AbstractEventLoop, LoopConnections] = {}
        self._last: LoopConnections | None = None

    @classmethod
    def from_broker_json(cls, path: str | Path, **options: Any) -> App:
        """An App for the broker that wrote this `broker.json`, or that uses this data directory."""
        return cls(f"file:{quote(str(path))}", **options)

    def connections(self) -> LoopConnections:
        """The connections of the running loop."""
        loop = asyncio.get_running_loop()
        found = self._last
        if found is None or found.loop is not loop:
            found = self._connections.get(loop)
            if found is None:
                for ended in [known for known in list(self._connections) if known.is_closed()]:
                    self._connections.pop(ended, None)  # each asyncio.run leaves a closed loop behind
                found = self._connections[loop] = LoopConnections(self)
            self._last = found
        return found

    def job(
        self,
        *,
        queue: str = DEFAULT_QUEUE,
        retries: int | None = None,
        timeout_s: float | None = None,
        priority: int = 0,
        delay_s: float = 0.0,
        expires_s: float | None = None,
        dedupe: str | Callable[..., str] | None = None,
        guarantee: bool = False,
        once: bool = False,
        repeatable: bool = False,
        wait_s: float | None = None,
    ) -> Makes:
        """Decorate a function as a job of this App; docs/reference/client.md explains each option."""
        options = Options(
            queue, retries, timeout_s, priority, delay_s, expires_s, dedupe, guarantee, once, repeatable, wait_s
        )
        return Makes(self, options)

    async def send(self, queue: str, body: bytes, headers: Sequence[str] = ()) -> Handle:
        """Enqueue a body in any format; returns once the broker has stored it."""
        call_id, _ = await self._call(queue, body, headers, False, self.wait_s)
        return Handle(self, call_id.decode())

    def send_sync(self, queue: str, body: bytes, headers: Sequence[str] = ()) -> Handle:
        return self.background.run(self.send(queue, body, headers))

    async def call(self, queue: str, body: bytes, headers: Sequence[str] = (), wait_s: float | None = None) -> bytes:
        """Send a body in any format to a worker and return the answer's bytes unchanged."""
        _, value = await self._call(queue, body, headers, True, self.answer_s if wait_s is None else wait_s)
        return value

    def call_sync(self, queue: str, body: bytes, headers: Sequence[str] = (), wait_s: float | None = None) -> bytes:
        return self.background.run(self.call(queue, body, headers, wait_s))

    async def _call(
        self, queue: str, body: bytes, headers: Sequence[str], wants_reply: bool, wait_s: float
    ) -> tuple[bytes, bytes]:
        """Send a body in any format; returns the call's id and the answer."""
        options = call_options(self.address, queue, Options(), wants_reply, wait_s, ",".join(headers))
        caller = self.connections().caller
        await caller.limit.room()
        call_id = caller.ids.take()
        return call_id, await caller.call(call_id, options, body, wait_s)

    async def batch(self, calls: Iterable[Coroutine[Any, Any, T]], *, return_exceptions: bool = False) -> list[Any]:
        """Start many calls (`job.ask(…)`, `job.delay(…)`) together, so that they are sent in one write. Results are in the same order.

        The first failure is raised once all have ended; with `return_exceptions`, failures are returned in the list instead.
        """
        results = await asyncio.gather(*calls, return_exceptions=True)
        if not return_exceptions:
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        return results

    def batch_sync(self, calls: Iterable[Coroutine[Any, Any, T]], *, return_exceptions: bool = False) -> list[Any]:
        return self.background.run(self.batch(calls, return_exceptions=return_exceptions))

    def publish(self, topic: str, body: Any) -> Sent:
        """Send a body to the subscribers of a topic; bytes are sent as they are, other values as JSON.

        Inside a running loop it is sent without being awaited; awaiting waits until the connection has accepted it. Without a loop it is
        sent before this returns.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.publish_sync(topic, body)
            return Sent(None)
        data = self._news_body(body)
        return Sent(self.connections().publisher.publish(topic.encode(), data))

    def publish_sync(self, topic: str, body: Any) -> None:
        self.background.run(self._publish(topic, self._news_body(body)))

    def _news_body(self, body: Any) -> bytes:
        features.require(self.address.profile.name, features.PUBLISH)
        return body if isinstance(body, bytes) else encode_finite(body, "the news")

    async def _publish(self, topic: str, data: bytes) -> None:
        publisher = self.connections().publisher
        await publisher.publish(topic.encode(), data)
        await publisher.flush()

    def news(self, *prefixes: str) -> AsyncGenerator[tuple[str, bytes], None]:
        """Subscribe to these prefixes and iterate over what is published, as (topic, body) pairs."""
        features.check_prefixes(self.address, prefixes or ("",))
        return news.received_news(self.address, [prefix.encode() for prefix in prefixes] or [b""])

    def on(self, prefix: str) -> Callable[[H], H]:
        """Decorate a function that the worker calls for each publication under a prefix: `f(body)` or `f(topic, body)`."""

        def register(function: H) -> H:
            self.handlers.append(Handler(prefix, function))
            return function

        return register

    def every(self, when: str | float, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> Sent:
        """Have the broker enqueue a job repeatedly: by a cron expression, or at an interval in seconds. The schedule survives restarts.

        Inside a running loop it is sent now, and awaiting waits until the broker has stored it. Without one (at the top of a module) it is
        recorded and sent by the worker when it starts, or when awaited. The same job with the same arguments has one schedule.
        """
        features.require(self.address.profile.name, features.SCHEDULES)
        schedule = Schedule(when, job, args, kwargs)
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self.schedules.append(schedule)
            return Sent(None, schedule.send)
        return Sent(loop.create_task(schedule.send()))

    def every_sync(self, when: str | float, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> None:
        self.background.run(Schedule(when, job, args, kwargs).send())

    async def unschedule(self, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> bool:
        """Remove the schedule of a job with these arguments; False when there is none."""
        return await Schedule(-1.0, job, args, kwargs).withdraw()

    def unschedule_sync(self, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> bool:
        return self.background.run(Schedule(-1.0, job, args, kwargs).withdraw())

    async def close(self) -> None:
        """Close the running loop's connections; pending calls there fail with AppClosed. The next use connects again."""
        found = self._connections.pop(asyncio.get_running_loop(), None)
        if found is self._last:
            self._last = None
        if found is not None:
            await found.close()

    def close_sync(self) -> None:
        """Close the connections of the `*_sync` methods and their thread."""
        if self.background.is_running:
            self.background.run(self.close())
            self.background.stop()

    async def __aenter__(self) -> App:
        return self

    async def __aexit__(self, *exc: object) -> Literal[False]:
        await self.close()
        return False

    def __enter__(self) -> App:
        return self

    def __exit__(self, *exc: object) -> Literal[False]:
        self.close_sync()
        return False


class Makes:
    """The decorator that `app.job(…)` returns; it preserves a function's parameters and result for the type checker."""

    def __init__(self, app: App, options: Options) -> None:
        self._app = app
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]]) -> Job[P, R, Coroutine[Any, Any, R]]: ...

    @overload
    def __call__(self, function: Callable[P, R]) -> Job[P, R, R]: ...

    def __call__(self, function: Callable[P, Any]) -> Job[P, Any, Any]:
        made: Job[P, Any, Any] = Job(self._app, function, self._options)
        self._app.jobs[made.path, made.name] = made
        return made


class Sent:
    """The result of `publish` and `every`: awaiting it waits until it is sent or stored; if not awaited, a failure is logged once."""

    def __init__(
        self, task: asyncio.Future[None] | None, later: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._task = task
        self._later = later
        self._is_awaited = False
        if task is not None:
            task.add_done_callback(self._look)

    def __await__(self) -> Generator[Any, None, None]:
        self._is_awaited = True
        if self._task is not None:
            return self._task.__await__()
        return (self._later or nothing)().__await__()

    def _look(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled():
            error = task.exception()
            if error is not None and not self._is_awaited:
                log.warning("not sent: %s", error)


async def nothing() -> None:
    """Awaited for something that is already sent."""


class Background:
    """A thread with an event loop for the `*_sync` methods. It starts on first use; one per App and process.

    Plain asyncio by default: its transports write immediately, so data that was sent survives an exit right after it.
    """

    def __init__(self, new_loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.SelectorEventLoop) -> None:
        self._new_loop = new_loop
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine to its end and return the result; an interrupt of the calling thread cancels it."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a sync call inside the App's own loop would wait for itself; await the async one")
        future = self.submit(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        with self._lock:
            # A fork copies the loop but not its thread.
            if self._loop is None or self._pid != os.getpid():
                self._pid = os.getpid()
                self._loop = self._new_loop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="dragoman", daemon=True)
                self._thread.start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def call(self, function: Callable[[], object]) -> None:
        """Call a function in the loop, if it runs."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(function)

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:  # at the end it cancels the remaining tasks
            asyncio.set_event_loop(loop)
            runner.get_loop().run_forever()

    @property
    def is_running(self) -> bool:
        return self._loop is not None and self._pid == os.getpid()

    def stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join()


class Schedule:
    """A durable schedule: the broker enqueues the job, every so many seconds or by a cron expression.

    A schedule is identified by its job and arguments; sending the same again changes nothing (`keep-same`), so that a worker may declare its
    schedules at each start without shifting them. The first run waits for the first due instant (`nohaste`).
    """

    def __init__(
        self, when: str | float, job: Job[..., Any, Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        if not isinstance(when, str) and not math.isfinite(when):
            raise ValueError(f"an interval wants seconds, not {when}")
        if isinstance(when, str) and not when.strip():
            raise ValueError("a cron expression is not empty")
        self.job = job
        self.cron = when if isinstance(when, str) else ""
        self.interval_s = -1.0 if isinstance(when, str) else float(when)
        self.body = job.arguments.body(args, kwargs)

    async def send(self) -> None:
        """Declare the schedule; returns once the broker has stored it; raises Refused."""
        if not self.cron and self.interval_s <= 0:
            raise ValueError(f"an interval wants more than 0 seconds, not {self.interval_s:g}")
        await self._ask(is_removal=False)

    async def withdraw(self) -> bool:
        """Remove the schedule; False when the broker has no such schedule; raises Refused."""
        try:
            await self._ask(is_removal=True)
        except Refused as refused:
            if refused.refusal != "NOT_FOUND":
                raise
            return False
        return True

    async def _ask(self, is_removal: bool) -> None:
        app, body, cron = self.job.app, self.body, self.cron.encode()
        features.require(app.address.profile.name, features.SCHEDULES)
        options = call_options(app.address, self.job.opts.queue, self.job.opts, False, app.wait_s)
        if len(body) > options.body_size_max:
            raise too_long(len(body))

        def question(endpoint: ClientEndpoint, call_id: bytes) -> None:
            send = endpoint.unschedule if is_removal else endpoint.schedule
            send(call_id, options, self.interval_s, cron, body)

        await app.connections().caller.query(question, False, app.wait_s)
