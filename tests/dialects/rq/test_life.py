"""Signs of life, the idle state, and both ways to close."""

from __future__ import annotations

import pytest

from dragoman.model.enums import DRAINING
from tests.core.harness import InMemoryBroker
from tests.dialects.rq.nodes import Node, consumer, job, notes, request


def test_ping_is_answered_with_one_pong_each() -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    node.say("PING")
    assert node.hears() == ["PONG"]
    node.say("PING PING PING")
    assert node.hears() == ["PONG", "PONG", "PONG"]


def test_a_node_that_has_sent_nothing_yet_is_sent_ping_in_half_the_time_it_has_for_that() -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    broker.pass_time(4.8)
    assert node.hears() == []
    broker.pass_time(0.4)
    assert node.hears() == ["PING"]
    assert not node.session.is_greeted
    node.say("PONG")
    assert node.session.is_greeted
    broker.pass_time(14.8)
    assert node.hears() == []


def test_a_node_that_is_silent_for_15_seconds_is_sent_one_ping_and_another_15_seconds_after_its_pong() -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    node.say("NOP")
    broker.pass_time(14.8)
    assert node.hears() == []
    broker.pass_time(0.4)
    assert node.hears() == ["PING"]
    broker.pass_time(60)
    assert node.hears() == []
    node.say("PONG")
    assert node.hears() == []
    broker.pass_time(14.8)
    assert node.hears() == []
    broker.pass_time(0.4)
    assert node.hears() == ["PING"]


def test_a_consumer_silent_for_15_seconds_after_ping_keeps_what_it_holds_and_gets_no_new_work_until_it_speaks() -> None:
    broker = InMemoryBroker()
    idle, client = consumer(broker, options="MAX=9"), Node(broker)
    client.say(request(1))
    assert idle.hears() == [job(0)]
    broker.pass_time(30.2)
    assert idle.hears() == ["PING"]
    client.say(request(2), "CLEAR QUEUE=q PAYLOAD=x BROADCAST")
    assert idle.hears() == []
    idle.say("PONG")
    broker.go_on()
    assert idle.hears() == [job(1)]
    idle.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears()[-2:] == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]


def test_an_answer_wakes_an_idle_consumer_as_pong_does() -> None:
    broker = InMemoryBroker()
    idle, client = consumer(broker, options="MAX=2"), Node(broker)
    client.say(request(1))
    idle.hears()
    broker.pass_time(31)
    client.say(request(2))
    assert idle.hears() == ["PING"]
    idle.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    broker.go_on()
    assert idle.hears() == [job(0)]


def test_work_for_an_idle_consumer_goes_to_one_that_answers() -> None:
    broker = InMemoryBroker()
    idle, busy, client = consumer(broker), consumer(broker), Node(broker)
    broker.pass_time(15.2)
    busy.say("PONG")
    broker.pass_time(15)
    client.say(request(1))
    assert idle.hears() == ["PING"]
    assert busy.hears()[-1] == job(0)


def test_a_consumer_that_does_not_read_gets_no_work_until_it_does() -> None:
    broker = InMemoryBroker()
    slow, client = consumer(broker), Node(broker)
    slow.session.set_socket_full(True)
    client.say(request(1))
    assert slow.hears() == []
    slow.session.set_socket_full(False)
    broker.go_on()
    assert slow.hears() == [job(0)]


def test_a_node_that_closes_gets_nothing_new_answers_what_it_holds_and_is_then_disconnected() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=2"), Node(broker)
    client.say(request(1))
    assert worker.hears() == [job(0)]
    worker.say("CLOSING")
    client.say(request(2))
    assert worker.hears() == []
    assert not worker.is_ended_by_us()
    worker.say("CLEAR ID=0 DELIVERED")
    assert not worker.is_ended_by_us()
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert worker.is_ended_by_us()
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]


def test_a_source_that_closes_still_gets_the_answers_it_waits_for() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(1), request(2, options="NOREPLY"), "CLOSING")
    assert not client.is_ended_by_us()
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]
    assert client.is_ended_by_us()


def test_a_node_that_closes_with_nothing_pending_is_disconnected_at_once() -> None:
    broker = InMemoryBroker()
    worker = consumer(broker)
    worker.say("CLOSING")
    assert worker.is_ended_by_us()


def test_a_closing_node_whose_message_is_taken_away_is_disconnected_by_the_next_beat() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(1, options="TIMEOUT=1"))
    worker.say("CLOSING")
    broker.pass_time(0.5)
    assert not worker.is_ended_by_us()
    broker.pass_time(1)
    assert worker.is_ended_by_us()


def test_a_draining_broker_says_closing_and_takes_nothing_new_but_answers() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker, options="MAX=9"), Node(broker)
    client.say(request(1))
    assert worker.hears() == [job(0)]
    drain(broker)
    assert worker.hears() == client.hears() == ["CLOSING"]
    client.say(request(2))
    assert client.hears() == ["ID=2 UNDELIVERED"]
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]


