"""NEEDBROKER, CHANGEBROKER, 301: a broker among others."""

from __future__ import annotations

import json

import pytest

from dragoman.dialects.scale0.configuration.documents import Documents, parse
from dragoman.errors import BadDocument
from dragoman.model.words import DRAINING
from tests.core.harness import House
from tests.dialects.scale0.stall import client, configure, pinged, worker

FLEET = b"""\
broker
    address = tcp://h1:8081
    client = tcp://h1:8080
    family = blue
    fallback_families = green
    peers
        broker = tcp://h2:8081
            client = tcp://h2:8080
            services = mail, thumbs
            load = 0.5
        broker = tcp://h3:8081
            services = mail
            load = 0.2
        broker = tcp://h4:8081
            load = 0
            state = refusing
        broker = tcp://h5:8081
            services = rare
            family = green
            load = 0.9
        broker = tcp://h6:8081
            services = rare
            family = red
"""


def test_needbroker_names_the_least_loaded_broker_that_serves_all_of_it() -> None:
    house = House()
    configure(house, FLEET)
    servant, asker = worker(house), client(house)
    servant.send("NEEDBROKER", identity="w9", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h3:8081"
    servant.send("NEEDBROKER", identity="w9", services=["mail", "thumbs"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    asker.send("NEEDBROKER", services=["mail", "thumbs"])
    assert asker.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8080"


def test_a_fallback_family_comes_before_strangers_whatever_their_load() -> None:
    house = House()
    configure(house, FLEET.replace(b"    address", b"    services = none\n    address"))
    servant = worker(house)
    servant.send("NEEDBROKER", services=["rare"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h5:8081"


def test_needbroker_may_name_this_broker_itself_while_it_has_room() -> None:
    house = House()
    configure(house, FLEET)
    servant = pinged(house, identity=b"idle")
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h1:8081"


def test_a_broker_that_did_not_answer_is_not_named_and_a_told_load_counts() -> None:
    house = House()
    configure(house, FLEET)
    servant = worker(house)
    house.dialects.scale0.heard_of("tcp://h3:8081", False, -1.0)
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    configure(house, FLEET + b"worker\n    identity = w\n")
    servant.hear()
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"  # a reload does not bring it back to life
    house.dialects.scale0.heard_of("tcp://h3:8081", True, 0.9)
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    house.dialects.scale0.heard_of("tcp://h3:8081", True, 0.1)
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.one("CHANGEBROKER")[0]["broker"] == "tcp://h3:8081"


@pytest.mark.parametrize("address", ["", "h2:8081", "tcp://h2", "tcp://:1", "tcp://h:99999", "tcp://h:x", "tcp://h:²"])
def test_a_fleet_entry_without_an_address_is_refused(address: str) -> None:
    tree = parse(b"ZFL", f"broker\n    peers\n        broker = {address}\n".encode())
    with pytest.raises(BadDocument):
        Documents(tree, 1.0)


@pytest.mark.parametrize("line", ["load = 2", "load = much"])
def test_a_load_that_cannot_be_is_refused(line: str) -> None:
    tree = parse(b"ZFL", f"broker\n    peers\n        broker = tcp://h:1\n            {line}\n".encode())
    with pytest.raises(BadDocument):
        Documents(tree, 1.0)


def test_needbroker_without_a_broker_is_unavailable() -> None:
    house = House()
    servant = worker(house)
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.errors() == [503]


def test_a_refusing_broker_takes_nobody_and_nothing_but_answers_needbroker() -> None:
    house = House()
    configure(house, b"broker\n    state = refusing\n    peers\n        broker = tcp://h2:8081\n")
    peer = client(house)
    peer.send("CONNECT")
    assert peer.errors() == [503]
    peer.task(1)
    assert peer.errors() == [503]
    peer.send("NEEDBROKER")
    assert peer.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"


def test_a_draining_broker_sends_everybody_elsewhere() -> None:
    house = House()
    configure(house, FLEET)
    servant, master = pinged(house), client(house)
    house.core.refusing = DRAINING
    house.core.dispatch.is_stopped = True
    house.dialects.scale0.draining()
    for peer in (servant, master):
        assert peer.words() == ["ERROR", "CHANGEBROKER"]
    master.task("late")
    error, change = master.hear()
    assert json.loads(error[1])["code"] == 301
    assert json.loads(error[1])["id"] == "late"
    assert json.loads(change[1])["broker"] == "tcp://h3:8081"
    servant.send("NEEDBROKER", services=["mail"])
    assert servant.words() == ["ERROR", "CHANGEBROKER"]
    servant.send("CONNECT")
    assert servant.words() == ["ERROR", "CHANGEBROKER"]


def test_a_draining_broker_still_takes_replies() -> None:
    house = House()
    servant, master = pinged(house), client(house)
    master.task(1)
    ((given, _),) = servant.tasks()
    house.core.refusing = DRAINING
    house.dialects.scale0.draining()
    master.hear()
    servant.reply(given)
    assert master.results() == [(1, b"done")]
