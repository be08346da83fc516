"""CONNECT, CONFIG, versions, clocks, bans, other brokers: on which terms a peer is served."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dragoman.dialects.scale0.configuration.documents import parse
from tests.core.harness import House
from tests.dialects.scale0.stall import Peer, client, configure, notes, pinged, worker

SHOP = b"""\
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
    house = House()
    configure(house, SHOP)
    servant = worker(house, b"w1")
    servant.send("CONNECT", config_type=config_type, services=["other"])
    header, document = servant.one("CONFIG")
    version = house.dialects.scale0.documents.version
    assert header == {"config_type": config_type.upper(), "config_version": version, "load": 1.0}
    tree = parse(header["config_type"].encode(), document)
    assert tree.text("identity") == "w1"
    assert tree.texts("services") == ["mail", "thumbs"]
    assert tree.text("prefered_broker") == "tcp://127.0.0.1:8081"
    assert tree.text("default_heartbeat_interval") == "2"
    assert tree.first("family_config").text("quality") == "high # very"


def test_connect_without_a_word_is_answered_in_json_with_what_was_offered() -> None:
    house = House()
    servant = worker(house, b"")
    servant.send("CONNECT", services=["mail"], identity="fresh")
    header, document = servant.one("CONFIG")
    assert header["config_type"] == "JSON"
    assert json.loads(document) == {"identity": "fresh", "default_heartbeat_interval": "10", "services": "mail"}


@pytest.mark.parametrize("command", ["CONNECT", "NEEDBROKER"])
def test_one_who_offers_more_services_than_a_worker_may_serve_is_told_so(command: str) -> None:
    house = House()
    servant = worker(house)
    servant.send(command, services=[f"s{number}" for number in range(1001)])
    assert servant.errors() == [501]
    servant.send("CONNECT", services=["mail"])
    assert json.loads(servant.one("CONFIG")[1])["services"] == "mail"


def test_a_changed_configuration_reaches_hundreds_of_peers_within_some_sweeps() -> None:
    house = House()
    peers = [worker(house, b"w%d" % number) for number in range(250)]
    for peer in peers:
        peer.send("CONNECT")
        peer.one("CONFIG")
    configure(house, SHOP)
    for _ in range(3):
        house.dialects.scale0.sweep(house.core.now_ns)
    for peer in peers:
        assert peer.one("CONFIG")[0]["config_version"] == house.dialects.scale0.documents.version


def test_an_unknown_config_type_is_not_implemented() -> None:
    house = House()
    servant = worker(house)
    servant.send("CONNECT", config_type="YAML")
    assert servant.errors() == [501]


def test_what_a_named_worker_serves_comes_from_the_configuration() -> None:
    house = House()
    configure(house, SHOP)
    servant, master = worker(house, b"w1"), client(house)
    servant.ping("other")
    servant.hear()
    master.task(1, "other")
    assert servant.tasks() == []
    master.task(2, "thumbs")
    assert len(servant.tasks()) == 1


def test_a_worker_may_name_itself_in_its_header() -> None:
    house = House()
    configure(house, SHOP)
    servant, master = worker(house, b"\x00\xff"), client(house)
    servant.send("CONNECT", identity="w1")
    servant.hear()
    servant.ping()
    servant.hear()
    master.task(1, "mail")
    assert len(servant.tasks()) == 1


def test_a_changed_configuration_is_pushed_to_every_peer_in_its_notation() -> None:
    house = House()
    by_xml, by_ping, asker, silent = worker(house, b"w1"), worker(house, b"w2"), client(house), worker(house, b"w3")
    by_xml.send("CONNECT", config_type="XML")
    by_ping.ping("mail")
    asker.ping()
    for peer in (by_xml, by_ping, asker):
        peer.hear()
    configure(house, SHOP)
    assert by_xml.one("CONFIG")[0]["config_type"] == "XML"
    assert by_ping.one("CONFIG")[0]["config_type"] == "JSON"
    assert asker.one("CONFIG")[0]["config_version"] == house.dialects.scale0.documents.version
    assert silent.hear() == []  # it may be a legacy one, which knows no CONFIG
    configure(house, SHOP)
    assert by_xml.hear() == []  # nothing has changed


