"""PUBLISH in, `topic, body` out, by prefix."""

from __future__ import annotations

import time

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, House
from tests.dialects.emqp.shop import notes


def subscriber(house: House, *prefixes: bytes) -> End:
    end = house.connect("emqp.subscribe", b"", b"SUB")
    for prefix in prefixes:
        end.give(encode_message([b"\x01" + prefix]))
    return end


def publish(house: House, topic: bytes, body: bytes, listener: str = "emqp.publish") -> None:
    house.connect(listener, b"").say(b"PUBLISH", b"1", topic, body)


def news(end: End) -> list[list[bytes]]:
    end.hear()
    heard, end.heard = end.heard, []
    return heard


def test_a_publish_leaves_as_topic_and_body() -> None:
    house = House()
    end = subscriber(house, b"top")
    publish(house, b"topic", b'["update", "1"]')
    assert news(end) == [[b"topic", b'["update", "1"]']]


def test_a_prefix_gets_every_topic_that_begins_with_it_and_no_other() -> None:
    house = House()
    orders, everything, nothing = subscriber(house, b"orders/"), subscriber(house, b""), subscriber(house)
    for topic in (b"orders/created", b"orders/", b"orders", b"other"):
        publish(house, topic, b"\xff\x00")
    assert news(orders) == [[b"orders/created", b"\xff\x00"], [b"orders/", b"\xff\x00"]]
    assert len(news(everything)) == 4
    assert news(nothing) == []


def test_several_fitting_prefixes_of_one_subscriber_give_it_once() -> None:
    house = House()
    end = subscriber(house, b"", b"a", b"ab")
    publish(house, b"abc", b"1")
    assert news(end) == [[b"abc", b"1"]]


def test_a_prefix_subscribed_twice_must_be_unsubscribed_twice() -> None:
    house = House()
    end = subscriber(house, b"a", b"a")
    end.give(encode_message([b"\x00a"]))
    publish(house, b"a", b"1")
    end.give(encode_message([b"\x00a"]))
    publish(house, b"a", b"2")
    assert news(end) == [[b"a", b"1"]]


def test_a_publish_on_the_client_port_is_taken_too() -> None:
    house = House()
    end = subscriber(house, b"")
    publish(house, b"t", b"1", "emqp.client")
    assert news(end) == [[b"t", b"1"]]


def test_a_subscriber_that_left_gets_nothing_and_leaves_nothing_behind() -> None:
    house = House()
    end = subscriber(house, b"a", b"b")
    end.leave()
    publish(house, b"a", b"1")
    assert house.core.topics.prefixes == {}
    assert house.core.topics.lengths == []


def test_news_for_one_who_does_not_read_waits_until_it_is_too_far_behind() -> None:
    house = House()
    house.outboxes.news.subscriber_size_max = 1000
    end = subscriber(house, b"")
    end.session.set_socket_full(True)
    for number in range(4):
        publish(house, b"t", b"%d" % number)
    assert news(end) == []
    assert notes(house) == {"SLOW_SUBSCRIBER_DROPPED": 2}
    assert house.outboxes.news.dropped == 2
    end.session.set_socket_full(False)
    assert news(end) == [[b"t", b"0"], [b"t", b"1"]]
    publish(house, b"t", b"4")
    assert news(end) == [[b"t", b"4"]]
    assert house.outboxes.news.size == 0


def test_one_publish_is_encoded_and_counted_once_for_all_who_wait_for_it() -> None:
    house = House()
    ends = [subscriber(house, b"") for _ in range(50)]
    for end in ends:
        end.session.set_socket_full(True)
    publish(house, b"t", b"x" * 100_000)
    assert house.outboxes.news.size < 110_000
    for end in ends:
        end.session.set_socket_full(False)
        end.hear()
        while data := end.session.take_more():
            end.heard.extend(end.zmtp.receive(data))
        assert news(end) == [[b"t", b"x" * 100_000]]
    assert house.outboxes.news.size == 0
    assert not house.outboxes.news.behind


def test_when_all_that_waits_is_too_much_the_oldest_is_dropped_for_everyone() -> None:
    house = House()
    house.outboxes.news.size_max = 4000
    slow, slower = subscriber(house, b""), subscriber(house, b"")
    for end in (slow, slower):
        end.session.set_socket_full(True)
    for number in range(20):
        publish(house, b"t", b"%d" % number)
    assert house.outboxes.news.size <= 4000
    for end in (slow, slower):
        end.session.set_socket_full(False)
    kept = news(slow)
    assert news(slower) == kept
    assert [int(body) for _, body in kept] == list(range(20 - len(kept), 20)), "the newest ones"
    assert 0 < len(kept) < 10
    assert house.outboxes.news.dropped == 2 * (20 - len(kept))


def test_one_that_leaves_while_news_waits_for_it_leaves_nothing_behind() -> None:
    house = House()
    end = subscriber(house, b"")
    end.session.set_socket_full(True)
    publish(house, b"t", b"1")
    end.leave()
    assert house.outboxes.news.size == 0
    assert not house.outboxes.news.behind


def test_one_that_stopped_in_the_middle_of_news_that_is_dropped_is_cut_off() -> None:
    house = House()
    house.outboxes.news.size_max = 300_000
    end = subscriber(house, b"")
    publish(house, b"t", b"x" * 200_000)
    assert end.session.take_free(), "the first part of it"
    end.session.set_socket_full(True)
    publish(house, b"t", b"y" * 200_000)
    assert house.outboxes.news.stuck == [end.session]
    end.session.set_socket_full(False)
    assert end.session.take_free() == b"", "half of a frame cannot be followed by anything else"


def test_publishes_are_counted_by_topic_once_a_second() -> None:
    house = House()
    house.pass_time(2)
    for _ in range(3):
        publish(house, b"t", b"1")
    house.pass_time(2)
    assert [(fact["topic"], fact["count"]) for fact in house.facts("published")] == [("t", 3)]


def test_a_short_publish_is_noted_and_dropped() -> None:
    house = House()
    end = subscriber(house, b"")
    house.connect("emqp.publish", b"").say(b"PUBLISH", b"1", b"topic")
    assert news(end) == []
    assert notes(house) == {"EMQP_SHORT_MESSAGE": 1}


def test_a_topic_or_prefix_beyond_its_limit_is_noted_and_dropped() -> None:
    house = House()
    end = subscriber(house, b"", b"p" * 256)
    publish(house, b"t" * 256, b"1")
    publish(house, b"t" * 255, b"2")
    assert news(end) == [[b"t" * 255, b"2"]]
    assert notes(house) == {"TOPIC_TOO_LONG": 2}


def test_what_is_no_subscription_is_noted() -> None:
    house = House()
    end = house.connect("emqp.subscribe", b"", b"XSUB")
    for frames in ([b"\x02a"], [b""], [b"\x01a", b"more"]):
        end.give(encode_message(frames))
    assert notes(house) == {"NOT_A_SUBSCRIPTION": 3}


def test_a_subscriber_with_thousands_of_prefixes_leaves_as_quickly_as_it_came() -> None:
    house = House()
    others = [subscriber(house, *[b"%d/%d" % (n, k) for k in range(5000)]) for n in range(4)]
    began = time.process_time()
    for end in others:
        end.leave()
    assert time.process_time() - began < 1.0
    assert house.core.topics.prefixes == {}
