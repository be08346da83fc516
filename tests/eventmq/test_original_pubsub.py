"""What the original client publishes reaches subscribers as the original's publisher would have sent it."""

from __future__ import annotations

import json

import pytest

from tests.eventmq.programs import Client
from tests.eventmq.system import EventMqSystem
from tests.waiting import wait_for

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]


def test_subscribers_hear_the_topics_they_asked_for_in_order(system: EventMqSystem, client: Client) -> None:
    address = system.broker.listeners["emqp.subscribe"]
    orders = client.order("subscribe", address=address, topic="orders/")
    bills = client.order("subscribe", address=address, topic="bills/")

    def both_joined() -> bool:
        # A subscription takes effect some moments after it is asked for; publish until both have heard.
        client.order("publish", topic="orders/hello", message="anyone?")
        client.order("publish", topic="bills/hello", message="anyone?")
        heard = [client.order("hear", subscriber=who, wait_ms=20) for who in (orders, bills)]
        joined.update(who for who, what in zip((orders, bills), heard, strict=True) if what)
        return len(joined) == 2

    joined: set[int] = set()
    wait_for("both subscribers", both_joined)
    for number in range(5):
        client.order("publish", topic="orders/created", message={"id": number})
        client.order("publish", topic="bills/paid", message={"bill": number})
    assert hear(client, orders, 5) == [["orders/created", json.dumps({"id": number})] for number in range(5)]
    assert hear(client, bills, 5) == [["bills/paid", json.dumps({"bill": number})] for number in range(5)]


def hear(client: Client, subscriber: int, count: int) -> list[list[str]]:
    """The next messages of a subscriber, greetings aside."""
    heard: list[list[str]] = []
    while len(heard) < count:
        message = client.order("hear", subscriber=subscriber, wait_ms=5000)
        assert message is not None, f"only {len(heard)} of {count} messages arrived"
        if not message[0].endswith("/hello"):
            heard.append(message)
    return heard