def test_a_stopping_broker_says_undelivered_of_what_cannot_finish_and_keeps_what_it_promised() -> None:
    broker = InMemoryBroker()
    worker, client = consumer(broker), Node(broker)
    client.say(request(1), request(2), request(3, "nobody"), request(4, "nobody", options="NOREPLY"))
    assert client.hears() == ["ID=4 DELIVERED"]
    drain(broker)
    broker.dialects.rq.closing()
    assert client.hears() == ["CLOSING", "ID=1 UNDELIVERED", "ID=2 UNDELIVERED", "ID=3 UNDELIVERED"]
    assert client.is_ended_by_us()
    assert worker.is_ended_by_us()
    assert [m.client_id for m in broker.core.open_messages(5)] == [b"\0\0\0\x04"]


def test_a_peer_that_connects_while_the_broker_drains_is_notified() -> None:
    broker = InMemoryBroker()
    drain(broker)
    node = Node(broker)
    node.say("CLEAR QUEUE=q CONSUME")
    assert node.hears() == ["CLOSING"]
    assert notes(broker) == {"RQ_CONSUME_WHILE_CLOSING": 1}


@pytest.mark.parametrize(("is_safe", "words"), [(False, b"\x17"), (True, b"")])
def test_a_connection_over_the_limit_is_sent_server_full(is_safe: bool, words: bytes) -> None:
    broker = InMemoryBroker()
    broker.dialects.rq.settings.librq_safe = is_safe
    assert broker.dialects.of("rq").words_when_full() == words


def test_librq_is_spared_broadcasts_and_empty_bodies() -> None:
    broker = InMemoryBroker()
    broker.dialects.rq.settings.librq_safe = True
    worker, client = consumer(broker), Node(broker)
    client.say("CLEAR QUEUE=q PAYLOAD=x BROADCAST", request(1, body=""))
    assert worker.hears() == []
    assert client.hears() == ["ID=1 UNDELIVERED"]
    client.say(request(2))
    worker.say("CLEAR ID=0 REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=2 UNDELIVERED"]
    assert notes(broker) == {"RQ_BROADCAST_SKIPPED": 1, "RQ_EMPTY_BODY_REFUSED": 2}


def test_commands_that_rq_does_not_have_are_counted_and_ignored() -> None:
    broker = InMemoryBroker()
    node = Node(broker)
    node.say("CLEAR 31 2 SERVER_FULL CONSUMING PING")
    assert node.hears() == ["PONG"]
    assert notes(broker) == {"RQ_UNKNOWN_COMMAND": 4}


def drain(broker: InMemoryBroker) -> None:
    """As the runtime drains."""
    broker.core.refusing = DRAINING
    broker.core.dispatch.is_stopped = True
    broker.dialects.rq.draining()


def test_a_dismissed_consumer_answers_what_it_holds_and_gets_nothing_until_it_is_admitted() -> None:
    broker = InMemoryBroker()
    worker = consumer(broker)
    client = Node(broker)
    client.say(request(1))
    assert worker.hears() == [job(0)]
    peer = next(iter(broker.core.workers.values()))
    broker.core.roster.dismiss(peer)
    assert worker.hears() == []
    client.say(request(2))
    worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]
    assert worker.hears() == []
    assert not worker.is_ended_by_us()
    broker.core.roster.admit(peer)
    assert worker.hears() == [job(0)]


def test_a_dismissed_node_that_consumes_another_queue_gets_nothing_of_it() -> None:
    broker = InMemoryBroker()
    worker = consumer(broker)
    for peer in list(broker.core.workers.values()):
        broker.core.roster.dismiss(peer)
    worker.say("CLEAR QUEUE=other MAX=5 CONSUME")
    assert len(worker.hears()) == 1, "CONSUMING: its claim is noted"
    Node(broker).say("CLEAR ID=1 QUEUE=other PAYLOAD=body REQUEST")
    assert worker.hears() == []
    assert [peer.work.is_dismissed for peer in broker.core.workers.values()] == [True, True]


@pytest.mark.parametrize("queues", [100, 600])
def test_a_node_that_was_silent_and_closes_is_given_nothing_new_however_many_queues_it_has(queues: int) -> None:
    broker = InMemoryBroker()
    node, source = Node(broker), Node(broker)
    for number in range(queues):
        node.say(f"CLEAR QUEUE=q{number} MAX=1 CONSUME")
    node.hears()
    node.session.set_idle(True)
    for number in range(queues):
        source.say(request(number + 1, f"q{number}"))
    broker.go_on()
    node.say("CLEAR CLOSING")
    while node.session.leaving:
        node.session.catch_up()
    assert [heard for heard in node.hears() if heard.endswith("REQUEST")] == []
    assert node.is_ended_by_us()
