"""Addresses with alternates: a broker that refuses or says nothing is left for the next one, by clients and workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import pytest
import zmq

from dragoman import App
from dragoman.cli.ports import lasting_port
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from tests.client import errands as e
from tests.client.raw_broker import RawBroker
from tests.client.stand_in import StandIn
from tests.runtime.daemon import Daemon

DIALECTS = ("emqp", "rq", "ebus", "scale0", "pingpong")
DEADLINE_S = 60.0


def url_of(broker: Daemon, dialect: str, first: int) -> str:
    """Another port first, then the broker's, for clients and workers alike."""
    client, worker = (
        broker.place(dialect if dialect == "rq" else f"{dialect}.{role}")[1] for role in ("client", "worker")
    )
    return f"{dialect}://127.0.0.1:{first},127.0.0.1:{client}?worker={first},{worker}"


def errand_app(url: str, queue: str) -> App:
    """An App of its own with one of the errands, in a queue of its own where there are queues."""
    app = App(url, answer_s=20)
    app.job(queue="default" if app.address.queue else queue)(e.add.function)
    return app


@asynccontextmanager
async def working(app: App) -> AsyncIterator[Worker]:
    worker = Worker(app, WorkerSettings(slots=1))
    worker.start()
    try:
        await worker.is_ready()
        yield worker
    finally:
        await worker.stop()


async def ask_past(broker: Daemon, dialect: str, first: int) -> None:
    app = errand_app(url_of(broker, dialect, first), f"past-{dialect}")
    job = next(iter(app.jobs.values()))
    asked = asyncio.create_task(job.ask(1))
    async with working(app):
        assert await asked == 3


def test_a_place_that_refuses_is_passed_by(five: Daemon) -> None:
    async def work() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await asyncio.gather(*(ask_past(five, dialect, lasting_port()) for dialect in DIALECTS))

    asyncio.run(work())


def test_a_broker_that_says_nothing_is_passed_by(five: Daemon) -> None:
    async def work() -> None:
        async with asyncio.timeout(DEADLINE_S), RawBroker() as silent:
            await asyncio.gather(*(ask_past(five, dialect, silent.port) for dialect in DIALECTS))
            assert silent.visits >= 2 * len(DIALECTS)

    asyncio.run(work())


# -- scale0: NEEDBROKER, CHANGEBROKER ------------------------------------------------------------------------------------


class Scale0StandIn(StandIn):
    def say(self, to: bytes, *frames: bytes) -> None:
        self.router.send_multipart([to, *frames])


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


def test_a_scale0_client_asks_an_alternate_which_broker_to_use(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    alternate, wanted = Scale0StandIn(context), Scale0StandIn(context)

    async def work() -> None:
        async with asyncio.timeout(DEADLINE_S):
            app = errand_app(f"scale0://127.0.0.1:{lasting_port()},127.0.0.1:{alternate.port}", "q")
            asked = asyncio.create_task(next(iter(app.jobs.values())).ask(1))
            client, word, _ = await alternate.hear()
            assert word == b"NEEDBROKER"
            alternate.say(client, b"CHANGEBROKER", b'{"broker":"tcp://127.0.0.1:%d"}' % wanted.port, b"")
            client, word, _ = await wanted.hear()
            assert word == b"CONNECT"
            wanted.say(client, b"CONFIG", b'{"config_type":"JSON","config_version":"1"}', b"{}")
            client, word, header, _ = await wanted.hear()
            assert word == b"TASK"
            call_id = header.split(b'"')[3]
            wanted.say(client, b"TASKREPLY", b'{"id":"%s"}' % call_id, b'{"value":3}')
            assert await asked == 3
            await app.close()

    asyncio.run(work())
    alternate.drop()
    wanted.drop()


def test_an_alternate_that_knows_no_other_broker_is_used_itself(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    alternate = Scale0StandIn(context)

    async def work() -> None:
        async with asyncio.timeout(DEADLINE_S):
            app = errand_app(f"scale0://127.0.0.1:9,127.0.0.1:9?worker={lasting_port()},{alternate.port}", "q")
            worker = Worker(app, WorkerSettings(slots=1))
            worker.start()
            peer, word, header = await alternate.hear()
            assert word == b"NEEDBROKER"
            assert b'"services":["q"]' in header
            alternate.say(peer, b"ERROR", b'{"code":503,"reason":"no broker serves that"}')
            assert (await alternate.hear())[1] == b"CONNECT"
            alternate.say(peer, b"CONFIG", b'{"config_type":"JSON","config_version":"1"}', b"{}")
            assert (await alternate.hear())[1] == b"PING"
            await worker.is_ready()
            await worker.stop()

    asyncio.run(work())
    alternate.drop()


def test_a_scale0_worker_that_is_sent_away_answers_what_it_holds_where_it_got_it(
    context: zmq.Context[zmq.Socket[bytes]],
) -> None:
    old, new = Scale0StandIn(context), Scale0StandIn(context)
    config = b'{"config_type":"JSON","config_version":"1"}'

    async def enlist(broker: Scale0StandIn) -> bytes:
        peer, word, _ = await broker.hear()
        assert word == b"CONNECT"
        broker.say(peer, b"CONFIG", config, b"{}")
        assert (await broker.hear())[1] == b"PING"
        return peer

    async def work() -> None:
        async with asyncio.timeout(DEADLINE_S):
            app = App(f"scale0://127.0.0.1:9?worker={old.port}")
            job = app.job(queue="q")(e.counts.function)
            worker = Worker(app, WorkerSettings(slots=1))
            worker.start()
            peer = await enlist(old)
            old.say(peer, b"TASK", b'{"id":"a-1","service":"q"}', job.arguments.body((0.5,), {}))
            old.say(peer, b"ERROR", b'{"code":301,"reason":"stopping"}')
            old.say(peer, b"CHANGEBROKER", b'{"broker":"tcp://127.0.0.1:%d"}' % new.port)
            await enlist(new)
            while (heard := await old.hear())[1] == b"PING":
                pass
            assert heard[1] == b"TASKREPLY"
            assert b'"id":"a-1"' in heard[2]
            await worker.stop()

    asyncio.run(work())
    old.drop()
    new.drop()
