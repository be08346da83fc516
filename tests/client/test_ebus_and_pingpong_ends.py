"""What the SDK says as client and worker of ebus and pingpong. The broker is a ROUTER of libzmq, led by the test."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator

import pytest
import zmq

from dragoman import App
from dragoman.client.job import Job
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.errors import AnswerLost, JobFailed, NoAnswer, Refused
from tests.client.stand_in import StandIn

release = threading.Event()


class Router(StandIn):
    """Says frames as they are."""

    def say(self, to: bytes, *frames: bytes) -> None:
        self.router.send_multipart([to, *frames])

    async def hear_not(self, *words: bytes) -> list[bytes]:
        """The next message without one of these words in it."""
        while True:
            heard = await self.hear()
            if not any(word in heard for word in words):
                return heard


@pytest.fixture
def broker() -> Iterator[Router]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    broker = Router(context)
    yield broker
    broker.drop()
    context.destroy(linger=0)


async def echo(number: int) -> int:
    return number


def blocks() -> str:
    """A job that waits in its thread until the test says so."""
    release.wait(20)
    return "released"


async def naps(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "awake"


def echo_of(app: App, **options: object) -> Job[[int], int, object]:
    return app.job(**options)(echo)  # type: ignore[arg-type, return-value, call-overload, no-any-return] # options of all types


def play(app: App, work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        async with asyncio.timeout(20), app:
            await work()

    asyncio.run(whole())


def play_worker(app: App, slots: int, work: Callable[[Worker], Awaitable[None]]) -> None:
    for function in (echo, naps, blocks):
        app.job()(function)

    async def whole() -> None:
        async with asyncio.timeout(20):
            worker = Worker(app, WorkerSettings(slots=slots, drain_s=5))
            worker.start()
            try:
                await work(worker)
            finally:
                release.set()
                await worker.stop()
                release.clear()

    asyncio.run(whole())


def body_of(app: App, function: Callable[..., object], *args: object) -> bytes:
    return app.job()(function).arguments.body(args, {})


# -- ebus ---------------------------------------------------------------------------------------------------------------

LIVING = (b"PING", b"HEARTBEAT")


def ebus_app(broker: Router, **options: float) -> App:
    return App(f"ebus://127.0.0.1:{broker.port}", **options)  # type: ignore[arg-type] # numbers


def test_an_ebus_request_stales_when_its_caller_gives_up(broker: Router) -> None:
    app = ebus_app(broker, answer_s=7)

    async def work() -> None:
        for job, stales in ((echo_of(app, queue="q"), b"7000"), (echo_of(app, queue="q", expires_s=0.25), b"250")):
            asked = asyncio.create_task(job.ask(5))
            client, *frames = await broker.hear_not(*LIVING)
            assert frames[:4] == [b"", b"EBC01", b"REQ", b"q"]
            assert frames[6] == stales
            broker.say(client, b"", b"EBW01", b"REPLY", b"not-mine", b'{"value":1}')
            broker.say(client, b"", b"EBW01", b"REPLY", frames[4], b'{"value":5}')
            assert await asked == 5

    play(app, work)


@pytest.mark.parametrize(
    ("data", "kind", "code"),
    [
        ([], JobFailed, "PAST_EXPIRY"),
        ([b"TIMED_OUT: too slow"], JobFailed, "TIMED_OUT"),
        ([b'{"error":{"type":"ValueError","message":"no"}}'], JobFailed, "ValueError"),
        ([b"we do not serve tea"], JobFailed, "FAILED"),
        ([b"QUEUE_FULL: full"], Refused, "QUEUE_FULL"),
    ],
    ids=["bare", "broker's", "envelope", "text", "refusal"],
)
def test_an_ebus_reject_is_recognised_by_its_content(
    broker: Router, data: list[bytes], kind: type[Exception], code: str
) -> None:
    app = ebus_app(broker)

    async def work() -> None:
        asked = asyncio.create_task(echo_of(app).ask(5))
        client, *frames = await broker.hear_not(*LIVING)
        broker.say(client, b"", b"EBW01", b"REJECT", frames[4], *data)
        with pytest.raises(kind) as failed:
            await asked
        assert code in (getattr(failed.value, "type", ""), getattr(failed.value, "refusal", ""))

    play(app, work)


def test_an_ebus_request_is_sent_again_under_its_rid_by_the_same_client(broker: Router) -> None:
    app = ebus_app(broker)

    async def work() -> None:
        asked = asyncio.create_task(echo_of(app).ask(5))
        first = await broker.hear_not(*LIVING)
        broker.drop()
        await broker.restart()
        again = await broker.hear_not(*LIVING)
        assert again == first
        broker.say(again[0], b"", b"EBW01", b"REPLY", first[5], b'{"value":5}')
        assert await asked == 5

    play(app, work)


def test_an_ebus_client_that_is_sent_away_asks_again_elsewhere(broker: Router) -> None:
    app = ebus_app(broker)

    async def work() -> None:
        asked = asyncio.create_task(echo_of(app).ask(5))
        first = await broker.hear_not(*LIVING)
        broker.say(first[0], b"", b"EBW01", b"DISCONNECT", b"enough")
        again = await broker.hear_not(*LIVING)
        assert again[1:] == first[1:]
        broker.say(again[0], b"", b"EBW01", b"REPLY", first[5], b'{"value":5}')
        assert await asked == 5

    play(app, work)


def test_an_ebus_call_given_up_is_cancelled(broker: Router) -> None:
    app = ebus_app(broker, answer_s=0.3)

    async def work() -> None:
        asked = asyncio.create_task(echo_of(app, queue="q").ask(5))
        asking = await broker.hear_not(*LIVING)
        with pytest.raises(NoAnswer):
            await asked
        assert (await broker.hear_not(*LIVING))[1:] == [b"", b"EBC01", b"CANCEL", b"q", asking[5]]

    play(app, work)


async def ebus_enlist(broker: Router) -> bytes:
    worker, *frames = await broker.hear_not(*LIVING)
    assert frames[:2] == [b"EBW01", b"READY"]
    assert b"default" in frames
    broker.say(worker, b"EBC01", b"HEARTBEAT")
    return worker


def test_an_ebus_worker_that_is_disconnected_comes_back_under_a_new_identity(broker: Router) -> None:
    app = ebus_app(broker)

    async def work(worker: Worker) -> None:
        me = await ebus_enlist(broker)
        await worker.is_ready()
        broker.say(me, b"EBC01", b"REQ", b"1", body_of(app, naps, 0.2), b"3000")
        broker.say(me, b"EBC01", b"DISCONNECT", b"no heartbeat")
        again = await ebus_enlist(broker)
        assert again != me
        broker.say(again, b"EBC01", b"REQ", b"2", body_of(app, echo, 7), b"3000")
        heard = await broker.hear_not(*LIVING)
        assert heard == [again, b"EBW01", b"REPLY", b"2", b'{"value":7}'], "the first was lost with its connection"

    play_worker(app, 2, work)


def test_an_ebus_worker_keeps_giving_signs_of_life_while_its_jobs_run(broker: Router) -> None:
    app = ebus_app(broker)

    async def work(worker: Worker) -> None:
        me = await ebus_enlist(broker)
        broker.say(me, b"EBC01", b"REQ", b"1", body_of(app, blocks), b"30000")
        for _ in range(3):
            heard = await broker.hear()
            assert (heard[0], heard[1]) == (me, b"EBW01")
            assert heard[2] in LIVING
            broker.say(me, b"EBC01", b"HEARTBEAT")
        release.set()
        assert (await broker.hear_not(*LIVING))[2:] == [b"REPLY", b"1", b'{"value":"released"}']

    play_worker(app, 1, work)


def test_an_ebus_worker_runs_no_more_than_its_slots_and_drops_what_is_cancelled(broker: Router) -> None:
    app = ebus_app(broker)

    async def work(worker: Worker) -> None:
        me = await ebus_enlist(broker)
        broker.say(me, b"EBC01", b"REQ", b"1", body_of(app, naps, 20), b"30000")
        broker.say(me, b"EBC01", b"REQ", b"2", body_of(app, echo, 2), b"30000")
        broker.say(me, b"EBC01", b"REQ", b"3", body_of(app, echo, 3), b"30000")
        assert worker.session is not None
        while len(worker.session.runs) < 3:
            await asyncio.sleep(0.005)
        broker.say(me, b"EBC01", b"CANCEL", b"2")
        broker.say(me, b"EBC01", b"CANCEL", b"1")
        assert (await broker.hear_not(*LIVING))[2:] == [b"REPLY", b"3", b'{"value":3}']

    play_worker(app, 1, work)


def test_an_ebus_worker_gives_up_a_silent_broker(broker: Router) -> None:
    app = ebus_app(broker)

    async def work(worker: Worker) -> None:
        me = await ebus_enlist(broker)
        assert await ebus_enlist(broker) != me

    play_worker(app, 1, work)


# -- pingpong -----------------------------------------------------------------------------------------------------------


def pingpong_app(broker: Router, **options: float) -> App:
    return App(f"pingpong://127.0.0.1:{broker.port}?worker={broker.port}", **options)  # type: ignore[arg-type] # numbers


def test_pingpong_answers_come_in_the_order_of_the_orders(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work() -> None:
        first, second, third = (asyncio.create_task(echo_of(app).ask(number)) for number in (1, 2, 3))
        for number in (1, 2, 3):
            client, *frames = await broker.hear()
            assert frames == [b"", body_of(app, echo, number)]
        broker.say(client, b"", b'{"value":10}')
        broker.say(client, b"", b"ERROR", b"QUEUE_FULL: no room")
        broker.say(client, b"", b'{"error":{"type":"ValueError","message":"no"}}')
        assert await first == 10
        with pytest.raises(Refused):
            await second
        with pytest.raises(JobFailed, match="ValueError: no"):
            await third

    play(app, work)


def test_a_pingpong_answer_to_a_call_given_up_answers_no_other(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work() -> None:
        given_up = asyncio.create_task(echo_of(app, wait_s=0.2).ask(1))
        with pytest.raises(NoAnswer):
            await given_up
        asked = asyncio.create_task(echo_of(app).ask(2))
        client = (await broker.hear())[0]
        await broker.hear()
        broker.say(client, b"", b'{"value":1}')
        broker.say(client, b"", b'{"value":2}')
        assert await asked == 2

    play(app, work)


def test_pingpong_calls_on_a_lost_connection_are_lost_unless_they_may_run_twice(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work() -> None:
        asked = asyncio.create_task(echo_of(app).ask(1))
        again = asyncio.create_task(echo_of(app, repeatable=True).ask(2))
        await broker.hear()
        await broker.hear()
        broker.drop()
        await broker.restart()
        with pytest.raises(AnswerLost):
            await asked
        client, *frames = await broker.hear()
        assert frames == [b"", body_of(app, echo, 2)]
        broker.say(client, b"", b'{"value":2}')
        assert await again == 2

    play(app, work)


async def pingpong_enlist(broker: Router, count: int) -> list[bytes]:
    peers = []
    for _ in range(count):
        peer, *frames = await broker.hear_not(b"PING")
        assert frames == [b"", b"READY"]
        broker.say(peer, b"", b"PONG")
        peers.append(peer)
    return peers


def test_a_pingpong_worker_has_a_connection_for_each_slot(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work(worker: Worker) -> None:
        peers = await pingpong_enlist(broker, 3)
        assert len(set(peers)) == 3
        await worker.is_ready()
        for number, peer in enumerate(peers):
            broker.say(peer, b"", body_of(app, echo, number))
        answers = [await broker.hear_not(b"PING") for _ in peers]
        assert {answer[0]: answer[2] for answer in answers} == {
            peer: b'{"value":%d}' % number for number, peer in enumerate(peers)
        }

    play_worker(app, 3, work)


def test_a_pingpong_worker_pings_while_it_is_busy(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work(worker: Worker) -> None:
        (me,) = await pingpong_enlist(broker, 1)
        broker.say(me, b"", body_of(app, blocks))
        assert await broker.hear() == [me, b"", b"PING"]
        broker.say(me, b"", b"PONG")
        assert await broker.hear() == [me, b"", b"PING"]
        release.set()
        assert await broker.hear() == [me, b"", b'{"value":"released"}']

    play_worker(app, 1, work)


def test_a_pingpong_worker_leaves_a_silent_broker_and_comes_back_as_another(broker: Router) -> None:
    app = pingpong_app(broker)

    async def work(worker: Worker) -> None:
        (me,) = await pingpong_enlist(broker, 1)
        assert await pingpong_enlist(broker, 1) != [me]

    play_worker(app, 1, work)
