"""News: publishing to a topic, receiving what is published under a prefix, and the handlers that `app.on(prefix)` creates.

No dialect acknowledges a publication: news reaches the current subscribers, at most once. A publisher without a connection buffers its
news for up to `wait_s`, within a size limit.
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final

import msgspec

from dragoman.client.address import Address
from dragoman.client.body import hints_of
from dragoman.client.caller import too_long
from dragoman.client.connection import ReconnectingConnection
from dragoman.client.link import Link
from dragoman.dialects.description import PUBLISH, SUBSCRIBE
from dragoman.dialects.endpoint import ENVELOPE_SIZE, EndpointSetup, PublisherEndpoint, SubscriberEndpoint
from dragoman.errors import AppClosed, BrokerUnreachable, Refused
from dragoman.limits import MESSAGE_SIZE_MAX, NEWS_SIZE_MAX

SWEEP_S: Final = 0.25
CLOSE_S: Final = 1.0

OVERHEAD_SIZE: Final = 256  # counted per buffered publication besides topic and body: empty ones are limited too

Buffered = tuple[bytes, bytes, asyncio.Future[None], float]


class Publisher:
    """One loop's connection to the publish port, in any dialect that has one."""

    def __init__(self, address: Address, wait_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._address = address
        self._wait_s = wait_s
        self.connection = ReconnectingConnection(address, PUBLISH, self._make, self._up, self._down)
        self._link: Link[PublisherEndpoint] | None = None
        self._buffered: deque[Buffered] = deque()
        self._buffered_size = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    def publish(self, topic: bytes, body: bytes) -> asyncio.Future[None]:
        """Send a publication; the future is done once the connection has accepted it."""
        size = OVERHEAD_SIZE + len(topic) + len(body)
        done: asyncio.Future[None] = self.loop.create_future()
        if self._is_closed:
            done.set_exception(AppClosed("the App is closed"))
        elif size + ENVELOPE_SIZE > MESSAGE_SIZE_MAX:
            done.set_exception(too_long(size + ENVELOPE_SIZE))
        elif self._buffered_size > NEWS_SIZE_MAX:
            done.set_exception(self._unreachable())
        else:
            self._buffered.append((topic, body, done, self.loop.time() + self._wait_s))
            self._buffered_size += size
            self.connection.start()
            self._pump()
        return done

    def _unreachable(self) -> BrokerUnreachable:
        problem = "it does not read what is published" if self._link is not None else self.connection.problem
        return BrokerUnreachable(self._address.text, self._wait_s, problem)

    def _make(self, setup: EndpointSetup) -> Link[PublisherEndpoint]:
        profile = self._address.profile
        endpoint: PublisherEndpoint = profile.endpoints().publisher(setup)
        link = Link(endpoint, lambda _, data: endpoint.receive(data), hello=profile.hello)
        link.resumed = self._pump
        return link

    def _up(self, link: Link[PublisherEndpoint]) -> None:
        self._link = link
        self._pump()

    def _down(self) -> None:
        self._link = None

    def _pump(self) -> None:
        buffered, link = self._buffered, self._link
        while buffered and link is not None and not link.is_blocked:
            topic, body, done, _ = buffered.popleft()
            self._buffered_size -= OVERHEAD_SIZE + len(topic) + len(body)
            try:
                link.endpoint.publish(topic, body)
            except ValueError as error:  # the dialect cannot express it
                _fail(done, Refused("INEXPRESSIBLE", str(error)))
                continue
            link.push()
            if not done.done():
                done.set_result(None)
        if buffered and self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = self.loop.time()
        while self._buffered and self._buffered[0][3] <= now:
            topic, body, done, _ = self._buffered.popleft()
            self._buffered_size -= OVERHEAD_SIZE + len(topic) + len(body)
            _fail(done, self._unreachable())
        self._pump()

    async def flush(self) -> None:
        if self._link is not None:
            await self._link.sent()

    async def close(self) -> None:
        """Close, after up to CLOSE_S for buffered publications to be sent if a connection comes up."""
        self._is_closed = True
        if self._buffered:
            await asyncio.wait([done for _, _, done, _ in self._buffered], timeout=CLOSE_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for _, _, done, _ in self._buffered:
            _fail(done, AppClosed("the App was closed"))
        self._buffered.clear()
        await self.connection.close()


def _fail(done: asyncio.Future[None], error: Exception) -> None:
    if not done.done():
        done.set_exception(error)


class Subscriber:
    """A connection to the subscribe port, in any dialect that has one; `receive` gets each topic and body."""

    def __init__(self, address: Address, prefixes: list[bytes], take: Callable[[bytes, bytes], None]) -> None:
        self._address = address
        self._prefixes = prefixes
        self._take = take
        self.connection = ReconnectingConnection(address, SUBSCRIBE, self._make, self._up, self._down)
        self.up = asyncio.Event()
        self.connection.start()

    def _make(self, setup: EndpointSetup) -> Link[SubscriberEndpoint]:
        profile = self._address.profile
        return Link(profile.endpoints().subscriber(setup), self._receive, hello=profile.hello)

    def _up(self, link: Link[SubscriberEndpoint]) -> None:
        for prefix in self._prefixes:
            link.endpoint.subscribe(prefix)
        link.push()
        self.up.set()

    def _down(self) -> None:
        self.up.clear()

    def _receive(self, link: Link[SubscriberEndpoint], data: bytes) -> None:
        for topic, body in link.endpoint.receive(data):
            self._take(topic, body)

    async def close(self) -> None:
        await self.connection.close()


async def received_news(address: Address, prefixes: list[bytes]) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yield news as it arrives. Above the size limit the oldest news that was not consumed is dropped, as for any slow subscriber."""
    news: deque[tuple[bytes, bytes]] = deque()
    size = 0
    came = asyncio.Event()

    def take(topic: bytes, body: bytes) -> None:
        nonlocal size
        news.append((topic, body))
        size += len(body)
        while size > NEWS_SIZE_MAX:
            size -= len(news.popleft()[1])
        came.set()

    subscriber = Subscriber(address, prefixes, take)
    try:
        while True:
            await came.wait()
            came.clear()
            while news:
                topic, body = news.popleft()
                size -= len(body)
                yield topic.decode("utf-8", "replace"), body
    finally:
        await subscriber.close()


class Handler:
    """A function for a topic prefix. Its body parameter is decoded to its annotation; `bytes` gets the raw body."""

    def __init__(self, prefix: str, function: Callable[..., Any]) -> None:
        self.prefix = prefix.encode()
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        names = list(inspect.signature(function).parameters)
        if len(names) not in (1, 2):
            raise TypeError(f"{function.__qualname__} must take (body) or (topic, body), not {len(names)} parameters")
        self.takes_topic = len(names) == 2
        wanted = hints_of(function).get(names[-1], Any)
        self._decode = bytes if wanted is bytes else msgspec.json.Decoder(wanted).decode

    def arguments(self, topic: bytes, body: bytes) -> list[Any]:
        """The arguments for the function; raises msgspec.DecodeError."""
        value = self._decode(body)
        return [topic.decode("utf-8", "replace"), value] if self.takes_topic else [value]
