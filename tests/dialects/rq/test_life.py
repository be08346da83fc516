"""Signs of life, the idle state, and both ways to close."""

from __future__ import annotations

import pytest

from dragoman.model.words import DRAINING
from tests.core.harness import House
from tests.dialects.rq.nodes import Node, consumer, job, notes, request


def test_ping_is_answered_with_one_pong_each() -> None:
    house = House()
    node = Node(house)
    node.say("PING")
    assert node.hears() == ["PONG"]
    node.say("PING PING PING")
    assert node.hears() == ["PONG", "PONG", "PONG"]


def test_a_node_that_has_not_said_anything_yet_is_sent_ping_in_half_the_time_it_has_for_that() -> None:
    house = House()
    node = Node(house)
    house.pass_time(4.8)
    assert node.hears() == []
    house.pass_time(0.4)
    assert node.hears() == ["PING"]
    assert not node.session.is_greeted
    node.say("PONG")
    assert node.session.is_greeted
    house.pass_time(14.8)
    assert node.hears() == []


def test_a_node_not_heard_of_for_15_seconds_is_sent_one_ping_and_another_15_seconds_after_its_pong() -> None:
    house = House()
    node = Node(house)
    node.say("NOP")
    house.pass_time(14.8)
    assert node.hears() == []
    house.pass_time(0.4)
    assert node.hears() == ["PING"]
    house.pass_time(60)
    assert node.hears() == []
    node.say("PONG")
    assert node.hears() == []
    house.pass_time(14.8)
    assert node.hears() == []
    house.pass_time(0.4)
    assert node.hears() == ["PING"]


def test_a_consumer_silent_for_15_seconds_after_ping_keeps_what_it_holds_and_gets_no_new_work_until_it_speaks() -> None:
    house = House()
    idle, client = consumer(house, options="MAX=9"), Node(house)
    client.say(request(1))
    assert idle.hears() == [job(0)]
    house.pass_time(30.2)
    assert idle.hears() == ["PING"]
    client.say(request(2), "CLEAR QUEUE=q PAYLOAD=x BROADCAST")
    assert idle.hears() == []
    idle.say("PONG")
    house.go_on()
    assert idle.hears() == [job(1)]
    idle.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears()[-2:] == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]


def test_an_answer_wakes_an_idle_consumer_as_pong_does() -> None:
    house = House()
    idle, client = consumer(house, options="MAX=2"), Node(house)
    client.say(request(1))
    idle.hears()
    house.pass_time(31)
    client.say(request(2))
    assert idle.hears() == ["PING"]
    idle.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    house.go_on()
    assert idle.hears() == [job(0)]


def test_work_for_an_idle_consumer_goes_to_one_that_answers() -> None:
    house = House()
    idle, busy, client = consumer(house), consumer(house), Node(house)
    house.pass_time(15.2)
    busy.say("PONG")
    house.pass_time(15)
    client.say(request(1))
    assert idle.hears() == ["PING"]
    assert busy.hears()[-1] == job(0)


def test_a_consumer_that_does_not_read_gets_no_work_until_it_does() -> None:
    house = House()
    slow, client = consumer(house), Node(house)
    slow.session.set_socket_full(True)
    client.say(request(1))
    assert slow.hears() == []
    slow.session.set_socket_full(False)
    house.go_on()
    assert slow.hears() == [job(0)]


def test_a_node_that_closes_gets_nothing_new_answers_what_it_holds_and_is_then_disconnected() -> None:
    house = House()
    worker, client = consumer(house, options="MAX=2"), Node(house)
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
    house = House()
    worker, client = consumer(house), Node(house)
    client.say(request(1), request(2, options="NOREPLY"), "CLOSING")
    assert not client.is_ended_by_us()
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]
    assert client.is_ended_by_us()


def test_a_node_that_closes_with_nothing_pending_is_disconnected_at_once() -> None:
    house = House()
    worker = consumer(house)
    worker.say("CLOSING")
    assert worker.is_ended_by_us()


def test_a_closing_node_whose_message_is_taken_away_is_disconnected_by_the_next_beat() -> None:
    house = House()
    worker, client = consumer(house), Node(house)
    client.say(request(1, options="TIMEOUT=1"))
    worker.say("CLOSING")
    house.pass_time(0.5)
    assert not worker.is_ended_by_us()
    house.pass_time(1)
    assert worker.is_ended_by_us()


