"""The admin's questions in the original's JSON, and who may stop the broker."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dragoman.dialects.emqp.settings import EmqpSettings
from tests.core.harness import End, InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, notes, ready_original, ready_worker


def admin(broker: InMemoryBroker) -> End:
    return broker.connect("emqp.admin", b"admin:1")


def ask(end: End, command: bytes) -> Any:
    end.say(command, b"admin:id")
    ((_, text),) = end.take(b"REPLY")
    return msgspec.json.decode(text)


def test_status_has_the_originals_keys_and_counts_by_queue() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2, identity=b"the-worker")
    client = broker.client()
    jobs = [client.request(b"mail", JOB) for _ in range(3)]
    client.request(b"other", JOB)
    worker.reply(jobs[0])
    assert ask(admin(broker), b"STATUS") == {
        "inflight_messages_by_queue": {"mail": 1},
        "latency_messages_by_queue": {"mail": 0},
        "max_latency_messages_by_queue": {"mail": 0},
        "waiting_messages_by_queue": {"mail": 1, "other": 1},
        "processed_messages_by_queue": {"mail": 1},
        "processed_messages_by_worker": {"the-worker": 1},
    }


def test_show_workers_tells_queues_last_sign_and_free_slots() -> None:
    broker = InMemoryBroker()
    worker = broker.worker(b"the-worker")
    worker.inform_as_original((30, b"low"), (10, b"default"))
    worker.ready(2)
    assert ask(admin(broker), b"ROUTER_SHOW_WORKERS") == {
        "connected_workers": {
            "the-worker": {"queues": [[30, "low"], [10, "default"]], "hb": 1_700_000_000.0, "available_slots": 2}
        },
        "connected_queues": {"low": [[30, "the-worker"]], "default": [[10, "the-worker"]]},
    }


def test_show_schedulers_tells_their_last_sign() -> None:
    broker = InMemoryBroker()
    broker.connect("emqp.client", b"the-scheduler").say(b"INFORM", b"1", b"", b"scheduler")
    assert ask(admin(broker), b"ROUTER_SHOW_SCHEDULERS") == {
        "connected_schedulers": {"the-scheduler": {"hb": 1_700_000_000.0}}
    }


@pytest.mark.parametrize("command", [b"STATUS", b"ROUTER_SHOW_WORKERS", b"ROUTER_SHOW_SCHEDULERS"])
def test_an_empty_broker_answers_every_question_with_empty_tables(command: bytes) -> None:
    answer = ask(admin(InMemoryBroker()), command)
    assert all(table == {} for table in answer.values())


def test_binary_identities_and_queue_names_are_shown_with_escapes() -> None:
    broker = InMemoryBroker()
    worker = broker.worker(b"\xff\x01")
    worker.say(b"INFORM", b"1", b"\xfe")
    shown = ask(admin(broker), b"ROUTER_SHOW_WORKERS")
    assert shown["connected_queues"] == {"\\xfe": [[10, "\\xff\x01"]]}


def test_disconnect_from_an_admin_stops_nothing_and_is_answered_with_the_name_of_the_setting() -> None:
    broker = InMemoryBroker()
    end = admin(broker)
    end.say(b"DISCONNECT", b"admin:the-id")
    ((_, value, answered_id),) = end.take(b"REPLY")
    assert answered_id == b"admin:the-id"
    error = msgspec.json.decode(value)["error"]
    assert error["type"] == "REMOTE_STOP_OFF"
    assert "emqp.remote_stop = true" in error["message"]
    assert not broker.outboxes.stop_requested


def test_disconnect_from_an_admin_is_acknowledged_and_stops_the_broker_where_the_setting_allows_it() -> None:
    settings = EmqpSettings()
    settings.remote_stop = True
    broker = InMemoryBroker(emqp_settings=settings)
    end = admin(broker)
    end.say(b"DISCONNECT", b"admin:the-id")
    assert [frames[1] for frames in end.take(b"ACK")] == [b"admin:the-id"]
    assert broker.outboxes.stop_requested


@pytest.mark.parametrize("listener", ["emqp.client", "emqp.worker", "emqp.publish"])
def test_only_an_admin_may_stop_the_broker(listener: str) -> None:
    broker = InMemoryBroker()
    end = broker.connect(listener, b"")
    end.say(b"DISCONNECT", b"1")
    end.hear()
    assert end.heard == []
    assert not broker.outboxes.stop_requested
    assert notes(broker) == {"EMQP_ONLY_AN_ADMIN_MAY_STOP_THE_BROKER": 1}


def test_hello_is_ignored_and_noted() -> None:
    broker = InMemoryBroker()
    end = admin(broker)
    end.say(b"HELLO", b"admin:1")
    end.hear()
    assert end.heard == []
    assert notes(broker) == {"EMQP_UNKNOWN_COMMAND": 1}


def test_a_lost_worker_is_no_longer_shown() -> None:
    broker = InMemoryBroker()
    ready_original(broker)
    broker.pass_time(6)
    assert ask(admin(broker), b"ROUTER_SHOW_WORKERS") == {"connected_workers": {}, "connected_queues": {}}
