"""A REQ socket gets exactly one answer to each of its messages, whatever there would be to say besides."""

from __future__ import annotations

import pytest

from dragoman.model.words import DRAINING
from tests.core.harness import House
from tests.dialects.scale0.stall import Peer, client, configure, worker


def req_worker(house: House, identity: bytes = b"req") -> Peer:
    return worker(house, identity, b"REQ")


def req_client(house: House, identity: bytes = b"asker") -> Peer:
    return client(house, identity, b"REQ")


def test_a_ping_is_answered_by_pong_when_nothing_waits_and_a_later_task_does_not_come_by_itself() -> None:
    house = House()
    servant, master = req_worker(house), client(house)
    servant.ping("mail")
    assert servant.words() == ["PONG"]
    master.task(1)
    assert servant.hear() == []
    servant.ping()
    assert len(servant.tasks()) == 1


def test_a_taskreply_is_answered_by_the_next_task_or_by_pong() -> None:
    house = House()
    servant, master = req_worker(house), client(house)
    master.task(1)
    master.task(2)
    servant.ping("mail")
    ((first, _),) = servant.tasks()
    servant.reply(first)
    ((second, _),) = servant.tasks()
    servant.reply(second)
    assert servant.words() == ["PONG"]
    assert master.results() == [(1, b"done"), (2, b"done")]


def test_a_late_taskreply_is_answered_too() -> None:
    house = House()
    servant = req_worker(house)
    servant.ping("mail")
    assert servant.words() == ["PONG"]
    servant.reply("nosuch")
    assert servant.words() == ["PONG"]


def test_a_busy_ping_is_answered_by_pong_although_a_task_waits() -> None:
    house = House()
    servant, master = req_worker(house), client(house)
    master.task(1)
    servant.ping("mail", busy=True)
    assert servant.words() == ["PONG"]


def test_a_task_is_answered_by_its_reply_alone() -> None:
    house = House()
    servant, master = worker(house), req_client(house)
    servant.ping("mail")
    servant.hear()
    master.task("a")
    assert master.hear() == []
    ((given, _),) = servant.tasks()
    servant.reply(given)
    assert master.results() == [("a", b"done")]


def test_the_reply_to_an_earlier_task_is_not_taken_for_that_to_a_later_one() -> None:
    """The same identity came back on another connection and asked something else."""
    house = House()
    servant = worker(house)
    servant.ping("mail")
    servant.hear()
    first = req_client(house)
    first.task("old")
    ((given, _),) = servant.tasks()
    first.end.leave()
    again = req_client(house)
    servant.ping()
    servant.hear()
    again.task("new")
    ((fresh, _),) = servant.tasks()
    servant.reply(given, b"old answer")
    assert again.hear() == []
    servant.reply(fresh, b"new answer")
    assert again.results() == [("new", b"new answer")]


def test_a_wrong_version_is_told_without_forcenegotiate() -> None:
    house = House()
    servant = req_worker(house)
    servant.ping("mail", config_version="old")
    assert servant.words() == ["ERROR"]


def test_a_pushed_configuration_waits_for_the_next_message() -> None:
    house = House()
    servant, master = req_worker(house), client(house)
    servant.ping("mail")
    assert servant.words() == ["PONG"]
    configure(house, b"broker\n    identity = other\n")
    assert servant.hear() == []
    master.task(1)
    servant.ping()
    assert servant.words() == ["CONFIG"]
    servant.ping()
    assert servant.words() == ["TASK"]


def test_being_sent_away_waits_for_the_next_message_and_is_one_word() -> None:
    house = House()
    servant, lonely = req_worker(house), req_client(house)
    configure(house, b"broker\n    peers\n        broker = tcp://127.0.0.1:9\n            services = mail\n")
    servant.ping("mail")
    servant.hear()
    lonely.ping()
    lonely.hear()
    house.core.refusing = DRAINING
    house.dialects.scale0.draining()
    assert servant.hear() == lonely.hear() == []
    servant.ping()
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://127.0.0.1:9"
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
    house = House()
    peer = Peer(house, listener, b"req", b"REQ")
    peer.say(*frames)
    assert len(peer.hear()) == 1
    house.pass_time(3)
    assert peer.hear() == []
