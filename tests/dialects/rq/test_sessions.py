"""Sources and consumers on a broker without a process: who is told what, and in which order."""

from __future__ import annotations

import pytest

from dragoman.errors import OperationWithoutId
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, consumer, job, notes, request


def test_a_request_is_delivered_and_replied_once_each_in_that_order() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(7, body="hello"))
    assert worker.hears() == [job(0, "hello")]
    assert client.hears() == []
    worker.say("CLEAR ID=0 DELIVERED")
    assert client.hears() == ["ID=7 DELIVERED"]
    worker.say("CLEAR ID=0 PAYLOAD=world REPLY")
    assert client.hears() == ["ID=7 PAYLOAD=world REPLY"]


def test_a_reply_without_delivered_is_taken_as_both() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5))
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=5 DELIVERED", "ID=5 PAYLOAD=ok REPLY"]


def test_delivered_sent_twice_reaches_the_source_once() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5))
    worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 DELIVERED")
    assert client.hears() == ["ID=5 DELIVERED"]


def test_a_retry_does_not_say_delivered_again() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5))
    worker.say("CLEAR ID=0 DELIVERED")
    worker.leave()
    again = consumer(broker)
    assert again.hears() == [job(0)]
    again.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=5 DELIVERED", "ID=5 PAYLOAD=ok REPLY"]


@pytest.mark.parametrize("number", [0, 5, 40000, 0x7FFFFFFF, 0x80000001, 0xFFFFFFFF])
def test_any_id_of_a_source_comes_back_exactly(number: int) -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(number))
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == [f"ID={number} DELIVERED", f"ID={number} PAYLOAD=ok REPLY"]


def test_a_request_without_a_reply_is_delivered_when_it_is_kept_and_settled_by_the_consumers_delivered() -> None:
    broker = InMemoryBroker()
    client = Node(broker)
    client.say(request(5, body="fire", options="NOREPLY"))
    assert client.hears() == ["ID=5 DELIVERED"]
    worker = consumer(broker)
    assert worker.hears() == [job(0, "fire", flag="NOREPLY")]
    worker.say("CLEAR ID=0 DELIVERED")
    assert client.hears() == []
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["done"]
    client.say(request(6))
    assert worker.hears() == [job(0)]


def test_a_request_for_a_queue_without_a_consumer_waits() -> None:
    broker = InMemoryBroker()
    client = Node(broker)
    client.say(request(1))
    broker.pass_time(60)
    assert consumer(broker).hears() == [job(0)]


def test_fields_may_come_in_any_order_and_unknown_ones_are_skipped() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say("CLEAR 31 63 100=9 PAYLOAD=r RETRIES=3 170=zz 193=hi 230=long QUEUE=q TIMEOUT=9 ID=5 REQUEST")
    assert worker.hears() == [job(0)]


def test_the_queue_may_be_named_by_its_id_and_the_name_wins_over_it() -> None:
    broker = InMemoryBroker()
    both = consumer(broker, options="MAX=9")
    both.say("CLEAR QUEUE=other MAX=9 CONSUME")
    assert both.hears() == ["QUEUEID=2 QUEUE=other CONSUMING"]
    both.say("CLEAR ID=1 QUEUEID=2 PAYLOAD=a REQUEST", "CLEAR ID=2 QUEUEID=2 QUEUE=q PAYLOAD=b REQUEST")
    assert both.hears() == [job(0, "a", queue_id=2), job(1, "b", queue_id=1)]


def test_an_unknown_queue_id_and_no_queue_at_all_are_answered_undelivered() -> None:
    broker = InMemoryBroker()
    client = Node(broker)
    client.say("CLEAR ID=1 QUEUEID=9 PAYLOAD=x REQUEST", "CLEAR ID=2 PAYLOAD=x REQUEST")
    assert client.hears() == ["ID=1 UNDELIVERED", "ID=2 UNDELIVERED"]
    assert notes(broker) == {"RQ_NO_QUEUE": 2}


