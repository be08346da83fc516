"""Publishers and subscribers."""

from __future__ import annotations

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End
from tests.dialects.ebus.hall import Hall
from tests.dialects.emqp.shop import notes


def publisher(hall: Hall) -> End:
    return End(hall, "ebus.publish", b"", b"PUB")


def test_a_publisher_is_sent_the_empty_subscription_at_once() -> None:
    hall = Hall()
    assert publisher(hall).heard == [[b"\x01"]]


def test_a_channel_reaches_everyone_who_subscribed_to_a_beginning_of_it() -> None:
    hall = Hall()
    every, begins, exact, other = (hall.subscriber(prefix) for prefix in (b"", b"A", b"AB", b"B"))
    publisher(hall).give(encode_message([b"ABC", b"data"]))
    for subscriber in (every, begins, exact, other):
        subscriber.hear()
    assert [end.heard for end in (every, begins, exact)] == [[[b"ABC", b"data"]]] * 3
    assert other.heard == []


def test_what_an_emqp_peer_publishes_reaches_ebus_subscribers_and_back() -> None:
    hall = Hall()
    ebus = hall.subscriber(b"prices")
    emqp = End(hall, "emqp.subscribe", b"", b"SUB")
    emqp.give(emqp.zmtp.subscribe_bytes(b"prices"))
    publisher(hall).give(encode_message([b"prices/gold", b"1"]))
    hall.client().say(b"PUBLISH", b"id", b"prices/tin", b"2")
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
    hall = Hall()
    subscriber = hall.subscriber(b"")
    publisher(hall).give(encode_message(frames))
    subscriber.hear()
    assert subscriber.heard == []
    assert notes(hall) == {code: 1}


def test_news_without_data_is_null() -> None:
    hall = Hall()
    subscriber = hall.subscriber(b"")
    publisher(hall).give(encode_message([b"channel"]))
    subscriber.hear()
    assert subscriber.heard == [[b"channel", b"null"]]
