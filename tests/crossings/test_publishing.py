"""News crosses by name: topic = channel = queue."""

from __future__ import annotations

from typing import Any

import pytest

from tests.independent.all_peers import PUBLISHING
from tests.independent.broker_with_peers import BrokerWithPeers

BODY = bytes(range(256))
TRIES = 100  # nobody is told when a subscription has arrived: news is sent again until it is heard


def publish_until_heard(publisher: Any, topic: str, body: bytes, subscriber: Any) -> bytes:
    for _ in range(TRIES):
        publisher.publish(topic, body)
        heard = subscriber.news(0.1)
        if heard is not None:
            assert isinstance(heard, bytes)
            return heard
    raise AssertionError(f"nothing was heard in {TRIES} tries")


@pytest.mark.parametrize("hears", PUBLISHING)
@pytest.mark.parametrize("speaks", PUBLISHING)
def test_what_is_published_in_one_dialect_is_received_in_another(
    broker: BrokerWithPeers, speaks: str, hears: str
) -> None:
    topic = broker.queue()
    subscriber, publisher = broker.subscriber(hears, topic), broker.publisher(speaks)
    assert publish_until_heard(publisher, topic, BODY, subscriber) == BODY


@pytest.mark.parametrize("speaks", PUBLISHING)
def test_prefixes_match_in_emqp_and_ebus_and_whole_names_in_rq(broker: BrokerWithPeers, speaks: str) -> None:
    topic = broker.queue()
    publisher = broker.publisher(speaks)
    for hears in PUBLISHING:
        subscriber = broker.subscriber(hears, topic)
        publish_until_heard(publisher, topic, b"ready", subscriber)
        publisher.publish(f"{topic}.today", b"longer name")
        publisher.publish(topic, b"same name")
        heard = []
        while b"same name" not in heard:
            heard.append(subscriber.news())
            assert heard[-1] is not None
        assert (b"longer name" in heard) == (hears != "rq")


def test_one_piece_of_news_reaches_all_three_once(broker: BrokerWithPeers) -> None:
    topic = broker.queue()
    publishers = [broker.publisher(dialect) for dialect in PUBLISHING]
    subscribers = [broker.subscriber(dialect, topic) for dialect in PUBLISHING]
    for publisher in publishers:
        for subscriber in subscribers:
            publish_until_heard(publisher, topic, b"ready", subscriber)
    for number, publisher in enumerate(publishers):
        publisher.publish(topic, b"news %d" % number)
    for subscriber in subscribers:
        heard: list[bytes] = []
        while len([one for one in heard if one != b"ready"]) < len(publishers):
            news = subscriber.news()
            assert news is not None, heard
            heard.append(news)
        assert sorted(one for one in heard if one != b"ready") == [b"news 0", b"news 1", b"news 2"]
        assert subscriber.news(0.05) is None


def test_an_rq_consumer_of_the_queue_hears_news_and_takes_messages(broker: BrokerWithPeers) -> None:
    """Its priority does not matter for broadcasts."""
    queue = broker.queue()
    worker, client, publisher = broker.worker("rq", queue), broker.client("rq"), broker.publisher("emqp")
    publisher.publish(queue, BODY)
    while not worker.broadcasts:
        with pytest.raises(TimeoutError):
            worker.take(0.2)
    assert worker.broadcasts == [BODY]
    asked = client.ask(queue, b"job")
    job, _ = worker.take()
    worker.answer(job, b"done")
    assert client.outcome(asked) == ("answered", b"done")