def test_a_changed_configuration_moves_a_worker_to_its_new_services_at_once() -> None:
    house = House()
    servant, master = pinged(house, "mail", identity=b"w1"), client(house)
    master.task(1, "thumbs")
    configure(house, SHOP)
    assert [frames[0] for frames in servant.hear()] == [b"CONFIG", b"TASK"]


def test_a_ping_of_another_version_is_refused_and_does_not_join_the_line() -> None:
    house = House()
    servant, master = worker(house), client(house)
    master.task(1)
    servant.ping("mail", config_version="older")
    assert servant.words() == ["ERROR", "FORCENEGOTIATE"]
    assert notes(house) == {"SCALE0_WRONG_VERSION": 1}
    servant.send("CONNECT", services=["mail"])
    header, _ = servant.one("CONFIG")
    servant.ping("mail", config_version=header["config_version"])
    assert sorted(servant.words()) == ["PONG", "TASK"]


def test_the_configuration_a_worker_goes_by_is_known_from_what_it_was_told_and_what_it_says() -> None:
    house = House()
    servant = worker(house, b"w")
    assert servant.session.config_version == b""
    servant.send("CONNECT", services=["mail"])
    version = house.dialects.scale0.documents.version.encode()
    assert servant.session.config_version == version
    servant.ping("mail", config_version="older")
    assert servant.session.config_version == b"older"
    servant.ping("mail", config_version=version.decode())
    assert servant.session.config_version == version


def test_a_reply_of_another_version_counts_and_is_told() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.reply(given, config_version=3)
    assert servant.words() == ["ERROR", "FORCENEGOTIATE"]
    assert master.results() == [(1, b"done")]


def test_the_old_spelling_of_the_version_is_understood() -> None:
    house = House()
    servant = worker(house)
    servant.ping("mail", configversion="older")
    assert servant.errors() == [426]


@pytest.mark.parametrize("skew_s", [-30.5, 31, 1e6, -1e12])
def test_a_worker_whose_clock_is_off_is_told_by_how_much_and_dropped(skew_s: float) -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    servant.hear()
    servant.ping("mail", time=house.now_ns / 1e9 + skew_s)
    header, _ = servant.one("ERROR")
    assert header["code"] == 503
    if abs(skew_s) < 1e7:
        assert f"{skew_s:+.3f} s" in header["reason"]
    assert servant.session in house.outboxes.finished
    assert [fact["reason"] for fact in house.facts("worker_left")] == ["protocol_fault"]
    assert house.core.state.queues[b"mail"].waiting + house.core.state.queues[b"mail"].delayed == 1


@pytest.mark.parametrize("skew_s", [-29.5, 0, 29.5])
def test_a_clock_within_the_tolerance_is_right(skew_s: float) -> None:
    house = House()
    servant = worker(house)
    servant.ping("mail", time=house.now_ns / 1e9 + skew_s)
    assert servant.words() == ["PONG"]


def test_a_skewed_clients_task_is_not_taken() -> None:
    house = House()
    master = client(house)
    master.task("a", time=12)
    header, _ = master.one("ERROR")
    assert (header["code"], header["id"]) == (503, "a")
    assert house.facts("accepted") == []


def test_a_reply_from_a_skewed_clock_still_counts() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.reply(given, time=1)
    assert servant.errors() == [503]
    assert master.results() == [(1, b"done")]


def test_a_worker_silent_for_three_of_its_intervals_leaves_the_line_and_a_ping_brings_it_back() -> None:
    house = House()
    servant, master = worker(house), client(house)
    servant.ping("mail", heartbeat_interval=0.5)
    servant.hear()
    house.pass_time(1.4)
    servant.ping(busy=True, heartbeat_interval=0.5)
    house.pass_time(1.4)
    assert house.facts("worker_left") == []
    house.pass_time(0.3)
    assert [fact["reason"] for fact in house.facts("worker_left")] == ["heartbeat_lost"]
    master.task(1)
    assert servant.tasks() == []
    servant.ping()
    assert len(servant.tasks()) == 1


