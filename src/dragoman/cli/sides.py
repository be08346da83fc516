"""What `send`, `call`, `publish` and `subscribe` do over another dialect than eMQP: the SDK's own ends, for one message."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, Final

from dragoman.client import features
from dragoman.client.address import Address
from dragoman.client.line import Line
from dragoman.client.news import Publisher, Subscriber
from dragoman.client.options import Options
from dragoman.client.side_caller import SideCaller
from dragoman.client.wishes import wish_of
from dragoman.errors import BrokerUnreachable

CONNECT_S: Final = 5.0
LOOK_S: Final = 0.05


def say(
    address: Address, queue: str, body: bytes, options: dict[str, Any], wants_reply: bool, wait_s: float
) -> tuple[bytes, bytes]:
    """Send a message and wait until it is kept or answered: its id and the answer. Raises a ClientError."""
    if options["headers"]:
        features.require(address.tongue.name, features.HEADERS)
    wait_s = wait_s or math.inf
    asked = Options(
        queue,
        retries=options["retries"],
        timeout_s=options["job_timeout"],
        priority=options["priority"] or 0,
        delay_s=options["delay"] or 0.0,
        expires_s=options["expires"],
        dedupe=options["dedupe"],
        guarantee=options["guarantee"],
    )
    wish = wish_of(address, asked, wants_reply, wait_s)

    async def whole() -> tuple[bytes, bytes]:
        caller = SideCaller(address)
        message_id = caller.ids.take()
        try:
            call = caller.call(message_id, wish, body, wait_s)
            await _settled(call, caller.line, address)
            return message_id, call.result()
        finally:
            await caller.close()

    return asyncio.run(whole())


def publish(address: Address, topic: str, body: bytes) -> None:
    features.require(address.tongue.name, features.PUBLISH)

    async def whole() -> None:
        publisher = Publisher(address, CONNECT_S)
        try:
            sent = publisher.publish(topic.encode("utf-8", "surrogateescape"), body)
            await _settled(sent, publisher.line, address)
            await publisher.flush()
        finally:
            await publisher.close()

    asyncio.run(whole())


def subscribe(
    address: Address,
    prefixes: tuple[str, ...],
    wait_s: float | None,
    started: Callable[[], None],
    take: Callable[[bytes, bytes], bool],
) -> None:
    """Hear news until `take` says that it is enough, or the time is up."""
    features.check_prefixes(address, prefixes)

    async def whole() -> None:
        done = asyncio.Event()

        def hear(topic: bytes, body: bytes) -> None:
            if not done.is_set() and take(topic, body):
                done.set()

        names = [prefix.encode("utf-8", "surrogateescape") for prefix in prefixes]
        subscriber = Subscriber(address, names, hear)
        subscriber.start()
        try:
            await _settled(asyncio.ensure_future(subscriber.up.wait()), subscriber.line, address)
            started()
            async with asyncio.timeout(wait_s):
                await done.wait()
        except TimeoutError:
            pass  # the caller knows how many came
        finally:
            await subscriber.close()

    asyncio.run(whole())


async def _settled(what: asyncio.Future[Any], line: Line, address: Address) -> None:
    """Wait for it, unless no broker of the address can be reached: a command does not wait for one to come."""
    while not what.done():
        await asyncio.wait([what], timeout=LOOK_S)
        if line.failures >= max(1, len(address.hosts)) and not what.done():
            what.cancel()
            raise BrokerUnreachable(address.text, CONNECT_S, line.problem)
    what.result()
