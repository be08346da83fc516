"""Every eMQP peer of ours says an identity in text: EventMQ's router decodes it, and ends on one that libzmq made up."""

from __future__ import annotations

import asyncio
import contextlib
import uuid
from collections.abc import Awaitable, Callable

import pytest
import zmq
import zmq.asyncio

from dragoman import App
from dragoman.client import address
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from tests.cli.raw_emqp import RawEmqp

WAIT_S = 60.0


async def routing_id_of(play: Callable[[str], Awaitable[None]]) -> bytes:
    """What a ROUTER of libzmq, in EventMQ's place, knows the peer by."""
    context = zmq.asyncio.Context()
    with context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        port = router.bind_to_random_port("tcp://127.0.0.1")
        playing = asyncio.ensure_future(play(f"emqp://127.0.0.1:{port}"))
        try:
            async with asyncio.timeout(WAIT_S):
                frames: list[bytes] = await router.recv_multipart()
        finally:
            playing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await playing
    return frames[0]


async def call(url: str) -> None:
    async with App(url, wait_s=1) as app:
        await app.call("mail", b"body")


async def publish(url: str) -> None:
    async with App(url, wait_s=1) as app:
        await app.publish("news", b"body")
        await asyncio.sleep(WAIT_S)


async def work(url: str) -> None:
    app = App(url)

    @app.job(queue="mail")
    async def job() -> None: ...

    worker = Worker(app, WorkerSettings())
    worker.start()
    try:
        await asyncio.sleep(WAIT_S)
    finally:
        await worker.session.close()  # type: ignore[union-attr]
        worker._crew.stop()


async def command(url: str) -> None:
    def talk() -> None:
        with RawEmqp(address.parse(url), "client") as found:
            found.request("mail", "", b"body")

    await asyncio.to_thread(talk)


async def command_publishing(url: str) -> None:
    def talk() -> None:
        with RawEmqp(address.parse(url), "publish") as found:
            found.publish("news", b"body")

    await asyncio.to_thread(talk)


@pytest.mark.parametrize("play", [call, publish, work, command, command_publishing])
def test_a_peer_of_ours_has_a_text_for_identity(play: Callable[[str], Awaitable[None]]) -> None:
    routing_id = asyncio.run(routing_id_of(play))
    assert str(uuid.UUID(routing_id.decode("ascii"))) == routing_id.decode()
