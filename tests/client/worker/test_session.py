"""What a worker says to the broker, word by word. The broker is a ROUTER of libzmq, led by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest
import zmq

from dragoman import App
from dragoman.client import address
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from tests.client import jobs as s
from tests.client.stand_in import StandIn

SETTINGS = WorkerSettings(slots=2, heartbeat_s=30, drain_s=5)


@pytest.fixture
def broker() -> Iterator[StandIn]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    broker = StandIn(context)
    yield broker
    broker.drop()
    context.destroy(linger=0)


def play(broker: StandIn, settings: WorkerSettings, work: Callable[[Worker], Awaitable[None]]) -> None:
    async def whole() -> None:
        s.app.address = address.parse(broker.url)
        worker = Worker(s.app, settings)
        worker.start()
        try:
            async with asyncio.timeout(20):
                await work(worker)
        finally:
            await worker.stop()

    asyncio.run(whole())


async def enlist(broker: StandIn, slots: int) -> bytes:
    """Take the worker on; its identity."""
    inform = await broker.hear()
    assert inform[1:4] == [b"", b"eMQP/1.0", b"INFORM"]
    broker.say(inform[0], b"ACK", b"x", inform[4])
    for _ in range(slots):
        assert (await broker.hear())[:4] == [inform[0], b"", b"eMQP/1.0", b"READY"]
    return inform[0]


def body_of(job: object, **kwargs: object) -> bytes:
    assert hasattr(job, "arguments")
    body: bytes = job.arguments.body((), kwargs)
    return body


def test_it_informs_in_seven_frames_and_says_ready_once_per_slot_after_the_ack(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        inform = await broker.hear()
        assert inform[3] == b"INFORM"
        assert inform[5:] == [b'[[10,"shop"]]', b"worker", b"bytes"]
        await asyncio.sleep(0.05)
        assert broker.router.poll(0) == 0, "nothing is said before the ACK"
        broker.say(inform[0], b"ACK", b"x", inform[4])
        assert [(await broker.hear())[3] for _ in range(2)] == [b"READY", b"READY"]
        await worker.is_ready()

    play(broker, SETTINGS, work)


def test_an_answer_is_followed_by_the_slot_it_frees(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        me = await enlist(broker, 2)
        body = body_of(s.length, text="abc")
        broker.say(me, b"REQUEST", b"job-1", b"shop", b"reply-requested", body)
        reply, ready = await broker.hear(), await broker.hear()
        assert reply[3] == b"REPLY"
        assert reply[5:] == [b'{"value":3}', b"job-1"]
        assert ready[3] == b"READY"

    play(broker, SETTINGS, work)


def test_disconnect_makes_it_inform_again_under_a_new_identity(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        me = await enlist(broker, 2)
        broker.say(me, b"DISCONNECT", b"x")
        assert await enlist(broker, 2) != me

    play(broker, SETTINGS, work)


def test_a_job_under_way_is_answered_on_the_next_connection_and_keeps_its_slot_meanwhile(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        me = await enlist(broker, 2)
        broker.say(me, b"REQUEST", b"job-1", b"shop", b"", body_of(s.waits, seconds=0.4))
        broker.say(me, b"DISCONNECT", b"x")
        again = await enlist(broker, 1)
        reply, ready = await broker.hear(), await broker.hear()
        assert (reply[0], reply[3], reply[6]) == (again, b"REPLY", b"job-1")
        assert ready[3] == b"READY"

    play(broker, SETTINGS, work)


def test_it_sends_heartbeats_and_gives_up_a_silent_broker(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        me = await enlist(broker, 2)
        beat = await broker.hear()
        assert (beat[0], beat[3]) == (me, b"HEARTBEAT")
        assert float(beat[5]) > 1e9
        while (heard := await broker.hear())[3] == b"HEARTBEAT":
            assert heard[0] == me
        assert heard[3] == b"INFORM"
        assert heard[0] != me
        broker.say(heard[0], b"ACK", b"x", heard[4])

    play(broker, WorkerSettings(slots=2, heartbeat_s=0.05, broker_lost_s=0.3), work)


def test_leaving_says_kbye_and_answers_what_still_runs(broker: StandIn) -> None:
    async def work(worker: Worker) -> None:
        me = await enlist(broker, 2)
        broker.say(me, b"REQUEST", b"job-1", b"shop", b"", body_of(s.waits, seconds=0.3))
        while worker.session is not None and not worker.session.runs:
            await asyncio.sleep(0.005)
        leaving = asyncio.create_task(worker.stop())
        assert (await broker.hear())[3] == b"KBYE"
        reply = await broker.hear()
        assert (reply[3], reply[6]) == (b"REPLY", b"job-1")
        await leaving
        assert broker.router.poll(0) == 0, "no READY after KBYE"

    play_out(broker, SETTINGS, work)


def play_out(broker: StandIn, settings: WorkerSettings, work: Callable[[Worker], Awaitable[None]]) -> None:
    """As `play`, for a worker that ends by itself."""

    async def whole() -> None:
        s.app.address = address.parse(broker.url)
        worker = Worker(s.app, settings)
        worker.start()
        async with asyncio.timeout(20):
            await work(worker)

    asyncio.run(whole())


def test_an_app_with_handlers_only_takes_no_jobs() -> None:
    app = App("emqp://127.0.0.1:9?subscribe=9")
    app.on("x")(print_body)

    async def work() -> None:
        worker = Worker(app, SETTINGS)
        assert worker.session is None
        worker.start()
        await worker.stop()

    asyncio.run(work())


def print_body(body: object) -> None:
    print(body)
