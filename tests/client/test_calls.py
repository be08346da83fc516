"""Calls over lost connections, late answers and full windows. The other side is a ROUTER of libzmq, led by the test."""

from __future__ import annotations

import asyncio
import gc
import os
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress

import pytest
import zmq

from dragoman import App
from dragoman.cli.ports import lasting_port
from dragoman.client.job import Job
from dragoman.errors import AnswerLost, AppClosed, BrokerUnreachable, NoAnswer, Refused
from dragoman.limits import MESSAGE_SIZE_MAX
from tests.client.raw_broker import RawBroker
from tests.client.stand_in import StandIn
from tests.waiting import wait_for

Echo = Job[[int], int, object]


@pytest.fixture
def context() -> Iterator[zmq.Context[zmq.Socket[bytes]]]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def broker(context: zmq.Context[zmq.Socket[bytes]]) -> Iterator[StandIn]:
    broker = StandIn(context)
    yield broker
    broker.drop()


def echo_of(app: App, once: bool = False) -> Echo:
    async def echo(number: int) -> int:
        return number

    return app.job(queue="q", once=once)(echo)  # type: ignore[return-value] # what a direct call gives is of no interest here


def play(app: App, work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20), app:
            await work()

    asyncio.run(whole())


def test_a_delay_returns_when_it_is_kept_and_not_before(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).delay(1))
        client, _, _, word, call_id, queue, headers, _ = await broker.hear()
        assert (word, queue) == (b"REQUEST", b"q")
        assert headers == b"ack-requested,dedupe:" + call_id
        assert len(client) == 36
        broker.say(client, b"REPLY", b"x", call_id)  # handed over: not what was asked for
        broker.say(client, b"ACK", b"x", b"somebody else's")
        await asyncio.wait([call], timeout=0.1)
        assert not call.done()
        broker.say(client, b"ACK", b"x", call_id)
        assert (await call).id == call_id.decode()

    play(app, work)


def test_an_ask_returns_the_answer_that_names_it(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        echo = echo_of(app)
        first, second = asyncio.create_task(echo.ask(1)), asyncio.create_task(echo.ask(2))
        one, two = await broker.hear(), await broker.hear()
        assert one[6] == b"reply-requested"
        broker.say(two[0], b"REPLY", b"x", b'{"value":20}', two[4])
        broker.say(one[0], b"REPLY", b"x", b'{"value":10}', one[4])
        broker.say(one[0], b"REPLY", b"x", b'{"value":11}', one[4])  # a second answer finds nobody
        assert (await first, await second) == (10, 20)

    play(app, work)


def test_a_refusal_is_raised_with_its_code(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        for start in (echo_of(app).delay, echo_of(app).ask):
            call = asyncio.create_task(start(1))  # type: ignore[arg-type] # one of two coroutine functions
            heard = await broker.hear()
            broker.say(heard[0], b"REPLY", b"x", b'{"error":{"type":"QUEUE_FULL","message":"full"}}', heard[4])
            with pytest.raises(Refused) as refused:
                await call
            assert refused.value.refusal == "QUEUE_FULL"

    play(app, work)


def test_a_delay_under_way_is_sent_again_as_it_was_by_the_same_client(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).delay(1))
        first = await broker.hear()
        broker.drop()
        await broker.restart()
        assert await broker.hear() == first
        broker.say(first[0], b"ACK", b"x", first[4])
        await call

    play(app, work)


DRAINING = b'{"error":{"type":"DRAINING","message":"no new work"}}'


def test_a_call_that_a_draining_broker_refused_goes_to_its_successor(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).ask(1))
        first = await broker.hear()
        broker.say(first[0], b"REPLY", b"x", DRAINING, first[4])
        await asyncio.wait([call], timeout=0.1)
        assert not call.done()
        broker.drop()
        await broker.restart()
        assert await broker.hear() == first
        broker.say(first[0], b"REPLY", b"x", b'{"value":1}', first[4])
        assert await call == 1

    play(app, work)


def test_a_draining_broker_without_a_successor_is_a_refusal(broker: StandIn) -> None:
    app = App(broker.url, wait_s=0.4)

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).delay(1))
        first = await broker.hear()
        broker.say(first[0], b"REPLY", b"x", DRAINING, first[4])
        with pytest.raises(Refused) as refused:
            await call
        assert refused.value.refusal == "DRAINING"

    play(app, work)


