"""PUBLISH in, `topic, body` out, by prefix."""

from __future__ import annotations

import time

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker
from tests.dialects.emqp.ready_peers import notes


def subscriber(broker: InMemoryBroker, *prefixes: bytes) -> End:
    end = broker.connect("emqp.subscribe", b"", b"SUB")
    for prefix in prefixes:
        end.give(encode_message([b"\x01" + prefix]))
    return end


def publish(broker: InMemoryBroker, topic: bytes, body: bytes, listener: str = "emqp.publish") -> None:
    broker.connect(listener, b"").say(b"PUBLISH", b"1", topic, body)


def news(end: End) -> list[list[bytes]]:
    end.hear()
    heard, end.heard = end.heard, []
    return heard


def test_a_publish_leaves_as_topic_and_body() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"top")
    publish(broker, b"topic", b'["update", "1"]')
    assert news(end) == [[b"topic", b'["update", "1"]']]


def test_a_prefix_gets_every_topic_that_begins_with_it_and_no_other() -> None:
    broker = InMemoryBroker()
    orders, everything, nothing = subscriber(broker, b"orders/"), subscriber(broker, b""), subscriber(broker)
    for topic in (b"orders/created", b"orders/", b"orders", b"other"):
        publish(broker, topic, b"\xff\x00")
    assert news(orders) == [[b"orders/created", b"\xff\x00"], [b"orders/", b"\xff\x00"]]
    assert len(news(everything)) == 4
    assert news(nothing) == []


def test_several_fitting_prefixes_of_one_subscriber_give_it_once() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"", b"a", b"ab")
    publish(broker, b"abc", b"1")
    assert news(end) == [[b"abc", b"1"]]


def test_a_prefix_subscribed_twice_must_be_unsubscribed_twice() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"a", b"a")
    end.give(encode_message([b"\x00a"]))
    publish(broker, b"a", b"1")
    end.give(encode_message([b"\x00a"]))
    publish(broker, b"a", b"2")
    assert news(end) == [[b"a", b"1"]]


def test_a_publish_on_the_client_port_is_taken_too() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"")
    publish(broker, b"t", b"1", "emqp.client")
    assert news(end) == [[b"t", b"1"]]


def test_a_subscriber_that_left_gets_nothing_and_leaves_nothing_behind() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"a", b"b")
    end.leave()
    publish(broker, b"a", b"1")
    assert broker.core.topics.prefixes == {}
    assert broker.core.topics.lengths == []


def test_news_for_one_who_does_not_read_waits_until_it_is_too_far_behind() -> None:
    broker = InMemoryBroker()
    broker.outboxes.news.subscriber_size_max = 1000
    end = subscriber(broker, b"")
    end.session.set_socket_full(True)
    for number in range(4):
        publish(broker, b"t", b"%d" % number)
    assert news(end) == []
    assert notes(broker) == {"SLOW_SUBSCRIBER_DROPPED": 2}
    assert broker.outboxes.news.dropped == 2
    end.session.set_socket_full(False)
    assert news(end) == [[b"t", b"0"], [b"t", b"1"]]
    publish(broker, b"t", b"4")
    assert news(end) == [[b"t", b"4"]]
    assert broker.outboxes.news.size == 0


def test_one_publish_is_encoded_and_counted_once_for_all_who_wait_for_it() -> None:
    broker = InMemoryBroker()
    ends = [subscriber(broker, b"") for _ in range(50)]
    for end in ends:
        end.session.set_socket_full(True)
    publish(broker, b"t", b"x" * 100_000)
    assert broker.outboxes.news.size < 110_000
    for end in ends:
        end.session.set_socket_full(False)
        end.hear()
        while data := end.session.take_more():
            end.heard.extend(end.zmtp.receive(data))
        assert news(end) == [[b"t", b"x" * 100_000]]
    assert broker.outboxes.news.size == 0
    assert not broker.outboxes.news.subscribers


def test_when_all_that_waits_is_too_much_the_oldest_is_dropped_for_everyone() -> None:
    broker = InMemoryBroker()
    broker.outboxes.news.size_max = 4000
    slow, slower = subscriber(broker, b""), subscriber(broker, b"")
    for end in (slow, slower):
        end.session.set_socket_full(True)
    for number in range(20):
        publish(broker, b"t", b"%d" % number)
    assert broker.outboxes.news.size <= 4000
    for end in (slow, slower):
        end.session.set_socket_full(False)
    kept = news(slow)
    assert news(slower) == kept
    assert [int(body) for _, body in kept] == list(range(20 - len(kept), 20)), "the newest ones"
    assert 0 < len(kept) < 10
    assert broker.outboxes.news.dropped == 2 * (20 - len(kept))


def test_one_that_leaves_while_news_waits_for_it_leaves_nothing_behind() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"")
    end.session.set_socket_full(True)
    publish(broker, b"t", b"1")
    end.leave()
    assert broker.outboxes.news.size == 0
    assert not broker.outboxes.news.subscribers


def test_one_that_stopped_in_the_middle_of_news_that_is_dropped_is_cut_off() -> None:
    broker = InMemoryBroker()
    broker.outboxes.news.size_max = 300_000
    end = subscriber(broker, b"")
    publish(broker, b"t", b"x" * 200_000)
    assert end.session.take_free(), "the first part of it"
    end.session.set_socket_full(True)
    publish(broker, b"t", b"y" * 200_000)
    assert broker.outboxes.news.stuck == [end.session]
    end.session.set_socket_full(False)
    assert end.session.take_free() == b"", "half of a frame cannot be followed by anything else"


def test_publishes_are_counted_by_topic_once_a_second() -> None:
    broker = InMemoryBroker()
    broker.pass_time(2)
    for _ in range(3):
        publish(broker, b"t", b"1")
    broker.pass_time(2)
    assert [(fact["topic"], fact["count"]) for fact in broker.facts("published")] == [("t", 3)]


def test_a_short_publish_is_noted_and_dropped() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"")
    broker.connect("emqp.publish", b"").say(b"PUBLISH", b"1", b"topic")
    assert news(end) == []
    assert notes(broker) == {"EMQP_SHORT_MESSAGE": 1}


def test_a_topic_or_prefix_beyond_its_limit_is_noted_and_dropped() -> None:
    broker = InMemoryBroker()
    end = subscriber(broker, b"", b"p" * 256)
    publish(broker, b"t" * 256, b"1")
    publish(broker, b"t" * 255, b"2")
    assert news(end) == [[b"t" * 255, b"2"]]
    assert notes(broker) == {"TOPIC_TOO_LONG": 2}


def test_what_is_no_subscription_is_noted() -> None:
    broker = InMemoryBroker()
    end = broker.connect("emqp.subscribe", b"", b"XSUB")
    for frames in ([b"\x02a"], [b""], [b"\x01a", b"more"]):
        end.give(encode_message(frames))
    assert notes(broker) == {"NOT_A_SUBSCRIPTION": 3}


def test_a_subscriber_with_thousands_of_prefixes_leaves_as_quickly_as_it_came() -> None:
    broker = InMemoryBroker()
    others = [subscriber(broker, *[b"%d/%d" % (n, k) for k in range(5000)]) for n in range(4)]
    began = time.process_time()
    for end in others:
        end.leave()
    assert time.process_time() - began < 1.0
    assert broker.core.topics.prefixes == {}