@pytest.mark.parametrize("text", ["QUEUE=q PAYLOAD=x REQUEST", "PAYLOAD=x REPLY", "DELIVERED", "UNDELIVERED"])
def test_what_is_about_a_request_and_has_no_id_ends_the_connection(text: str) -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    with pytest.raises(OperationWithoutId):
        node.say(f"CLEAR {text}")


def test_an_answer_to_an_id_that_was_never_given_is_counted_and_ignored() -> None:
    broker = InMemoryBroker()
    worker = consumer(broker)
    worker.say("CLEAR ID=3 DELIVERED", "CLEAR ID=70000 PAYLOAD=x REPLY", "CLEAR ID=4294967295 UNDELIVERED")
    assert notes(broker) == {"RQ_UNKNOWN_ID": 3}


def test_retries_are_how_many_more_consumers_may_try() -> None:
    broker = InMemoryBroker()
    client = Node(broker)
    client.say(request(5, options="RETRIES=1"))
    for _ in range(2):
        assert client.hears() == []
        consumer(broker).leave()
    assert client.hears() == ["ID=5 UNDELIVERED"]


def test_no_retries_at_all_make_the_first_death_the_last() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5, options="RETRIES=0"))
    worker.leave()
    assert client.hears() == ["ID=5 UNDELIVERED"]


def test_what_a_consumer_gives_back_goes_to_another_one() -> None:
    broker = InMemoryBroker()
    first, second, client = consumer(broker), consumer(broker), Node(broker)
    client.say(request(5))
    assert first.hears() == [job(0)]
    first.say("CLEAR ID=0 UNDELIVERED")
    assert second.hears() == [job(0)]
    second.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=5 DELIVERED", "ID=5 PAYLOAD=ok REPLY"]


def test_what_the_only_consumer_gives_back_is_undelivered() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5))
    worker.say("CLEAR ID=0 UNDELIVERED")
    assert client.hears() == ["ID=5 UNDELIVERED"]


def test_a_guaranteed_message_that_its_only_consumer_gives_back_is_retried_and_then_quarantined() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), broker.client()
    client.request(b"q", b"hello", b"guarantee,retry-count:2,reply-requested")
    for _ in range(3):
        assert worker.hears() == [job(0, "hello")]
        worker.say("CLEAR ID=0 UNDELIVERED")
        assert worker.hears() == []
        broker.pass_time(1.1)
    assert worker.hears() == []
    assert broker.facts("closed") == []
    assert [fact["reason"] for fact in broker.facts("released")] == ["returned", "returned"]
    assert [fact["reason"] for fact in broker.facts("quarantined")] == ["returned"]
    assert len(client.take(b"REPLY")) == 1


def test_a_timeout_that_passes_before_delivered_is_sent_as_undelivered() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5, options="TIMEOUT=2"), request(6, options="TIMEOUT=2"))
    assert worker.hears() == [job(0)]
    broker.pass_time(2.5)
    assert sorted(client.hears()) == ["ID=5 UNDELIVERED", "ID=6 UNDELIVERED"]


def test_a_timeout_ends_with_delivered() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5, options="TIMEOUT=2"))
    worker.say("CLEAR ID=0 DELIVERED")
    broker.pass_time(5)
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=5 DELIVERED", "ID=5 PAYLOAD=ok REPLY"]


def test_an_empty_payload_is_a_body_like_any_other_and_a_reply_without_one_is_empty() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(5, body=""))
    assert worker.hears() == [job(0, "")]
    worker.say("CLEAR ID=0 REPLY")
    assert client.hears() == ["ID=5 DELIVERED", "ID=5 PAYLOAD= REPLY"]


def test_of_two_payloads_the_last_one_counts() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say("CLEAR ID=5 QUEUE=q PAYLOAD=first PAYLOAD=second REQUEST")
    assert worker.hears() == [job(0, "second")]


def test_large_bodies_pass_whole_both_ways() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    body = "x" * 100_000
    client.say(request(5, body=body))
    assert worker.hears() == [job(0, body)]
    worker.say(f"CLEAR ID=0 PAYLOAD={body} REPLY")
    assert client.hears() == ["ID=5 DELIVERED", f"ID=5 PAYLOAD={body} REPLY"]