async def lose_an_ask(broker: StandIn, echo: Echo) -> tuple[asyncio.Task[int], list[bytes], list[bytes]]:
    """An ask, its connection lost, and the first thing said on the next one."""
    call = asyncio.create_task(echo.ask(1))
    first = await broker.hear()
    broker.drop()
    await broker.restart()
    return call, first, await broker.hear()


def test_an_ask_that_the_broker_still_holds_waits_for_its_answer(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call, first, question = await lose_an_ask(broker, echo_of(app))
        broker.say(first[0], b"REPLY", b"x", b'{"value":{"state":"leased","attempt":1}}', question[4])
        broker.say(first[0], b"REPLY", b"x", b'{"value":1}', first[4])
        assert await call == 1

    play(app, work)


def test_a_question_that_is_open_when_the_app_closes_troubles_nobody(broker: StandIn) -> None:
    app = App(broker.url)
    troubles: list[object] = []

    async def work() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, trouble: troubles.append(trouble))
        call, first, _ = await lose_an_ask(broker, echo_of(app))
        broker.say(first[0], b"REPLY", b"x", b'{"value":1}', first[4])
        assert await call == 1
        await app.close()
        gc.collect()

    play(app, work)
    assert troubles == []


@pytest.mark.parametrize("state", ["done", "unknown"])
def test_an_ask_that_may_have_run_is_not_sent_again(broker: StandIn, state: str) -> None:
    app = App(broker.url)

    async def work() -> None:
        call, first, question = await lose_an_ask(broker, echo_of(app))
        assert question[3::2] == [b"STATE", first[4]]
        broker.say(first[0], b"REPLY", b"x", b'{"value":{"state":"%s"}}' % state.encode(), question[4])
        with pytest.raises(AnswerLost) as lost:
            await call
        assert lost.value.state == state
        assert broker.router.poll(50) == 0

    play(app, work)


@pytest.mark.parametrize("state", ["done", "unknown"])
def test_a_repeatable_ask_whose_answer_was_lost_is_asked_again(broker: StandIn, state: str) -> None:
    app = App(broker.url)

    async def work() -> None:
        echo = echo_of(app).options(repeatable=True)
        call, first, question = await lose_an_ask(broker, echo)
        broker.say(first[0], b"REPLY", b"x", b'{"value":{"state":"%s"}}' % state.encode(), question[4])
        assert await broker.hear() == first
        broker.say(first[0], b"REPLY", b"x", b'{"value":1}', first[4])
        assert await call == 1

    play(app, work)


@pytest.mark.parametrize("state", ["leased", "unknown"])
def test_an_ask_that_must_run_once_is_sent_again_with_its_key(broker: StandIn, state: str) -> None:
    app = App(broker.url)

    async def work() -> None:
        call, first, again = await lose_an_ask(broker, echo_of(app, once=True))
        assert again == first
        assert first[6].endswith(b",dedupe:" + first[4])
        broker.say(first[0], b"REPLY", b"x", b'{"error":{"type":"DUPLICATE","message":"had it"}}', first[4])
        question = await broker.hear()
        assert question[3::2] == [b"STATE", first[4]]
        broker.say(first[0], b"REPLY", b"x", b'{"value":{"state":"%s"}}' % state.encode(), question[4])
        if state == "unknown":
            with pytest.raises(AnswerLost):
                await call
        else:
            broker.say(first[0], b"REPLY", b"x", b'{"value":1}', first[4])
            assert await call == 1

    play(app, work)


def test_a_call_waits_for_a_broker_that_comes_up_later(context: zmq.Context[zmq.Socket[bytes]]) -> None:
    port = lasting_port()
    app = App(f"emqp://127.0.0.1:{port}")

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).delay(1))
        await asyncio.sleep(0.05)
        broker = StandIn(context, port)
        heard = await broker.hear()
        broker.say(heard[0], b"ACK", b"x", heard[4])
        await call
        broker.drop()

    play(app, work)


def test_no_broker_at_all_is_reported_with_the_address_and_the_reason() -> None:
    app = App(f"emqp://127.0.0.1:{lasting_port()}", wait_s=0.3)

    async def work() -> None:
        with pytest.raises(BrokerUnreachable, match="refused") as unreachable:
            await echo_of(app).delay(1)
        assert unreachable.value.address == app.address.text
        with pytest.raises(BrokerUnreachable):
            await app.publish("topic", 1)

    play(app, work)


