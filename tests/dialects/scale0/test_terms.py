"""CONNECT, CONFIG, versions, clocks, bans, other brokers: on which terms a peer is served."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.scale0.configuration.notations import parse
from tests.core.harness import InMemoryBroker
from tests.dialects.scale0.in_memory import Peer, configure, new_client, new_worker, notes, pinged

CONFIGURATION = b"""\
broker
    identity = main
    default_heartbeat_interval = 2
worker
    identity = w1
    services = mail
    services = thumbs
    family_config = blue
    prefered_broker = tcp://127.0.0.1:8081
family = blue
    quality = 'high # very'
"""


@pytest.mark.parametrize("config_type", ["JSON", "XML", "ZFL", "json"])
def test_connect_is_answered_by_the_configuration_in_the_asked_notation(config_type: str) -> None:
    broker = InMemoryBroker()
    configure(broker, CONFIGURATION)
    worker = new_worker(broker, b"w1")
    worker.send("CONNECT", config_type=config_type, services=["other"])
    header, document = worker.one("CONFIG")
    version = broker.dialects.scale0.documents.version
    assert header == {"config_type": config_type.upper(), "config_version": version, "load": 1.0}
    tree = parse(header["config_type"].encode(), document)
    assert tree.text("identity") == "w1"
    assert tree.texts("services") == ["mail", "thumbs"]
    assert tree.text("prefered_broker") == "tcp://127.0.0.1:8081"
    assert tree.text("default_heartbeat_interval") == "2"
    assert tree.first("family_config").text("quality") == "high # very"


def test_connect_without_a_word_is_answered_in_json_with_what_was_offered() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker, b"")
    worker.send("CONNECT", services=["mail"], identity="fresh")
    header, document = worker.one("CONFIG")
    assert header["config_type"] == "JSON"
    assert json.loads(document) == {"identity": "fresh", "default_heartbeat_interval": "10", "services": "mail"}


@pytest.mark.parametrize("command", ["CONNECT", "NEEDBROKER"])
def test_a_worker_that_offers_more_services_than_allowed_is_notified(command: str) -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.send(command, services=[f"s{number}" for number in range(1001)])
    assert worker.errors() == [501]
    worker.send("CONNECT", services=["mail"])
    assert json.loads(worker.one("CONFIG")[1])["services"] == "mail"


def test_a_changed_configuration_reaches_hundreds_of_peers_within_some_sweeps() -> None:
    broker = InMemoryBroker()
    peers = [new_worker(broker, b"w%d" % number) for number in range(250)]
    for peer in peers:
        peer.send("CONNECT")
        peer.one("CONFIG")
    configure(broker, CONFIGURATION)
    for _ in range(3):
        broker.dialects.scale0.sweep(broker.core.now_ns)
    for peer in peers:
        assert peer.one("CONFIG")[0]["config_version"] == broker.dialects.scale0.documents.version


def test_an_unknown_config_type_is_not_implemented() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.send("CONNECT", config_type="YAML")
    assert worker.errors() == [501]


def test_what_a_named_worker_serves_comes_from_the_configuration() -> None:
    broker = InMemoryBroker()
    configure(broker, CONFIGURATION)
    worker, client = new_worker(broker, b"w1"), new_client(broker)
    worker.ping("other")
    worker.hear()
    client.task(1, "other")
    assert worker.tasks() == []
    client.task(2, "thumbs")
    assert len(worker.tasks()) == 1


def test_a_worker_may_name_itself_in_its_header() -> None:
    broker = InMemoryBroker()
    configure(broker, CONFIGURATION)
    worker, client = new_worker(broker, b"\x00\xff"), new_client(broker)
    worker.send("CONNECT", identity="w1")
    worker.hear()
    worker.ping()
    worker.hear()
    client.task(1, "mail")
    assert len(worker.tasks()) == 1


def test_a_changed_configuration_is_pushed_to_every_peer_in_its_notation() -> None:
    broker = InMemoryBroker()
    by_xml, by_ping, other_client, silent = (
        new_worker(broker, b"w1"),
        new_worker(broker, b"w2"),
        new_client(broker),
        new_worker(broker, b"w3"),
    )
    by_xml.send("CONNECT", config_type="XML")
    by_ping.ping("mail")
    other_client.ping()
    for peer in (by_xml, by_ping, other_client):
        peer.hear()
    configure(broker, CONFIGURATION)
    assert by_xml.one("CONFIG")[0]["config_type"] == "XML"
    assert by_ping.one("CONFIG")[0]["config_type"] == "JSON"
    assert other_client.one("CONFIG")[0]["config_version"] == broker.dialects.scale0.documents.version
    assert silent.hear() == []  # it may be a legacy one, which knows no CONFIG
    configure(broker, CONFIGURATION)
    assert by_xml.hear() == []  # nothing has changed


def test_a_changed_configuration_moves_a_worker_to_its_new_services_at_once() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker, "mail", identity=b"w1"), new_client(broker)
    client.task(1, "thumbs")
    configure(broker, CONFIGURATION)
    assert [frames[0] for frames in worker.hear()] == [b"CONFIG", b"TASK"]


def test_a_ping_of_another_version_is_refused_and_does_not_join_the_line() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), new_client(broker)
    client.task(1)
    worker.ping("mail", config_version="older")
    assert worker.words() == ["ERROR", "FORCENEGOTIATE"]
    assert notes(broker) == {"SCALE0_WRONG_VERSION": 1}
    worker.send("CONNECT", services=["mail"])
    header, _ = worker.one("CONFIG")
    worker.ping("mail", config_version=header["config_version"])
    assert sorted(worker.words()) == ["PONG", "TASK"]


def test_the_configuration_of_a_worker_is_known_from_what_it_was_sent_and_what_it_sends() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker, b"w")
    assert worker.session.config_version == b""
    worker.send("CONNECT", services=["mail"])
    version = broker.dialects.scale0.documents.version.encode()
    assert worker.session.config_version == version
    worker.ping("mail", config_version="older")
    assert worker.session.config_version == b"older"
    worker.ping("mail", config_version=version.decode())
    assert worker.session.config_version == version


def test_a_reply_of_another_version_counts_and_is_logged() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.reply(given, config_version=3)
    assert worker.words() == ["ERROR", "FORCENEGOTIATE"]
    assert client.results() == [(1, b"done")]


def test_the_old_spelling_of_the_version_is_understood() -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.ping("mail", configversion="older")
    assert worker.errors() == [426]


@pytest.mark.parametrize("skew_s", [-30.5, 31, 1e6, -1e12])
def test_a_worker_whose_clock_is_off_gets_the_difference_and_is_dropped(skew_s: float) -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    worker.hear()
    worker.ping("mail", time=broker.now_ns / 1e9 + skew_s)
    header, _ = worker.one("ERROR")
    assert header["code"] == 503
    if abs(skew_s) < 1e7:
        assert f"{skew_s:+.3f} s" in header["reason"]
    assert worker.session in broker.outboxes.finished
    assert [fact["reason"] for fact in broker.facts("worker_left")] == ["protocol_fault"]
    assert broker.core.state.queues[b"mail"].waiting + broker.core.state.queues[b"mail"].delayed == 1


@pytest.mark.parametrize("skew_s", [-29.5, 0, 29.5])
def test_a_clock_within_the_tolerance_is_right(skew_s: float) -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.ping("mail", time=broker.now_ns / 1e9 + skew_s)
    assert worker.words() == ["PONG"]


def test_a_skewed_clients_task_is_not_taken() -> None:
    broker = InMemoryBroker()
    client = new_client(broker)
    client.task("a", time=12)
    header, _ = client.one("ERROR")
    assert (header["code"], header["id"]) == (503, "a")
    assert broker.facts("accepted") == []


def test_a_reply_from_a_skewed_clock_still_counts() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.reply(given, time=1)
    assert worker.errors() == [503]
    assert client.results() == [(1, b"done")]


def test_a_worker_silent_for_three_of_its_intervals_leaves_the_line_and_a_ping_brings_it_back() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), new_client(broker)
    worker.ping("mail", heartbeat_interval=0.5)
    worker.hear()
    broker.pass_time(1.4)
    worker.ping(busy=True, heartbeat_interval=0.5)
    broker.pass_time(1.4)
    assert broker.facts("worker_left") == []
    broker.pass_time(0.3)
    assert [fact["reason"] for fact in broker.facts("worker_left")] == ["heartbeat_lost"]
    client.task(1)
    assert worker.tasks() == []
    worker.ping()
    assert len(worker.tasks()) == 1


def test_a_worker_that_holds_a_task_may_be_silent() -> None:
    broker = InMemoryBroker()
    worker, client = new_worker(broker), new_client(broker)
    worker.ping("mail", heartbeat_interval=0.5)
    client.task(1)
    ((given, _),) = worker.tasks()
    worker.ping()
    broker.pass_time(60)
    client.task(2)
    assert worker.tasks() == []  # its place in the line is gone
    worker.reply(given)
    assert client.results() == [(1, b"done")]


def test_the_configurations_interval_holds_for_a_worker_that_says_none() -> None:
    broker = InMemoryBroker()
    configure(broker, CONFIGURATION)
    pinged(broker)
    broker.pass_time(5.9)
    assert broker.facts("worker_left") == []
    broker.pass_time(0.3)
    assert len(broker.facts("worker_left")) == 1


@pytest.mark.parametrize("interval", [0, -1, 1e9, "often"])
def test_an_interval_that_cannot_be_is_not_understood(interval: Any) -> None:
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.ping("mail", heartbeat_interval=interval)
    assert worker.errors() == [501]


@pytest.mark.parametrize(
    "frames",
    [
        [b"NONSENSE", b"{}"], [b""], [b"TASK"], [b"TASK", b'{"id":1}'], [b"TASK", b"{not json}"], [b"TASK", b"[1]"],
        [b"PING", b'{"time":"noon"}'], [b"TASK", b'{"id":{},"service":"a"}'], [b"TASK", b'{"service":7}'],
        [b"task", b'{"id":1,"service":"a"}'], [b"\xff\xfe", b"\x00"], [b"PONG", b"{}"], [b"CONFIG", b"{}", b"x"],
    ],
)  # fmt: skip
def test_what_means_nothing_here_is_not_implemented(frames: list[bytes]) -> None:
    broker = InMemoryBroker()
    peer = new_client(broker)
    peer.say(*frames)
    assert peer.errors() == [501]


def test_a_client_that_sends_taskreply_is_notified_that_it_may_not() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    client.reply(given, b"my own answer")
    header, _ = client.one("ERROR")
    assert (header["code"], header["id"]) == (501, given)


def abuse(peer: Peer, times: int) -> None:
    for _ in range(times):
        peer.say(b"NONSENSE")


def test_a_peer_that_goes_on_with_nonsense_is_notified_once_that_it_is_hostile_and_then_ignored_for_a_while() -> None:
    broker = InMemoryBroker()
    peer, bystander = pinged(broker, identity=b"rude"), pinged(broker, identity=b"kind")
    abuse(peer, 14)
    assert peer.errors() == [501] * 10 + [444]
    peer.ping("mail")
    assert peer.hear() == []
    assert [fact["reason"] for fact in broker.facts("worker_left")] == ["protocol_fault"]
    bystander.ping()
    assert bystander.words() == ["PONG"]
    broker.pass_time(61)
    peer.ping("mail")
    assert peer.words() == ["PONG"]


def test_a_ban_survives_a_reconnect_under_the_same_identity_from_the_same_host() -> None:
    broker = InMemoryBroker()
    abuse(new_client(broker, b"rude"), 11)
    again, other = new_client(broker, b"rude"), new_client(broker, b"other")
    again.ping()
    other.ping()
    assert again.hear() == []
    assert other.words() == ["PONG"]


def test_offences_far_apart_are_no_abuse() -> None:
    broker = InMemoryBroker()
    peer = new_client(broker)
    for _ in range(30):
        abuse(peer, 1)
        broker.pass_time(7)
    assert set(peer.errors()) == {501}


def test_a_worker_whose_configuration_names_no_services_any_more_leaves_the_line() -> None:
    broker = InMemoryBroker()
    configure(broker, CONFIGURATION)
    worker, client = new_worker(broker, b"w1"), new_client(broker)
    worker.ping()
    client.task(1, "thumbs")
    ((task_id, _),) = worker.tasks()
    worker.ping()
    configure(broker, b"broker\n    identity = main\n")
    worker.hear()
    client.task(2, "thumbs")
    assert worker.tasks() == []
    worker.reply(task_id)
    assert client.results() == [(1, b"done")]
    worker.ping("thumbs")
    assert len(worker.tasks()) == 1
