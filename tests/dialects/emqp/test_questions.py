"""STATE and CANCEL, our extensions on the client port."""

from __future__ import annotations

import msgspec
import pytest

from tests.core.harness import Client, InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, error_type, ready_worker, results


def ask(client: Client, command: bytes, request_id: bytes) -> object:
    question = client.broker.next_id("question")
    client.say(command, question, request_id)
    answers = [value for answered, value in results(client) if answered == question]
    assert len(answers) == 1
    return msgspec.json.decode(answers[0])["value"]


def test_a_waiting_a_leased_and_a_settled_request_tell_their_state() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"ack-requested")
    assert ask(client, b"STATE", job) == {"state": "waiting", "attempt": 0, "queue": "mail"}
    worker = ready_worker(broker)
    assert ask(client, b"STATE", job) == {"state": "leased", "attempt": 1, "queue": "mail"}
    worker.reply(job)
    assert ask(client, b"STATE", job) == {"state": "done"}


@pytest.mark.parametrize("request_id", [b"nosuch", b"", b"\xff", b"x" * 1000])
def test_an_unknown_id_is_unknown_never_waiting(request_id: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    assert ask(client, b"STATE", request_id) == {"state": "unknown"}
    assert ask(client, b"CANCEL", request_id) is False


def test_questions_without_an_id_are_answered() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.say(b"STATE", b"1")
    client.say(b"CANCEL", b"2")
    assert results(client) == [(b"1", b'{"value":{"state":"unknown"}}'), (b"2", b'{"value":false}')]


def test_a_cancelled_request_is_never_run_and_its_client_is_notified() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested,ack-requested")
    client.say(b"CANCEL", b"q", job)
    said = dict(results(client))
    assert said[b"q"] == b'{"value":true}'
    assert error_type(said[job]) == "BY_CLIENT"
    assert ready_worker(broker).jobs() == []
    assert ask(client, b"STATE", job) == {"state": "cancelled"}
    assert ask(client, b"CANCEL", job) is False


def test_a_leased_request_can_be_cancelled_and_its_late_answer_is_dropped() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB)
    assert ask(client, b"CANCEL", job) is True
    worker.reply(job)
    assert len(broker.facts("late")) == 1
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["cancelled"]


def test_a_delayed_request_can_be_cancelled() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"delay:5")
    assert ask(client, b"CANCEL", job) is True
    broker.pass_time(6)
    assert ready_worker(broker).jobs() == []
