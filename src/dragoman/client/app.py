"""App: a broker's address, the jobs and handlers of a program, and the way to both."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar, overload
from urllib.parse import quote

from dragoman.client import address, features, news
from dragoman.client.background import Background
from dragoman.client.body import encode_finite, problem_of
from dragoman.client.caller import Caller
from dragoman.client.handle import Handle
from dragoman.client.handler import Handler, Handles
from dragoman.client.job import Job
from dragoman.client.options import DEFAULT_QUEUE, Options
from dragoman.client.schedule import Schedule
from dragoman.client.sent import Sent
from dragoman.client.side_caller import SideCaller
from dragoman.client.tongue import EMQP
from dragoman.client.wishes import wish_of
from dragoman.dialects.emqp.client_side import RequestForm
from dragoman.errors import Refused
from dragoman.limits import CALLS_MAX, CALLS_SIZE_MAX

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")
H = TypeVar("H", bound=Callable[..., Any])


class Desk:
    """One event loop's connections."""

    def __init__(self, app: App) -> None:
        self.loop = asyncio.get_running_loop()
        self.caller = Caller(app.address, app.calls_max, app.calls_size_max)
        # For every dialect but eMQP, whose caller is tuned and then stays without a connection.
        self.side_caller = (
            None if app.address.tongue is EMQP else SideCaller(app.address, app.calls_max, app.calls_size_max)
        )
        self.publisher = news.Publisher(app.address, app.wait_s)

    async def close(self) -> None:
        ends = [self.caller.close(), self.publisher.close()]
        if self.side_caller is not None:
            ends.append(self.side_caller.close())
        await asyncio.gather(*ends)


