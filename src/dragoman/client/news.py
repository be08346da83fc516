"""News: publishing to a topic, and hearing what is published under a prefix.

eMQP acknowledges no PUBLISH: news reaches whoever subscribes at that moment, at most once. A publisher without a connection
holds its news for a while, within a bound.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final

from dragoman.client.address import PUBLISH, SUBSCRIBE, Address
from dragoman.client.caller import too_long
from dragoman.client.line import Line
from dragoman.client.link import Link
from dragoman.dialects.emqp.client_side import ClientSide, MessageIds, SubscriberSide, encode_publish
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.errors import AppClosed, BrokerUnreachable
from dragoman.limits import MESSAGE_SIZE_MAX, NEWS_SIZE_MAX

SWEEP_S: Final = 0.25
CLOSE_S: Final = 1.0

Held = tuple[bytes, asyncio.Future[None], float]


class Publisher:
    """One loop's connection to the publish port."""

    def __init__(self, address: Address, wait_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._address = address
        self._wait_s = wait_s
        self._ids = MessageIds(id_prefix_of(os.urandom(10)))
        self._line = Line(address, PUBLISH, self._make, self._up, self._down)
        self._link: Link | None = None
        self._side: ClientSide | None = None
        self._held: deque[Held] = deque()
        self._held_size = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    def publish(self, topic: bytes, body: bytes) -> asyncio.Future[None]:
        """Done once the connection has taken it."""
        message = encode_publish(self._ids.take(), topic, body)
        done: asyncio.Future[None] = self.loop.create_future()
        if self._is_closed:
            done.set_exception(AppClosed("the App is closed"))
        elif len(message) > MESSAGE_SIZE_MAX:
            done.set_exception(too_long(len(message)))
        elif self._held_size > NEWS_SIZE_MAX:
            done.set_exception(self._unreachable())
        else:
            self._held.append((message, done, self.loop.time() + self._wait_s))
            self._held_size += len(message)
            self._line.start()
            self._pump()
        return done

    def _unreachable(self) -> BrokerUnreachable:
        problem = "it does not read what is published" if self._link is not None else self._line.problem
        return BrokerUnreachable(self._address.text, self._wait_s, problem)

    def _make(self) -> Link:
        self._side = ClientSide(str(uuid.uuid4()).encode(), MESSAGE_SIZE_MAX)
        link = Link(self._side.zmtp, self._hear)
        link.resumed = self._pump
        return link

    def _hear(self, data: bytes) -> None:
        assert self._side is not None
        self._side.receive(data)

    def _up(self, link: Link) -> None:
        self._link = link
        self._pump()

    def _down(self) -> None:
        self._link = None

    def _pump(self) -> None:
        held, link = self._held, self._link
        while held and link is not None and not link.is_blocked:
            message, done, _ = held.popleft()
            self._held_size -= len(message)
            link.send(message)
            if not done.done():
                done.set_result(None)
        if held and self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = self.loop.time()
        while self._held and self._held[0][2] <= now:
            message, done, _ = self._held.popleft()
            self._held_size -= len(message)
            if not done.done():
                done.set_exception(self._unreachable())
        self._pump()

    async def flush(self) -> None:
        if self._link is not None:
            await self._link.sent()

    async def close(self) -> None:
        """What was published and not awaited may still leave, if a connection comes up soon."""
        self._is_closed = True
        if self._held:
            await asyncio.wait([done for _, done, _ in self._held], timeout=CLOSE_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for _, done, _ in self._held:
            if not done.done():
                done.set_exception(AppClosed("the App was closed"))
        self._held.clear()
        await self._line.close()


class Subscriber:
    """A connection to the subscribe port; `take` gets each topic and body."""

    def __init__(self, address: Address, prefixes: list[bytes], take: Callable[[bytes, bytes], None]) -> None:
        self._prefixes = prefixes
        self._take = take
        self._side: SubscriberSide | None = None
        self._line = Line(address, SUBSCRIBE, self._make, self._up, self._down)
        self.up = asyncio.Event()

    def start(self) -> None:
        self._line.start()

    @property
    def problem(self) -> str:
        return self._line.problem

    def _make(self) -> Link:
        self._side = SubscriberSide(MESSAGE_SIZE_MAX)
        return Link(self._side.zmtp, self._hear)

    def _up(self, link: Link) -> None:
        assert self._side is not None
        for prefix in self._prefixes:
            link.send(self._side.zmtp.subscribe_bytes(prefix))
        self.up.set()

    def _down(self) -> None:
        self.up.clear()

    def _hear(self, data: bytes) -> None:
        assert self._side is not None
        for topic, body in self._side.receive(data):
            self._take(topic, body)

    async def close(self) -> None:
        await self._line.close()


async def hear(address: Address, prefixes: list[bytes]) -> AsyncGenerator[tuple[str, bytes], None]:
    """Yield news as it comes. What is not taken in time is dropped at the oldest end, as a subscriber that sleeps loses news."""
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
    subscriber.start()
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
