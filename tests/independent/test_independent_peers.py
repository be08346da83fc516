"""Peers written from the protocol pages alone, with none of dragoman's code, work against each listener of a running broker."""

from __future__ import annotations

import inspect
import re

import pytest

from tests.independent.all_peers import PEERS, PUBLISHING
from tests.independent.broker_with_peers import BrokerWithPeers
from tests.independent.pingpong_peers import JsonWorker

BODY = bytes(range(256))


@pytest.mark.parametrize("dialect", PEERS)
def test_independent_peers_use_none_of_dragomans_code(dialect: str) -> None:
    source = inspect.getsource(PEERS[dialect])
    assert re.findall(r"^\s*(?:from|import) (?:dragoman|tests)\b.*", source, re.MULTILINE) == []


@pytest.mark.parametrize("dialect", PEERS)
def test_an_independent_worker_answers_an_independent_client(broker: BrokerWithPeers, dialect: str) -> None:
    queue = broker.queue(dialect)
    worker, client = broker.worker(dialect, queue), broker.client(dialect)
    for number in range(20):
        asked = client.ask(queue, b"%d " % number + BODY)
        job, body = worker.take()
        assert body == b"%d " % number + BODY
        worker.answer(job, b"done " + body)
        assert client.outcome(asked) == ("answered", b"done %d " % number + BODY)


def test_an_independent_pingpong_worker_of_the_json_form_answers(broker: BrokerWithPeers) -> None:
    worker, client = broker.add(JsonWorker(broker.listeners)), broker.client("pingpong")
    for number in range(5):
        asked = client.ask("pingpong", b"order %d" % number)
        token, body = worker.take()
        assert body == b"order %d" % number
        worker.answer(token, b"done " + body)
        assert client.outcome(asked) == ("answered", b"done order %d" % number)


@pytest.mark.parametrize("dialect", PEERS)
def test_what_is_asked_before_any_worker_came_is_answered_when_one_comes(broker: BrokerWithPeers, dialect: str) -> None:
    queue = broker.queue(dialect)
    client = broker.client(dialect)
    asked = [client.ask(queue, b"early %d" % number) for number in range(5)]
    worker = broker.worker(dialect, queue)
    for _ in asked:
        job, body = worker.take()
        worker.answer(job, b"done " + body)
    outcomes = [client.outcome(one) for one in asked]
    assert outcomes == [("answered", b"done early %d" % number) for number in range(5)]


@pytest.mark.parametrize("dialect", PEERS)
def test_two_clients_hear_only_their_own_answers(broker: BrokerWithPeers, dialect: str) -> None:
    queue = broker.queue(dialect)
    clients = [broker.client(dialect), broker.client(dialect)]
    asked = [(client, client.ask(queue, b"of %d" % number)) for number, client in enumerate(clients)]
    worker = broker.worker(dialect, queue)
    for _ in asked:
        job, body = worker.take()
        worker.answer(job, body)
    for number, (client, one) in enumerate(asked):
        assert client.outcome(one) == ("answered", b"of %d" % number)


@pytest.mark.parametrize("dialect", PUBLISHING)
def test_an_independent_subscriber_hears_an_independent_publisher(broker: BrokerWithPeers, dialect: str) -> None:
    topic = broker.queue()
    subscriber, publisher = broker.subscriber(dialect, topic), broker.publisher(dialect)
    heard = None
    for _ in range(100):  # nobody is told when a subscription has arrived
        publisher.publish(topic, BODY)
        heard = subscriber.news(0.1)
        if heard is not None:
            break
    assert heard == BODY
