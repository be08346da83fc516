"""Which consumer gets what, how many at a time, and under which ids."""

from __future__ import annotations

import pytest

from dragoman.errors import TooManyConsumers
from dragoman.limits import RQ_QUEUES_MAX
from dragoman.wire.risp.commands import U16
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, consumer, job, notes, request


def test_a_consumer_holds_at_most_max_and_each_answer_frees_one_slot() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=2"), Node(broker)
    client.say(*[request(number, body=str(number)) for number in range(4)])
    assert worker.hears() == [job(0, "0"), job(1, "1")]
    worker.say("CLEAR ID=1 DELIVERED")
    assert worker.hears() == []
    worker.say("CLEAR ID=1 PAYLOAD=ok REPLY")
    assert worker.hears() == [job(1, "2")]


@pytest.mark.parametrize("options", ["", "MAX=0"])
def test_without_max_the_setting_bounds_a_consumer(options: str) -> None:
    broker = InMemoryBroker()
    broker.dialects.rq.settings.consumer_messages_max = 3
    worker, client = consumer(broker, options=options), Node(broker)
    client.say(*[request(number) for number in range(5)])
    assert worker.hears() == [job(0), job(1), job(2)]


def test_the_setting_bounds_a_consumer_that_asks_for_more_too() -> None:
    broker = InMemoryBroker()
    broker.dialects.rq.settings.consumer_messages_max = 3
    worker, client = consumer(broker, options="MAX=65535"), Node(broker)
    client.say(*[request(number) for number in range(5)])
    assert len(worker.hears()) == 3


def test_a_consumer_is_given_the_smallest_free_id_and_all_its_queues_share_them() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=3"), Node(broker)
    worker.say("CLEAR QUEUE=other MAX=3 CONSUME")
    assert worker.hears() == ["QUEUEID=2 QUEUE=other CONSUMING"]
    client.say(request(1), request(2, "other"), request(3))
    assert worker.hears() == [job(0), job(1, queue_id=2), job(2)]
    worker.say("CLEAR ID=1 PAYLOAD=ok REPLY")
    client.say(request(4), request(5, "other"))
    assert worker.hears() == [job(1), job(3, queue_id=2)]


def test_the_highest_priority_with_a_free_slot_comes_first_and_equals_take_turns() -> None:
    broker = InMemoryBroker()
    low = consumer(broker, options="MAX=9 PRIORITY=10")
    high = [consumer(broker, options="MAX=2 PRIORITY=30"), consumer(broker, options="MAX=2 PRIORITY=30")]
    client = Node(broker)
    client.say(*[request(number, body=str(number)) for number in range(6)])
    assert high[0].hears() == [job(0, "0"), job(1, "2")]
    assert high[1].hears() == [job(0, "1"), job(1, "3")]
    assert low.hears() == [job(0, "4"), job(1, "5")]


def test_an_unsaid_priority_is_the_normal_one() -> None:
    broker = InMemoryBroker()
    consumers = {priority: consumer(broker, options=f"MAX=1 {priority}".strip()) for priority in ("PRIORITY=19", "")}
    Node(broker).say(request(1))
    assert consumers["PRIORITY=19"].hears() == []
    assert consumers[""].hears() == [job(0)]


def test_priority_none_hears_broadcasts_only() -> None:
    broker = InMemoryBroker()
    listener, client = consumer(broker, options="MAX=9 PRIORITY=0"), Node(broker)
    client.say(request(1), "CLEAR QUEUE=q PAYLOAD=news BROADCAST")
    assert listener.hears() == ["QUEUEID=1 PAYLOAD=news BROADCAST"]


def test_a_broadcast_reaches_the_present_consumers_and_leaves_nothing_behind() -> None:
    broker = InMemoryBroker()
    first, second, client = consumer(broker), consumer(broker), Node(broker)
    other = consumer(broker, queue="queue")
    client.say("CLEAR QUEUE=q PAYLOAD=all BROADCAST")
    assert first.hears() == second.hears() == ["QUEUEID=1 PAYLOAD=all BROADCAST"]
    assert other.hears() == client.hears() == consumer(broker).hears() == []


