"""An id stays taken until its consumer answers it, so a late answer is never another message's."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from dragoman.model.units import SECOND_NS
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, consumer, job, notes, request


def test_a_late_reply_never_answers_the_newer_message_that_would_have_had_its_id() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=2"), Node(broker)
    client.say(request(1, body="old", options="TIMEOUT=2"))
    assert worker.hears() == [job(0, "old")]
    broker.pass_time(3)
    assert client.hears() == ["ID=1 UNDELIVERED"]
    client.say(request(2, body="new"))
    assert worker.hears() == [job(1, "new")]
    worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=late REPLY")
    assert client.hears() == []
    worker.say("CLEAR ID=1 PAYLOAD=fresh REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=2 PAYLOAD=fresh REPLY"]
    assert len(broker.facts("late")) == 1


def test_a_message_taken_away_counts_against_max_until_it_is_answered() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=1"), Node(broker)
    client.say(request(1, options="TIMEOUT=2"), request(2, body="next"))
    assert worker.hears() == [job(0)]
    broker.pass_time(3)
    assert worker.hears() == []
    worker.say("CLEAR ID=0 DELIVERED")
    assert worker.hears() == []
    worker.say("CLEAR ID=0 PAYLOAD=late REPLY")
    assert worker.hears() == [job(0, "next")]


def test_a_late_undelivered_frees_the_id_and_nothing_else() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=1"), Node(broker)
    client.say(request(1, options="TIMEOUT=2"), request(2, body="next"))
    broker.pass_time(3)
    client.hears()
    worker.hears()
    worker.say("CLEAR ID=0 UNDELIVERED")
    assert worker.hears() == [job(0, "next")]
    assert client.hears() == []


def test_a_late_reply_to_a_message_that_is_still_open_answers_that_message() -> None:
    settings = CoreSettings()
    settings.timeout_ns = 2 * SECOND_NS
    broker = InMemoryBroker(settings)
    worker, client = consumer(broker), Node(broker)
    client.say(request(1))
    worker.say("CLEAR ID=0 DELIVERED")
    broker.pass_time(3)
    worker.say("CLEAR ID=0 PAYLOAD=late REPLY")
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=late REPLY"]


def test_answers_of_a_consumer_count_for_its_own_ids_only() -> None:
    broker = InMemoryBroker()
    first, second, client = consumer(broker), consumer(broker), Node(broker)
    client.say(request(1, body="a"), request(2, body="b"))
    assert (first.hears(), second.hears()) == ([job(0, "a")], [job(0, "b")])
    second.say("CLEAR ID=0 PAYLOAD=mine REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=2 PAYLOAD=mine REPLY"]
    second.say("CLEAR ID=0 PAYLOAD=again REPLY")
    assert client.hears() == []
    assert notes(broker) == {"RQ_UNKNOWN_ID": 1}


def test_many_messages_taken_away_at_once_keep_their_ids_apart() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=1000"), Node(broker)
    client.say(*[request(number, options="TIMEOUT=2") for number in range(300)])
    assert len(worker.hears()) == 300
    broker.pass_time(3)
    assert len(client.hears()) == 300
    client.say(request(1000))
    assert worker.hears() == [job(300)]
    worker.say(*[f"CLEAR ID={number} PAYLOAD=late REPLY" for number in range(300)])
    assert client.hears() == []
    client.say(request(1001))
    assert worker.hears() == [job(0)]