def test_a_worker_that_holds_a_task_may_be_silent() -> None:
    house = House()
    servant, master = worker(house), client(house)
    servant.ping("mail", heartbeat_interval=0.5)
    master.task(1)
    ((given, _),) = servant.tasks()
    servant.ping()
    house.pass_time(60)
    master.task(2)
    assert servant.tasks() == []  # its place in the line is gone
    servant.reply(given)
    assert master.results() == [(1, b"done")]


def test_the_configurations_interval_holds_for_a_worker_that_says_none() -> None:
    house = House()
    configure(house, SHOP)
    pinged(house)
    house.pass_time(5.9)
    assert house.facts("worker_left") == []
    house.pass_time(0.3)
    assert len(house.facts("worker_left")) == 1


@pytest.mark.parametrize("interval", [0, -1, 1e9, "often"])
def test_an_interval_that_cannot_be_is_not_understood(interval: Any) -> None:
    house = House()
    servant = worker(house)
    servant.ping("mail", heartbeat_interval=interval)
    assert servant.errors() == [501]


@pytest.mark.parametrize(
    "frames",
    [
        [b"NONSENSE", b"{}"], [b""], [b"TASK"], [b"TASK", b'{"id":1}'], [b"TASK", b"{not json}"], [b"TASK", b"[1]"],
        [b"PING", b'{"time":"noon"}'], [b"TASK", b'{"id":{},"service":"a"}'], [b"TASK", b'{"service":7}'],
        [b"task", b'{"id":1,"service":"a"}'], [b"\xff\xfe", b"\x00"], [b"PONG", b"{}"], [b"CONFIG", b"{}", b"x"],
    ],
)  # fmt: skip
def test_what_means_nothing_here_is_not_implemented(frames: list[bytes]) -> None:
    house = House()
    peer = client(house)
    peer.say(*frames)
    assert peer.errors() == [501]


def test_a_client_that_sends_taskreply_is_told_that_it_may_not() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    master.reply(given, b"my own answer")
    header, _ = master.one("ERROR")
    assert (header["code"], header["id"]) == (501, given)


def abuse(peer: Peer, times: int) -> None:
    for _ in range(times):
        peer.say(b"NONSENSE")


def test_one_who_goes_on_with_nonsense_is_told_once_that_it_is_hostile_and_then_not_heard_for_a_while() -> None:
    house = House()
    peer, bystander = pinged(house, identity=b"rude"), pinged(house, identity=b"kind")
    abuse(peer, 14)
    assert peer.errors() == [501] * 10 + [444]
    peer.ping("mail")
    assert peer.hear() == []
    assert [fact["reason"] for fact in house.facts("worker_left")] == ["protocol_fault"]
    bystander.ping()
    assert bystander.words() == ["PONG"]
    house.pass_time(61)
    peer.ping("mail")
    assert peer.words() == ["PONG"]


def test_a_ban_survives_a_reconnect_under_the_same_identity_from_the_same_host() -> None:
    house = House()
    abuse(client(house, b"rude"), 11)
    again, other = client(house, b"rude"), client(house, b"other")
    again.ping()
    other.ping()
    assert again.hear() == []
    assert other.words() == ["PONG"]


def test_offences_far_apart_are_no_abuse() -> None:
    house = House()
    peer = client(house)
    for _ in range(30):
        abuse(peer, 1)
        house.pass_time(7)
    assert set(peer.errors()) == {501}


def test_a_worker_whose_configuration_names_no_services_any_more_leaves_the_line() -> None:
    house = House()
    configure(house, SHOP)
    servant, master = worker(house, b"w1"), client(house)
    servant.ping()
    master.task(1, "thumbs")
    ((task_id, _),) = servant.tasks()
    servant.ping()
    configure(house, b"broker\n    identity = main\n")
    servant.hear()
    master.task(2, "thumbs")
    assert servant.tasks() == []
    servant.reply(task_id)
    assert master.results() == [(1, b"done")]
    servant.ping("thumbs")
    assert len(servant.tasks()) == 1