def test_a_broadcast_may_name_its_queue_by_id_and_needs_one() -> None:
    broker = InMemoryBroker()
    node = consumer(broker)
    node.say("CLEAR QUEUEID=1 BROADCAST", "CLEAR QUEUEID=2 PAYLOAD=x BROADCAST")
    assert node.hears() == ["QUEUEID=1 PAYLOAD= BROADCAST"]
    assert notes(broker) == {"RQ_NO_QUEUE": 1}


def test_news_of_another_dialect_on_the_topic_of_that_name_is_received_as_a_broadcast() -> None:
    broker = InMemoryBroker()
    listener = consumer(broker)
    broker.core.publish(broker.client().session, b"q", b"from elsewhere")
    broker.core.publish(broker.client().session, b"queue", b"not this one")
    assert listener.hears() == ["QUEUEID=1 PAYLOAD=from elsewhere BROADCAST"]


def test_an_exclusive_consumer_stands_alone_and_the_others_are_promoted_in_order_when_it_goes() -> None:
    broker = InMemoryBroker()
    first = consumer(broker, flags="EXCLUSIVE")
    second, third, client = Node(broker), Node(broker), Node(broker)
    second.say("CLEAR EXCLUSIVE QUEUE=q MAX=1 CONSUME")
    third.say("CLEAR QUEUE=q MAX=1 CONSUME")
    client.say(request(1), request(2), "CLEAR QUEUE=q PAYLOAD=all BROADCAST")
    assert first.hears() == ["QUEUEID=1 PAYLOAD=all BROADCAST", job(0)]
    assert second.hears() == third.hears() == []
    first.leave()
    heard = second.hears()
    assert heard[0] == "QUEUEID=1 QUEUE=q CONSUMING"
    assert len(heard) == 2
    assert third.hears() == []
    second.leave()
    assert third.hears()[0] == "QUEUEID=1 QUEUE=q CONSUMING"


def test_exclusive_asked_of_a_queue_with_consumers_waits_for_them_all_to_leave() -> None:
    broker = InMemoryBroker()
    first, second = consumer(broker), consumer(broker)
    lone = Node(broker)
    lone.say("CLEAR EXCLUSIVE QUEUE=q MAX=1 CONSUME")
    first.leave()
    assert lone.hears() == []
    second.say("CLEAR QUEUE=q CANCEL_QUEUE")
    assert lone.hears() == ["QUEUEID=1 QUEUE=q CONSUMING"]


@pytest.mark.parametrize("name", ["QUEUE=q", "QUEUEID=1"])
def test_after_cancel_queue_nothing_new_comes_but_what_is_held_may_be_answered(name: str) -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(1), request(2))
    assert worker.hears() == [job(0)]
    worker.say(f"CLEAR {name} CANCEL_QUEUE", "CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
    client.say("CLEAR QUEUE=q PAYLOAD=all BROADCAST")
    assert worker.hears() == []
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]
    assert consumer(broker).hears() == [job(0)]


def test_a_queue_may_be_consumed_again_after_it_was_cancelled_under_the_same_id() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    worker.say("CLEAR QUEUE=q CANCEL_QUEUE", "CLEAR QUEUE=q MAX=2 CONSUME")
    assert worker.hears() == ["QUEUEID=1 QUEUE=q CONSUMING"]
    client.say(request(1), request(2), request(3))
    assert worker.hears() == [job(0), job(1)]


def test_consuming_again_sets_max_anew_and_counts_what_is_held() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=2"), Node(broker)
    client.say(*[request(number) for number in range(6)])
    assert worker.hears() == [job(0), job(1)]
    worker.say("CLEAR QUEUE=q MAX=3 CONSUME")
    assert worker.hears() == ["QUEUEID=1 QUEUE=q CONSUMING", job(2)]
    worker.say("CLEAR QUEUE=q MAX=1 CONSUME")
    assert worker.hears() == ["QUEUEID=1 QUEUE=q CONSUMING"]
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY", "CLEAR ID=1 PAYLOAD=ok REPLY")
    assert worker.hears() == []
    worker.say("CLEAR ID=2 PAYLOAD=ok REPLY")
    assert worker.hears() == [job(0)]