def test_an_alternate_is_tried_when_the_first_place_is_dead(broker: StandIn) -> None:
    app = App(f"emqp://127.0.0.1:{lasting_port()},127.0.0.1:{broker.port}")

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).delay(1))
        heard = await broker.hear()
        broker.say(heard[0], b"ACK", b"x", heard[4])
        await call

    play(app, work)


def test_a_silent_broker_is_no_answer(broker: StandIn) -> None:
    app = App(broker.url, wait_s=0.3)

    async def work() -> None:
        with pytest.raises(NoAnswer):
            await echo_of(app).delay(1)

    play(app, work)


def test_callers_beyond_the_window_wait_their_turn(broker: StandIn) -> None:
    app = App(broker.url, calls_max=2)

    async def work() -> None:
        echo = echo_of(app)
        calls = [asyncio.create_task(echo.ask(n)) for n in range(3)]
        first, second = await broker.hear(), await broker.hear()
        await asyncio.wait(calls, timeout=0.1)
        assert broker.router.poll(0) == 0, "the third must not be sent yet"
        broker.say(first[0], b"REPLY", b"x", b'{"value":0}', first[4])
        third = await broker.hear()
        for heard in (second, third):
            broker.say(heard[0], b"REPLY", b"x", b'{"value":0}', heard[4])
        assert await asyncio.gather(*calls) == [0, 0, 0]

    play(app, work)


def test_a_caller_that_gave_up_leaves_nothing_behind(broker: StandIn) -> None:
    app = App(broker.url, calls_max=1)

    async def work() -> None:
        echo = echo_of(app)
        given_up = asyncio.create_task(echo.ask(1))
        await broker.hear()
        given_up.cancel()
        call = asyncio.create_task(echo.ask(2))
        heard = await broker.hear()
        broker.say(heard[0], b"REPLY", b"x", b'{"value":2}', heard[4])
        assert await call == 2

    play(app, work)


def test_closing_the_app_ends_its_calls(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call = asyncio.create_task(echo_of(app).ask(1))
        await broker.hear()
        await app.close()
        with pytest.raises(AppClosed):
            await call

    play(app, work)


@pytest.mark.parametrize("said", [b"", b"\xff" + b"\x00" * 8 + b"\x7f"], ids=["at once", "in the greeting"])
@pytest.mark.parametrize("dialect", ["emqp", "ebus", "scale0", "pingpong", "rq"])
def test_an_app_that_is_closed_during_its_handshake_leaves_no_socket_open(dialect: str, said: bytes) -> None:
    async def work() -> None:
        async with RawBroker() as silent:
            app = App(f"{dialect}://127.0.0.1:{silent.port}")
            call = asyncio.create_task(app.call("pingpong", b"x"))  # the one queue that all five have
            visit = await silent.visit()
            if dialect != "rq":  # its nodes wait for nothing
                visit.say(said)
            await visit.take(1)
            await app.close()
            with suppress(ConnectionResetError):  # aborted: what it was sent is not read
                await visit.end()
            with pytest.raises(AppClosed):
                await call

    asyncio.run(work())


def test_a_message_of_many_megabytes_goes_through(broker: StandIn) -> None:
    app = App(broker.url)

    async def work() -> None:
        call = asyncio.create_task(app.call("q", b"x" * 20_000_000))
        heard = await broker.hear()
        assert len(heard[7]) == 20_000_000
        broker.say(heard[0], b"REPLY", b"x", b"y" * 20_000_000, heard[4])
        assert len(await call) == 20_000_000

    play(app, work)


def test_each_asyncio_run_leaves_neither_a_socket_nor_a_loop_behind(broker: StandIn) -> None:
    app = App(broker.url)
    echo = echo_of(app)

    async def work() -> int:
        asked = asyncio.ensure_future(echo.ask(1))
        request = await broker.hear()
        broker.say(request[0], b"REPLY", b"x", b'{"value":1}', request[4])
        return await asked

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        assert asyncio.run(work()) == 1
    # libzmq closes its own ends a little later.
    wait_for("the sockets to be closed", lambda: len(os.listdir("/proc/self/fd")) <= before + 1)
    assert len(app._connections) == 1


def test_a_call_larger_than_any_broker_takes_is_refused_before_it_is_sent() -> None:
    app = App("emqp://127.0.0.1:1")

    async def work() -> None:
        with pytest.raises(Refused, match="TOO_LONG"):
            await app.send("q", bytes(MESSAGE_SIZE_MAX))

    asyncio.run(work())
