"""A REQ socket gets exactly one answer to each of its messages, whatever there would be to say besides."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.model.enums import BY_CLIENT, DRAINING
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay, restart
from tests.dialects.scale0.in_memory import Peer, configure, new_client, new_worker


def req_worker(broker: InMemoryBroker, identity: bytes = b"req") -> Peer:
    return new_worker(broker, identity, b"REQ")


def req_client(broker: InMemoryBroker, identity: bytes = b"asker") -> Peer:
    return new_client(broker, identity, b"REQ")


def test_a_ping_is_answered_by_pong_when_nothing_waits_and_a_later_task_does_not_come_by_itself() -> None:
    broker = InMemoryBroker()
    worker, client = req_worker(broker), new_client(broker)
    worker.ping("mail")
    assert worker.words() == ["PONG"]
    client.task(1)
    assert worker.hear() == []
    worker.ping()
    assert len(worker.tasks()) == 1


def test_a_taskreply_is_answered_by_the_next_task_or_by_pong() -> None:
    broker = InMemoryBroker()
    worker, client = req_worker(broker), new_client(broker)
    client.task(1)
    client.task(2)
    worker.ping("mail")
    ((first, _),) = worker.tasks()
    worker.reply(first)
    ((second, _),) = worker.tasks()
    worker.reply(second)
    assert worker.words() == ["PONG"]
    assert client.results() == [(1, b"done"), (2, b"done")]


def test_a_late_taskreply_is_answered_too() -> None:
    broker = InMemoryBroker()
    worker = req_worker(broker)
    worker.ping("mail")
    assert worker.words() == ["PONG"]
    worker.reply("nosuch")
    assert worker.words() == ["PONG"]


def test_a_busy_ping_is_answered_by_pong_although_a_task_waits() -> None:
    broker = InMemoryBroker()
    worker, client = req_worker(broker), new_client(broker)
    client.task(1)
    worker.ping("mail", busy=True)
    assert worker.words() == ["PONG"]


def test_a_task_is_answered_by_its_reply_alone() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), req_client(broker)
    worker.ping("mail")
    worker.hear()
    client.task("a")
    assert client.hear() == []
    ((given, _),) = worker.tasks()
    worker.reply(given)
    assert client.results() == [("a", b"done")]


def test_the_reply_to_an_earlier_task_is_not_taken_for_that_to_a_later_one() -> None:
    """The same identity came back on another connection and asked something else."""
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.ping("mail")
    worker.hear()
    first = req_client(broker)
    first.task("old")
    ((given, _),) = worker.tasks()
    first.end.leave()
    again = req_client(broker)
    worker.ping()
    worker.hear()
    again.task("new")
    ((fresh, _),) = worker.tasks()
    worker.reply(given, b"old answer")
    assert again.hear() == []
    worker.reply(fresh, b"new answer")
    assert again.results() == [("new", b"new answer")]


def test_a_wrong_version_is_reported_without_forcenegotiate() -> None:
    broker = InMemoryBroker()
    worker = req_worker(broker)
    worker.ping("mail", config_version="old")
    assert worker.words() == ["ERROR"]


def test_a_pushed_configuration_waits_for_the_next_message() -> None:
    broker = InMemoryBroker()
    worker, client = req_worker(broker), new_client(broker)
    worker.ping("mail")
    assert worker.words() == ["PONG"]
    configure(broker, b"broker\n    identity = other\n")
    assert worker.hear() == []
    client.task(1)
    worker.ping()
    assert worker.words() == ["CONFIG"]
    worker.ping()
    assert worker.words() == ["TASK"]


def test_being_sent_away_waits_for_the_next_message_and_is_one_word() -> None:
    broker = InMemoryBroker()
    worker, lonely = req_worker(broker), req_client(broker)
    configure(broker, b"broker\n    peers\n        broker = tcp://127.0.0.1:9\n            services = mail\n")
    worker.ping("mail")
    worker.hear()
    lonely.ping()
    lonely.hear()
    broker.core.refusing = DRAINING
    broker.dialects.scale0.draining()
    assert worker.hear() == lonely.hear() == []
    worker.ping()
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://127.0.0.1:9"
    lonely.task(1, "mail")
    assert lonely.errors() == [301]


@pytest.mark.parametrize(
    "frames",
    [
        [b"NONSENSE"], [b""], [b"TASK"], [b"TASK", b"{"], [b"TASK", b"text"], [b"TASKREPLY"], [b"PING", b"{]"], [b"PING"],
        [b"CONNECT"], [b"CONNECT", b'{"config_type":"YAML"}'], [b"NEEDBROKER"], [b"PING", b"1794774074.79"],
        [b"PING", b"tcp://h:1 a 1"], [b"READY", b"a"], [b"READY", b"tcp://h:1 a"], [b"HEARTBEAT", b"1"], [b"PONG", b"1"],
        [b"ERROR", b"{}"],
    ],
)  # fmt: skip
@pytest.mark.parametrize("listener", ["scale0.client", "scale0.worker"])
def test_every_message_whatever_it_is_gets_one_answer(frames: list[bytes], listener: str) -> None:
    broker = InMemoryBroker()
    peer = Peer(broker, listener, b"req", b"REQ")
    peer.say(*frames)
    assert len(peer.hear()) == 1
    broker.pass_time(3)
    assert peer.hear() == []


LARGE = b"x" * 1000


def large_on_disk(*bodies: bytes) -> InMemoryBroker:
    """A broker that reads these tasks back from disk in steps of 100 bytes."""
    settings = CoreSettings()
    settings.load_step_size = 100
    broker = InMemoryBroker(settings)
    broker.read_whole_size = 300
    client = new_client(broker)
    for number, body in enumerate(bodies):
        client.task(number, body=body)
    return restart(broker, by_checkpoint=False)


def test_a_ping_is_answered_by_the_task_once_its_large_body_is_read_from_disk() -> None:
    broker = large_on_disk(LARGE + b"1", LARGE + b"2")
    worker = req_worker(broker)
    worker.ping("mail")
    assert worker.hear() == []
    assert broker.go_on() >= len(LARGE) // 100
    ((first, body),) = worker.tasks()
    assert body == LARGE + b"1"
    worker.reply(first)
    broker.go_on()
    assert [body for _, body in worker.tasks()] == [LARGE + b"2"]
    broker.pass_time(6.0)
    assert worker.hear() == []
    check_replay(broker)


def test_a_body_that_takes_longer_to_read_than_the_worker_waits_is_its_answer_to_a_later_ping() -> None:
    broker = large_on_disk(LARGE)
    worker = req_worker(broker)
    worker.ping("mail", heartbeat_interval=2)
    for _ in range(4):
        broker.core.roster.go_on()
    broker.pass_time(0.9)
    assert worker.hear() == []
    broker.pass_time(0.2)
    assert worker.words() == ["PONG"]
    broker.go_on()
    assert worker.hear() == []
    worker.ping()
    assert [body for _, body in worker.tasks()] == [LARGE]


def test_a_ping_is_answered_soon_when_the_task_that_was_read_for_it_is_cancelled() -> None:
    broker = large_on_disk(LARGE)
    worker = req_worker(broker)
    worker.ping("mail")
    broker.core.roster.go_on()
    (message,) = broker.core.state.messages.values()
    broker.core.cancel(message, BY_CLIENT)
    broker.go_on()
    broker.pass_time(0.2)
    assert worker.words() == ["PONG"]
    broker.pass_time(6.0)
    new_client(broker).task(5)
    assert worker.hear() == []


def test_a_ping_during_the_wait_for_a_task_is_a_second_one_and_both_are_answered() -> None:
    broker = large_on_disk(LARGE)
    worker = req_worker(broker)
    worker.ping("mail")
    worker.ping()
    broker.go_on()
    assert worker.words() == ["PONG", "TASK"]


def test_a_worker_that_waits_for_a_task_is_sent_away_when_the_broker_stops() -> None:
    broker = large_on_disk(LARGE)
    worker = req_worker(broker)
    worker.ping("mail")
    broker.core.refusing = DRAINING
    broker.core.dispatch.is_stopped = True
    broker.dialects.scale0.draining()
    broker.go_on()
    broker.pass_time(0.2)
    assert len(worker.hear()) == 1