def test_cancelling_what_is_not_consumed_is_counted_and_ignored() -> None:
    broker = InMemoryBroker()
    Node(broker).say("CLEAR QUEUE=q CANCEL_QUEUE", "CLEAR QUEUEID=1 CANCEL_QUEUE", "CLEAR CANCEL_QUEUE")
    Node(broker).say("CLEAR CONSUME", "CLEAR QUEUEID=3 CONSUME")
    assert notes(broker) == {"RQ_NOT_CONSUMED": 3, "RQ_NO_QUEUE": 2}


def test_one_connection_may_not_consume_queues_without_end() -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    node.give(b"".join(b"\x01\xa0\x05%05d\x14" % number for number in range(RQ_QUEUES_MAX)))
    assert len(node.hears()) == RQ_QUEUES_MAX
    with pytest.raises(TooManyConsumers):
        node.say("CLEAR QUEUE=one-more CONSUME")


def test_a_consumer_that_dies_gives_its_messages_back_at_once() -> None:
    broker = InMemoryBroker()
    worker, other, client = consumer(broker, options="MAX=2"), consumer(broker, queue="other"), Node(broker)
    client.say(request(1, body="a"), request(2, body="b"))
    worker.say("CLEAR ID=0 DELIVERED")
    other.say("CLEAR QUEUE=q MAX=9 CONSUME")
    assert other.hears() == ["QUEUEID=1 QUEUE=q CONSUMING"]
    worker.leave()
    assert sorted(other.hears()) == [job(0, "a"), job(1, "b")]


def test_queue_ids_are_counted_for_the_whole_controller() -> None:
    """As the original counts them: a request by QUEUEID works from any connection."""
    broker = InMemoryBroker()
    consumer(broker)
    other, client = consumer(broker, queue="other"), Node(broker)
    client.say("CLEAR ID=1 QUEUEID=2 PAYLOAD=byid REQUEST", "CLEAR ID=2 QUEUEID=3 PAYLOAD=x REQUEST")
    assert other.hears() == [job(0, "byid", queue_id=2)]
    assert client.hears() == ["ID=2 UNDELIVERED"]
    other.leave()
    assert consumer(broker, queue="other").hears() == [job(0, "byid", queue_id=2)]


@pytest.mark.long
def test_a_node_that_takes_all_queue_ids_takes_none_from_others() -> None:
    broker = InMemoryBroker()
    for start in range(0, U16, 8192):
        greedy = Node(broker)
        greedy.give(b"".join(b"\x01\xa0\x05%05d\x14" % number for number in range(start, min(start + 8192, U16))))
        greedy.leave()
    assert broker.dialects.rq.id_of(b"one more") == 0
    worker, client = Node(broker), Node(broker)
    worker.say("CLEAR QUEUE=late1 CONSUME", "CLEAR QUEUE=late2 CONSUME", "CLEAR QUEUE=65534 CONSUME")
    assert worker.hears() == [
        "QUEUEID=65535 QUEUE=late1 CONSUMING",
        "QUEUEID=65534 QUEUE=late2 CONSUMING",
        "QUEUEID=65533 QUEUE=65534 CONSUMING",  # 65535 everywhere else: this node knows another queue by that number
    ]
    client.say(request(1, queue="late1"), request(2, queue="late2"), "CLEAR ID=3 QUEUEID=65535 PAYLOAD=r REQUEST")
    assert worker.hears() == [job(0, queue_id=65535), job(1, queue_id=65534), job(2, queue_id=65533)]
    worker.say("CLEAR ID=4 QUEUEID=65535 PAYLOAD=own REQUEST")
    assert worker.hears() == [job(3, "own", queue_id=65535)]
