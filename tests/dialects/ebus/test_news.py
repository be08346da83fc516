"""Publishers and subscribers."""

from __future__ import annotations

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End
from tests.dialects.ebus.in_memory import EbusBroker
from tests.dialects.emqp.ready_peers import notes


def publisher(broker: EbusBroker) -> End:
    return End(broker, "ebus.publish", b"", b"PUB")


def test_a_publisher_is_sent_the_empty_subscription_at_once() -> None:
    broker = EbusBroker()
    assert publisher(broker).heard == [[b"\x01"]]


def test_a_channel_reaches_everyone_who_subscribed_to_a_beginning_of_it() -> None:
    broker = EbusBroker()
    every, begins, exact, other = (broker.subscriber(prefix) for prefix in (b"", b"A", b"AB", b"B"))
    publisher(broker).give(encode_message([b"ABC", b"data"]))
    for subscriber in (every, begins, exact, other):
        subscriber.hear()
    assert [end.heard for end in (every, begins, exact)] == [[[b"ABC", b"data"]]] * 3
    assert other.heard == []


def test_what_an_emqp_peer_publishes_reaches_ebus_subscribers_and_back() -> None:
    broker = EbusBroker()
    ebus = broker.subscriber(b"prices")
    emqp = End(broker, "emqp.subscribe", b"", b"SUB")
    emqp.give(emqp.zmtp.subscribe_bytes(b"prices"))
    publisher(broker).give(encode_message([b"prices/gold", b"1"]))
    broker.client().say(b"PUBLISH", b"id", b"prices/tin", b"2")
    ebus.hear()
    emqp.hear()
    assert ebus.heard == emqp.heard == [[b"prices/gold", b"1"], [b"prices/tin", b"2"]]


@pytest.mark.parametrize(
    ("frames", "code"),
    [
        ([b"ebus/shutdown", b"boo"], "RESERVED_TOPIC"),
        ([b"ebus/workers", b"boo"], "RESERVED_TOPIC"),
        ([b"c" * 256, b"data"], "TOPIC_TOO_LONG"),
        ([b"channel", b"data", b"more"], "EBUS_ODD_NEWS"),
    ],
)
def test_news_that_cannot_be_passed_on_is_counted_and_dropped(frames: list[bytes], code: str) -> None:
    broker = EbusBroker()
    subscriber = broker.subscriber(b"")
    publisher(broker).give(encode_message(frames))
    subscriber.hear()
    assert subscriber.heard == []
    assert notes(broker) == {code: 1}


def test_news_without_data_is_null() -> None:
    broker = EbusBroker()
    subscriber = broker.subscriber(b"")
    publisher(broker).give(encode_message([b"channel"]))
    subscriber.hear()
    assert subscriber.heard == [[b"channel", b"null"]]