def test_a_draining_broker_says_closing_and_takes_nothing_new_but_answers() -> None:
    house = House()
    worker, client = consumer(house, options="MAX=9"), Node(house)
    client.say(request(1))
    assert worker.hears() == [job(0)]
    drain(house)
    assert worker.hears() == client.hears() == ["CLOSING"]
    client.say(request(2))
    assert client.hears() == ["ID=2 UNDELIVERED"]
    worker.say("CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]


def test_a_stopping_broker_says_undelivered_of_what_cannot_finish_and_keeps_what_it_promised() -> None:
    house = House()
    worker, client = consumer(house), Node(house)
    client.say(request(1), request(2), request(3, "nobody"), request(4, "nobody", options="NOREPLY"))
    assert client.hears() == ["ID=4 DELIVERED"]
    drain(house)
    house.dialects.rq.closing()
    assert client.hears() == ["CLOSING", "ID=1 UNDELIVERED", "ID=2 UNDELIVERED", "ID=3 UNDELIVERED"]
    assert client.is_ended_by_us()
    assert worker.is_ended_by_us()
    assert [m.client_id for m in house.core.open_messages(5)] == [b"\0\0\0\x04"]


def test_one_who_comes_while_the_broker_drains_is_told_so() -> None:
    house = House()
    drain(house)
    node = Node(house)
    node.say("CLEAR QUEUE=q CONSUME")
    assert node.hears() == ["CLOSING"]
    assert notes(house) == {"RQ_CONSUME_WHILE_CLOSING": 1}


@pytest.mark.parametrize(("is_safe", "words"), [(False, b"\x17"), (True, b"")])
def test_a_connection_over_the_limit_is_told_server_full(is_safe: bool, words: bytes) -> None:
    house = House()
    house.dialects.rq.settings.librq_safe = is_safe
    assert house.dialects.of("rq").words_when_full() == words


def test_librq_is_spared_broadcasts_and_empty_bodies() -> None:
    house = House()
    house.dialects.rq.settings.librq_safe = True
    worker, client = consumer(house), Node(house)
    client.say("CLEAR QUEUE=q PAYLOAD=x BROADCAST", request(1, body=""))
    assert worker.hears() == []
    assert client.hears() == ["ID=1 UNDELIVERED"]
    client.say(request(2))
    worker.say("CLEAR ID=0 REPLY")
    assert client.hears() == ["ID=2 DELIVERED", "ID=2 UNDELIVERED"]
    assert notes(house) == {"RQ_BROADCAST_SKIPPED": 1, "RQ_EMPTY_BODY_REFUSED": 2}


def test_commands_that_rq_does_not_have_are_counted_and_ignored() -> None:
    house = House()
    node = Node(house)
    node.say("CLEAR 31 2 SERVER_FULL CONSUMING PING")
    assert node.hears() == ["PONG"]
    assert notes(house) == {"RQ_UNKNOWN_COMMAND": 4}


def drain(house: House) -> None:
    """As the runtime drains."""
    house.core.refusing = DRAINING
    house.core.dispatch.is_stopped = True
    house.dialects.rq.draining()


def test_a_dismissed_consumer_answers_what_it_holds_and_gets_nothing_until_it_is_admitted() -> None:
    house = House()
    worker = consumer(house)
    client = Node(house)
    client.say(request(1))
    assert worker.hears() == [job(0)]
    peer = next(iter(house.core.workers.values()))
    house.core.roster.dismiss(peer)
    assert worker.hears() == []
    client.say(request(2))
    worker.say("CLEAR ID=0 DELIVERED", "CLEAR ID=0 PAYLOAD=ok REPLY")
    assert client.hears() == ["ID=1 DELIVERED", "ID=1 PAYLOAD=ok REPLY"]
    assert worker.hears() == []
    assert not worker.is_ended_by_us()
    house.core.roster.admit(peer)
    assert worker.hears() == [job(0)]


def test_a_dismissed_node_that_consumes_another_queue_gets_nothing_of_it() -> None:
    house = House()
    worker = consumer(house)
    for peer in list(house.core.workers.values()):
        house.core.roster.dismiss(peer)
    worker.say("CLEAR QUEUE=other MAX=5 CONSUME")
    assert len(worker.hears()) == 1, "CONSUMING: its claim is noted"
    Node(house).say("CLEAR ID=1 QUEUE=other PAYLOAD=body REQUEST")
    assert worker.hears() == []
    assert [peer.is_dismissed for peer in house.core.workers.values()] == [True, True]


@pytest.mark.parametrize("queues", [100, 600])
def test_a_node_that_was_silent_and_closes_is_given_nothing_new_however_many_queues_it_has(queues: int) -> None:
    house = House()
    node, source = Node(house), Node(house)
    for number in range(queues):
        node.say(f"CLEAR QUEUE=q{number} MAX=1 CONSUME")
    node.hears()
    node.session.set_idle(True)
    for number in range(queues):
        source.say(request(number + 1, f"q{number}"))
    house.go_on()
    node.say("CLEAR CLOSING")
    while node.session.leaving:
        node.session.catch_up()
    assert [heard for heard in node.hears() if heard.endswith("REQUEST")] == []
    assert node.is_ended_by_us()
