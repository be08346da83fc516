"""A test per cell: a client of each dialect and a worker of each, on a running broker, both written without dragoman's code."""

from __future__ import annotations

import pytest

from dragoman.dialects.features import HANDOVER, HEADERS, PRIORITY, REASON, REFUSAL, REPLY, RETRIES, TRACE
from tests.crossings.cells import cells_with, survives, with_retries
from tests.independent.broker_with_peers import BrokerWithPeers
from tests.independent.pingpong_peers import JsonWorker

BODY = bytes(range(256)) + "größer".encode()


@pytest.mark.parametrize(("speaks", "works"), cells_with(REPLY))
def test_a_message_crosses_and_its_reply_comes_back(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    """Once with the worker there, and once before it came."""
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    early = client.ask(queue, b"early")
    worker = broker.worker(works, queue)
    job, body = worker.take()
    assert body == b"early"
    worker.answer(job, b"first")
    assert client.outcome(early) == ("answered", b"first")
    asked = client.ask(queue, BODY)
    job, body = worker.take()
    assert body == BODY
    worker.answer(job, b"done " + BODY)
    assert client.outcome(asked) == ("answered", b"done " + BODY)


def test_there_are_25_of_them() -> None:
    assert len(cells_with(REPLY)) == 25


@pytest.mark.parametrize(("speaks", "works"), cells_with(REFUSAL))
def test_a_workers_refusal_is_reported(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    """With its reason where that survives."""
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    worker = broker.add(JsonWorker(broker.listeners)) if works == "pingpong" else broker.worker(works, queue)
    asked = client.ask(queue, b"print this", *with_retries(speaks, 0))
    job, _ = worker.take()
    if works == "emqp":
        worker.answer(job, b'{"error": {"type": "OutOfPaper", "message": "no paper left"}}')
    else:
        worker.refuse(job, b"no paper left")
    kind, value = client.outcome(asked)
    assert kind == "refused"
    assert (b"no paper left" in value) == survives(speaks, works, REASON)


@pytest.mark.parametrize(("speaks", "works"), cells_with(HANDOVER))
def test_the_delivered_notice_comes_before_the_reply(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    """When the worker has it; an rq consumer says so itself."""
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    asked = client.ask(queue, b"job")
    job, _ = worker.take()
    if works == "rq":
        with pytest.raises(TimeoutError):
            client.hear(0.05)
        worker.confirm(job)
    client.wait_handed_over(asked)
    assert asked not in client.outcomes
    worker.answer(job, b"done")
    assert client.outcome(asked) == ("answered", b"done")
    assert client.handed_over.count(asked) == 1


@pytest.mark.parametrize(("speaks", "works"), cells_with(PRIORITY))
def test_the_higher_priority_leaves_first(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    asked = [client.ask(queue, b"%d" % priority, f"priority:{priority}") for priority in (0, 5, 9)]
    broker.wait_waiting(queue, 3)
    worker = broker.worker(works, queue)
    order = []
    for _ in asked:
        job, body = worker.take()
        order.append(body)
        worker.answer(job, body)
    assert order == [b"9", b"5", b"0"]
    assert [client.outcome(one)[1] for one in asked] == [b"0", b"5", b"9"]


@pytest.mark.parametrize(("speaks", "works"), cells_with(RETRIES))
def test_one_retry_is_one_more_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    """Two workers die with it; there is no third try, and the client is told."""
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    asked = client.ask(queue, b"deadly", *with_retries(speaks, 1))
    for _ in range(2):
        worker = broker.worker(works, queue)
        assert worker.take()[1] == b"deadly"
        worker.close()
    assert client.outcome(asked)[0] == "refused"


@pytest.mark.parametrize("speaks", ["emqp", "rq"])
def test_what_an_rq_consumer_gives_back_uses_up_a_retry(broker: BrokerWithPeers, speaks: str) -> None:
    """Another consumer gets it; when that one gives it back, too, the client is told."""
    queue = broker.queue()
    client = broker.client(speaks)
    consumers = [broker.worker("rq", queue), broker.worker("rq", queue)]
    asked = client.ask(queue, b"unwanted", *with_retries(speaks, 1))
    for consumer in consumers:
        job, body = consumer.take()
        assert body == b"unwanted"
        consumer.give_back(job)
    assert client.outcome(asked)[0] == "refused"


@pytest.mark.parametrize(("speaks", "works"), cells_with(HEADERS))
def test_headers_are_carried(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    client.ask(queue, b"job", "traceparent:00-abc", "shop:7")
    worker.take()
    assert {"traceparent:00-abc", "shop:7"} <= set(worker.headers)


@pytest.mark.parametrize(("speaks", "works"), cells_with(TRACE))
def test_the_traceparent_of_a_client_reaches_its_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    traceparent = "traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    asked = client.ask(queue, b"job", traceparent)
    job, _ = worker.take()
    assert traceparent in worker.headers
    worker.answer(job, b"done")
    assert client.outcome(asked) == ("answered", b"done")