class App:
    """A program's link to one broker. It connects when first used, from whatever loop or thread uses it.

    `wait_s` bounds how long a word of the broker is waited for (delay, state, cancel, every, publish), `answer_s` how long `ask`
    waits for a worker's result.
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
        self._desks: dict[asyncio.AbstractEventLoop, Desk] = {}
        self._last: Desk | None = None

    @classmethod
    def from_broker_json(cls, path: str | Path, **options: Any) -> App:
        """An App for the broker that wrote this `broker.json`, or whose data directory this is."""
        place = quote(str(path))
        return cls(f"file:{place}", **options)

    def desk(self) -> Desk:
        """The connections of the running loop."""
        loop = asyncio.get_running_loop()
        desk = self._last
        if desk is None or desk.loop is not loop:
            desk = self._desks.get(loop)
            if desk is None:
                for gone in [known for known in list(self._desks) if known.is_closed()]:
                    self._desks.pop(gone, None)  # one more for each asyncio.run
                desk = self._desks[loop] = Desk(self)
            self._last = desk
        return desk

    # -- jobs -----------------------------------------------------------------------------------------------------------

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
        """Make a function a job of this App; docs/reference/client.md explains each option."""
        options = Options(
            queue, retries, timeout_s, priority, delay_s, expires_s, dedupe, guarantee, once, repeatable, wait_s
        )
        return Makes(self, options)

    async def send(self, queue: str, body: bytes, headers: Sequence[str] = ()) -> Handle:
        """Leave a body of any kind with the broker; returns once it is kept."""
        side_caller = self.desk().side_caller
        if side_caller is not None:
            return Handle(self, (await self._say(side_caller, queue, body, headers, False, self.wait_s))[0])
        caller = self.desk().caller
        await caller.room()
        call_id = caller.ids.take()
        message = RequestForm(queue.encode(), ",".join(["ack-requested", *headers]).encode())
        refusal = await caller.call(call_id, message.encode_deduped(call_id, body), False, self.wait_s)
        if refusal:
            raise problem_of(refusal, "not kept")
        return Handle(self, call_id.decode())

    def send_sync(self, queue: str, body: bytes, headers: Sequence[str] = ()) -> Handle:
        return self.background.run(self.send(queue, body, headers))

    async def call(self, queue: str, body: bytes, headers: Sequence[str] = (), wait_s: float | None = None) -> bytes:
        """Have a worker of any kind answer a body of any kind; returns the answer's bytes as the worker sent them."""
        answer_s = self.answer_s if wait_s is None else wait_s
        side_caller = self.desk().side_caller
        if side_caller is not None:
            return (await self._say(side_caller, queue, body, headers, True, answer_s))[1]
        caller = self.desk().caller
        await caller.room()
        call_id = caller.ids.take()
        form = RequestForm(queue.encode(), ",".join(["reply-requested", *headers]).encode())
        value = await caller.call(call_id, form.encode(call_id, body), True, answer_s, False)
        problem = problem_of(value, "") if value.startswith(b'{"error"') else None
        if isinstance(problem, Refused):
            raise problem
        return value

    def call_sync(self, queue: str, body: bytes, headers: Sequence[str] = (), wait_s: float | None = None) -> bytes:
        return self.background.run(self.call(queue, body, headers, wait_s))

    async def _say(
        self, caller: SideCaller, queue: str, body: bytes, headers: Sequence[str], wants_reply: bool, wait_s: float
    ) -> tuple[str, bytes]:
        """A call of any body where headers have no place: its id and the answer."""
        if headers:
            features.require(self.address.tongue.name, features.HEADERS)
        wish = wish_of(self.address, Options(queue), wants_reply, wait_s)
        await caller.room()
        call_id = caller.ids.take()
        return call_id.decode(), await caller.call(call_id, wish, body, wait_s)

    async def batch(self, calls: Iterable[Coroutine[Any, Any, T]], *, return_exceptions: bool = False) -> list[Any]:
        """Begin many calls (`job.ask(…)`, `job.delay(…)`) together: they leave in one write. Results in the same order.

        The first failure is raised once all have ended, or failures stand in their places with `return_exceptions`.
        """
        results = await asyncio.gather(*calls, return_exceptions=True)
        if not return_exceptions:
            for result in results:
                if isinstance(result, BaseException):
                    raise result
        return results

    def batch_sync(self, calls: Iterable[Coroutine[Any, Any, T]], *, return_exceptions: bool = False) -> list[Any]:
        return self.background.run(self.batch(calls, return_exceptions=return_exceptions))

    # -- news -----------------------------------------------------------------------------------------------------------

    def publish(self, topic: str, body: Any) -> Sent:
        """Tell the subscribers of a topic; bytes go as they are, all else as JSON.

        Inside a running loop it is sent without being awaited; awaiting says that the connection took it. Without a loop it is
        sent before this returns.
        """
        features.require(self.address.tongue.name, features.PUBLISH)
        data = body if isinstance(body, bytes) else encode_finite(body, "the news")
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            self.background.run(self._publish(topic, data))
            return Sent(None)
        return Sent(self.desk().publisher.publish(topic.encode(), data))

    def publish_sync(self, topic: str, body: Any) -> None:
        features.require(self.address.tongue.name, features.PUBLISH)
        self.background.run(self._publish(topic, body if isinstance(body, bytes) else encode_finite(body, "the news")))

    async def _publish(self, topic: str, data: bytes) -> None:
        publisher = self.desk().publisher
        await publisher.publish(topic.encode(), data)
        await publisher.flush()

    def news(self, *prefixes: str) -> AsyncGenerator[tuple[str, bytes], None]:
        """Hear what is published under these prefixes, as (topic, body) pairs."""
        features.check_prefixes(self.address, prefixes or ("",))
        return news.hear(self.address, [prefix.encode() for prefix in prefixes] or [b""])

    def on(self, prefix: str) -> Handles:
        """Have the worker run a function for what is published under a prefix: `f(body)` or `f(topic, body)`."""
        return Handles(self.handlers, prefix)

    # -- schedules ------------------------------------------------------------------------------------------------------

    def every(self, when: str | float, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> Sent:
        """Have the broker make a job again and again: a cron expression, or an interval in seconds. It survives restarts.

        Inside a running loop it is sent now, and awaiting says that it is kept. Without one (at the top of a module) it is
        remembered and sent by the worker when it starts, or when awaited. The same job with the same arguments has one schedule.
        """
        features.require(self.address.tongue.name, features.SCHEDULES)
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
        """Forget the schedule of a job with these arguments; False when there is none."""
        return await Schedule(-1.0, job, args, kwargs).withdraw()

    def unschedule_sync(self, job: Job[P, Any, Any], *args: P.args, **kwargs: P.kwargs) -> bool:
        return self.background.run(Schedule(-1.0, job, args, kwargs).withdraw())

    # -- the end --------------------------------------------------------------------------------------------------------

    async def close(self) -> None:
        """End the running loop's connections; calls under way there fail with AppClosed. Another use connects again."""
        desk = self._desks.pop(asyncio.get_running_loop(), None)
        if desk is self._last:
            self._last = None
        if desk is not None:
            await desk.close()

    def close_sync(self) -> None:
        """End the sync face's connections and its thread."""
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
    """The decorator `app.job(…)` returns: it keeps a function's parameters and result for the type checker."""

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
