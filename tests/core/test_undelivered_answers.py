"""Answers that came while their client was away."""

from __future__ import annotations

from dragoman import limits
from dragoman.model.units import SECOND_NS
from tests.core.harness import Client, InMemoryBroker, Worker


def served(broker: InMemoryBroker, slots: int = 1) -> Worker:
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def results(client: Client) -> list[bytes]:
    return [frames[2] for frames in client.take(b"REPLY") if len(frames) == 3]


def answered_while_away(broker: InMemoryBroker, name: bytes, headers: bytes = b"reply-requested") -> bytes:
    client = broker.client(name)
    job = client.request(b"mail", headers=headers)
    client.leave()
    served(broker).reply(job)
    return job


def test_a_client_that_comes_back_gets_the_answer_that_came_meanwhile_once() -> None:
    broker = InMemoryBroker()
    job = answered_while_away(broker, b"kim")
    assert results(broker.client(b"kim")) == [job]
    assert results(broker.client(b"kim")) == []


def test_an_answer_is_left_for_nobody_else() -> None:
    broker = InMemoryBroker()
    job = answered_while_away(broker, b"kim")
    assert results(broker.client(b"lee")) == []
    assert results(broker.client(b"kim")) == [job]


def test_an_answer_nobody_comes_for_is_given_up_in_time() -> None:
    broker = InMemoryBroker()
    answered_while_away(broker, b"kim")
    broker.pass_time(limits.ANSWERS_HELD_NS / SECOND_NS + 1)
    undelivered = broker.core.settling.undelivered
    assert (undelivered.size, len(undelivered.by_address), len(undelivered.line)) == (0, 0, 0)
    assert results(broker.client(b"kim")) == []


def test_answers_left_behind_are_bounded_in_bytes_the_oldest_go_first() -> None:
    broker = InMemoryBroker()
    client = broker.client(b"kim")
    jobs = [client.request(b"mail", headers=b"reply-requested") for _ in range(3)]
    client.leave()
    worker = served(broker, 3)
    for job in jobs:
        worker.reply(job, b"x" * (limits.ANSWERS_HELD_SIZE_MAX // 2))
    assert results(broker.client(b"kim")) == jobs[1:]


def test_who_asks_for_the_state_of_what_ended_meanwhile_learns_how() -> None:
    broker = InMemoryBroker()
    job = answered_while_away(broker, b"kim")
    assert broker.core.settled_state(job) == "done"


def test_what_was_not_asked_for_is_not_left() -> None:
    broker = InMemoryBroker()
    answered_while_away(broker, b"kim", headers=b"")
    assert broker.core.settling.undelivered.size == 0


def test_nothing_is_left_for_an_anonymous_client_who_cannot_come_back() -> None:
    broker = InMemoryBroker()
    answered_while_away(broker, b"")
    assert broker.core.settling.undelivered.size == 0
