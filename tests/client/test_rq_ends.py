"""What the SDK says as an rq node, byte by byte. The controllers are TCP listeners, led by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import pytest

from dragoman import App
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.errors import AnswerLost, JobFailed, NoAnswer, Refused
from tests.client.raw_broker import RawBroker, Visit

PING, PONG, CLOSING, FULL = b"\x05", b"\x06", b"\x01\x16", b"\x17"
ID = b"\x80\x00\x00\x00"


async def echo(number: int) -> int:
    return number


async def waits(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "waited"


def request_of(number: int, body: bytes, *, behind: bytes = b"", request_id: int = 0) -> bytes:
    size = len(body).to_bytes(4)
    return b"\x01" + ID + bytes([request_id]) + b"\xa0\x01q\xe0" + size + body + behind + b"\x0a"


def delivered(request_id: int = 0) -> bytes:
    return b"\x01" + ID + bytes([request_id]) + b"\x0d"


def reply_of(body: bytes, request_id: int = 0) -> bytes:
    return b"\x01" + ID + bytes([request_id]) + b"\xe0" + len(body).to_bytes(4) + body + b"\x0b"


def undelivered(request_id: int = 0) -> bytes:
    return b"\x01" + ID + bytes([request_id]) + b"\x10"


Play = Callable[[App, list[RawBroker]], Awaitable[None]]


def play(work: Play, brokers: int = 1, **options: float) -> None:
    async def whole() -> None:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(asyncio.timeout(20))
            stands = [await stack.enter_async_context(RawBroker()) for _ in range(brokers)]
            app = App("rq://" + ",".join(f"127.0.0.1:{stand.port}" for stand in stands), **options)  # type: ignore[arg-type] # numbers
            await work(app, stands)
            await app.close()

    asyncio.run(whole())


async def greet(broker: RawBroker) -> Visit:
    visit = await broker.visit()
    await visit.hear(PING)
    visit.say(PONG)
    return visit


def body_of(app: App, number: int) -> bytes:
    return app.job(queue="q")(echo).arguments.body((number,), {})


def test_an_ask_is_a_request_and_its_reply_the_answer() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        asked = asyncio.create_task(app.job(queue="q")(echo).ask(7))
        visit = await greet(brokers[0])
        await visit.hear(request_of(7, body_of(app, 7)))
        visit.say(delivered())
        await asyncio.wait([asked], timeout=0.05)
        assert not asked.done()
        visit.say(reply_of(b'{"value":8}'))
        assert await asked == 8

    play(work)


def test_retries_and_expiry_are_sent_and_undelivered_is_a_failure() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        asked = asyncio.create_task(app.job(queue="q", retries=3, expires_s=1.5)(echo).ask(7))
        visit = await greet(brokers[0])
        await visit.hear(request_of(7, body_of(app, 7), behind=b"\x41\x03\x61\x00\x02"))
        visit.say(undelivered())
        with pytest.raises(JobFailed) as failed:
            await asked
        assert failed.value.type == "UNDELIVERED"

    play(work)


def test_a_delay_returns_when_the_controller_says_delivered() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        job = app.job(queue="q")(echo)
        delayed = asyncio.create_task(job.delay(7))
        visit = await greet(brokers[0])
        await visit.hear(request_of(7, body_of(app, 7), behind=b"\x21"))
        assert not delayed.done()
        visit.say(delivered())
        assert (await delayed).id
        refused = asyncio.create_task(job.delay(7))
        await visit.hear(request_of(7, body_of(app, 7), behind=b"\x21"))
        visit.say(undelivered())
        with pytest.raises(Refused):
            await refused

    play(work)


def test_a_full_controller_is_asked_nothing_and_the_next_one_is_used() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        asked = asyncio.create_task(app.job(queue="q")(echo).ask(7))
        full = await brokers[0].visit()
        full.say(FULL)
        full_said = await full.end()
        assert full_said in (b"", PING)
        visit = await greet(brokers[1])
        await visit.hear(request_of(7, body_of(app, 7)))
        visit.say(delivered() + reply_of(b'{"value":7}'))
        assert await asked == 7

    play(work, 2)


def test_a_closing_controller_may_answer_what_it_has_while_new_calls_go_to_the_next() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        job = app.job(queue="q")(echo)
        first = asyncio.create_task(job.ask(1))
        old = await greet(brokers[0])
        await old.hear(request_of(1, body_of(app, 1)))
        old.say(delivered() + CLOSING)
        new = await greet(brokers[1])
        second = asyncio.create_task(job.ask(2))
        await new.hear(request_of(2, body_of(app, 2)))
        new.say(delivered() + reply_of(b'{"value":2}'))
        assert await second == 2
        assert not first.done()
        old.say(reply_of(b'{"value":1}'))
        assert await first == 1
        assert await old.end() == b"", "nothing is owed any more: the old connection is closed"

    play(work, 2)


def test_what_a_closing_controller_did_not_take_is_asked_of_the_next() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        asked = asyncio.create_task(app.job(queue="q")(echo).ask(1))
        old = await greet(brokers[0])
        await old.hear(request_of(1, body_of(app, 1)))
        old.say(CLOSING + undelivered())
        new = await greet(brokers[1])
        await new.hear(request_of(1, body_of(app, 1)))
        new.say(delivered() + reply_of(b'{"value":1}'))
        assert await asked == 1

    play(work, 2)


def test_calls_on_a_lost_connection_are_lost_unless_they_may_run_twice() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        job = app.job(queue="q")(echo)
        asked, delayed = asyncio.create_task(job.ask(1)), asyncio.create_task(job.delay(2))
        again = asyncio.create_task(job.options(repeatable=True).ask(3))
        visit = await greet(brokers[0])
        await visit.hear(request_of(1, body_of(app, 1)))
        await visit.hear(request_of(2, body_of(app, 2), behind=b"\x21", request_id=1))
        await visit.hear(request_of(3, body_of(app, 3), request_id=2))
        visit.close()
        for call in (asked, delayed):
            with pytest.raises(AnswerLost):
                await call
        visit = await greet(brokers[0])
        await visit.hear(request_of(3, body_of(app, 3)))
        visit.say(delivered() + reply_of(b'{"value":3}'))
        assert await again == 3

    play(work)


def test_a_late_answer_to_a_call_given_up_answers_no_other() -> None:
    async def work(app: App, brokers: list[RawBroker]) -> None:
        job = app.job(queue="q")(echo)
        given_up = asyncio.create_task(job.options(wait_s=0.3).ask(1))
        visit = await greet(brokers[0])
        await visit.hear(request_of(1, body_of(app, 1)))
        with pytest.raises(NoAnswer):
            await given_up
        asked = asyncio.create_task(job.ask(2))
        await visit.hear(request_of(2, body_of(app, 2), request_id=1))
        visit.say(delivered() + reply_of(b'{"value":1}') + delivered(1) + reply_of(b'{"value":2}', 1))
        assert await asked == 2

    play(work)


# -- the worker ---------------------------------------------------------------------------------------------------------

CONSUME = b"\x01\xa0\x01q\x62\x00\x02\x40\x14\x14"
CONSUMING = b"\x01\x60\x00\x01\xa0\x01q\x18"


def job_of(body: bytes, request_id: int = 0, behind: bytes = b"") -> bytes:
    size = len(body).to_bytes(4)
    return b"\x01\x60\x00\x01\xe0" + size + body + behind + ID + bytes([request_id]) + b"\x0a"


def play_worker(work: Callable[[App, Worker, list[RawBroker]], Awaitable[None]], brokers: int = 1) -> None:
    async def whole(app: App, stands: list[RawBroker]) -> None:
        app.job(queue="q")(echo)
        app.job(queue="q")(waits)
        worker = Worker(app, WorkerSettings(slots=2, drain_s=5))
        worker.start()
        try:
            await work(app, worker, stands)
        finally:
            await worker.stop()

    play(whole, brokers)


async def enlist(broker: RawBroker) -> Visit:
    visit = await broker.visit()
    said = await visit.take(len(CONSUME) + len(PING))
    assert said in (CONSUME + PING, PING + CONSUME)
    visit.say(PONG + CONSUMING)
    return visit


def test_a_job_is_reported_delivered_and_then_answered() -> None:
    async def work(app: App, worker: Worker, brokers: list[RawBroker]) -> None:
        visit = await enlist(brokers[0])
        await worker.is_ready()
        visit.say(job_of(body_of(app, 7), 3))
        await visit.hear(delivered(3) + reply_of(b'{"value":7}', 3))
        visit.say(job_of(body_of(app, 7), 4, b"\x21"))
        await visit.hear(delivered(4))

    play_worker(work)


def test_a_full_controller_is_left_for_the_next() -> None:
    async def work(app: App, worker: Worker, brokers: list[RawBroker]) -> None:
        full = await brokers[0].visit()
        full.say(FULL)
        visit = await enlist(brokers[1])
        visit.say(job_of(body_of(app, 7)))
        await visit.hear(delivered() + reply_of(b'{"value":7}'))

    play_worker(work, 2)


def test_a_consumer_of_a_closing_controller_stays_until_what_it_holds_is_done() -> None:
    async def work(app: App, worker: Worker, brokers: list[RawBroker]) -> None:
        old = await enlist(brokers[0])
        body = app.job(queue="q")(waits).arguments.body((0.5,), {})
        old.say(job_of(body) + CLOSING)
        await old.hear(delivered())
        new = await enlist(brokers[1])
        new.say(job_of(body_of(app, 7)))
        await new.hear(delivered() + reply_of(b'{"value":7}'))
        await old.hear(reply_of(b'{"value":"waited"}'))
        assert await old.end() == b""

    play_worker(work, 2)


def test_a_worker_that_leaves_says_closing_and_answers_first() -> None:
    async def work(app: App, worker: Worker, brokers: list[RawBroker]) -> None:
        visit = await enlist(brokers[0])
        body = app.job(queue="q")(waits).arguments.body((0.3,), {})
        visit.say(job_of(body))
        await visit.hear(delivered())
        assert worker.session is not None
        leaving = asyncio.create_task(worker.session.drain())
        await visit.hear(CLOSING[1:])
        await visit.hear(reply_of(b'{"value":"waited"}'))
        assert await leaving
        assert await visit.end() == b""
        assert brokers[0].visits == 1

    play_worker(work)
