"""News: publishing to a topic, and hearing what is published under a prefix.

No dialect acknowledges a publication: news reaches whoever subscribes at that moment, at most once. A publisher without a connection
holds its news for a while, within a bound.
"""

from __future__ import annotations

import asyncio
import os
import uuid
from collections import deque
from collections.abc import AsyncGenerator, Callable
from typing import Final

from dragoman.client import sides
from dragoman.client.address import PUBLISH, SUBSCRIBE, Address
from dragoman.client.line import Line
from dragoman.client.link import Link, ZmtpLink
from dragoman.client.side_link import SideLink
from dragoman.client.tongue import EMQP
from dragoman.client.window import too_long
from dragoman.dialects.emqp.client_side import ClientSide, MessageIds, SubscriberSide, encode_publish
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.sides import ClientSide as ClientSideOf
from dragoman.dialects.sides import PublisherSide
from dragoman.dialects.sides import SubscriberSide as SubscriberSideOf
from dragoman.errors import AppClosed, BrokerUnreachable, Refused
from dragoman.limits import MESSAGE_SIZE_MAX, NEWS_SIZE_MAX

SWEEP_S: Final = 0.25
CLOSE_S: Final = 1.0

HELD_SIZE: Final = 256  # of one held publication besides its topic and body: nothing published is free
HEADERS_SIZE: Final = 1024  # room for what a dialect puts around a topic and a body

Held = tuple[bytes, bytes, asyncio.Future[None], float]


class Publisher:
    """One loop's connection to the publish port, in any dialect that has one."""

    def __init__(self, address: Address, wait_s: float) -> None:
        self.loop = asyncio.get_running_loop()
        self._address = address
        self._wait_s = wait_s
        self._ids = MessageIds(id_prefix_of(os.urandom(10)))
        self._line = Line(address, PUBLISH, self._make, self._up, self._down)
        self._link: Link | None = None
        self._held: deque[Held] = deque()
        self._held_size = 0
        self._sweeper: asyncio.TimerHandle | None = None
        self._is_closed = False

    @property
    def line(self) -> Line:
        """The connection, for those who ask how it fares."""
        return self._line

    def publish(self, topic: bytes, body: bytes) -> asyncio.Future[None]:
        """Done once the connection has taken it."""
        size = HELD_SIZE + len(topic) + len(body)
        done: asyncio.Future[None] = self.loop.create_future()
        if self._is_closed:
            done.set_exception(AppClosed("the App is closed"))
        elif size + HEADERS_SIZE > MESSAGE_SIZE_MAX:
            done.set_exception(too_long(size + HEADERS_SIZE))
        elif self._held_size > NEWS_SIZE_MAX:
            done.set_exception(self._unreachable())
        else:
            self._held.append((topic, body, done, self.loop.time() + self._wait_s))
            self._held_size += size
            self._line.start()
            self._pump()
        return done

    def _unreachable(self) -> BrokerUnreachable:
        problem = "it does not read what is published" if self._link is not None else self._line.problem
        return BrokerUnreachable(self._address.text, self._wait_s, problem)

    def _make(self) -> Link:
        link: Link
        if self._address.tongue is EMQP:
            side = ClientSide(str(uuid.uuid4()).encode(), MESSAGE_SIZE_MAX)
            link = ZmtpLink(side.zmtp, lambda data: ignore(side.receive(data)))
        else:
            other = sides.publisher_side(self._address.tongue.name)
            hello = self._address.tongue.hello
            link = SideLink(other, lambda data: ignore(other.receive(data)), hello=hello)
        link.resumed = self._pump
        return link

    def _say(self, link: Link, topic: bytes, body: bytes) -> None:
        if isinstance(link, SideLink):
            assert isinstance(link.side, (ClientSideOf, PublisherSide))
            link.side.publish(topic, body)
            link.push()
        else:
            link.send(encode_publish(self._ids.take(), topic, body))

    def _up(self, link: Link) -> None:
        self._link = link
        self._pump()

    def _down(self) -> None:
        self._link = None

    def _pump(self) -> None:
        held, link = self._held, self._link
        while held and link is not None and not link.is_blocked:
            topic, body, done, _ = held.popleft()
            self._held_size -= HELD_SIZE + len(topic) + len(body)
            try:
                self._say(link, topic, body)
            except ValueError as error:  # what the dialect cannot express
                if not done.done():
                    done.set_exception(Refused("INEXPRESSIBLE", str(error)))
                continue
            if not done.done():
                done.set_result(None)
        if held and self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)

    def _sweep(self) -> None:
        self._sweeper = None
        now = self.loop.time()
        while self._held and self._held[0][3] <= now:
            topic, body, done, _ = self._held.popleft()
            self._held_size -= HELD_SIZE + len(topic) + len(body)
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
            await asyncio.wait([done for _, _, done, _ in self._held], timeout=CLOSE_S)
        if self._sweeper is not None:
            self._sweeper.cancel()
        for _, _, done, _ in self._held:
            if not done.done():
                done.set_exception(AppClosed("the App was closed"))
        self._held.clear()
        await self._line.close()


class Subscriber:
    """A connection to the subscribe port, in any dialect that has one; `take` gets each topic and body."""

    def __init__(self, address: Address, prefixes: list[bytes], take: Callable[[bytes, bytes], None]) -> None:
        self._address = address
        self._prefixes = prefixes
        self._take = take
        self._line = Line(address, SUBSCRIBE, self._make, self._up, self._down)
        self.up = asyncio.Event()

    def start(self) -> None:
        self._line.start()

    @property
    def line(self) -> Line:
        """The connection, for those who ask how it fares."""
        return self._line

    def _make(self) -> Link:
        if self._address.tongue is EMQP:
            side = SubscriberSide(MESSAGE_SIZE_MAX)
            self._zmtp = side.zmtp
            return ZmtpLink(side.zmtp, lambda data: self._hear(side.receive(data)))
        other = sides.subscriber_side(self._address.tongue.name)
        hello = self._address.tongue.hello
        return SideLink(other, lambda data: self._hear(other.receive(data)), hello=hello)

    def _up(self, link: Link) -> None:
        for prefix in self._prefixes:
            if isinstance(link, SideLink):
                assert isinstance(link.side, SubscriberSideOf)
                link.side.subscribe(prefix)
                link.push()
            else:
                link.send(self._zmtp.subscribe_bytes(prefix))
        self.up.set()

    def _down(self) -> None:
        self.up.clear()

    def _hear(self, news: list[tuple[bytes, bytes]]) -> None:
        for topic, body in news:
            self._take(topic, body)

    async def close(self) -> None:
        await self._line.close()


def ignore(said: object) -> None:
    """What a broker says to a publisher is of no use to it."""


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
