"""NEEDBROKER, CHANGEBROKER, 301: a broker among others."""

from __future__ import annotations

import json

import pytest

from dragoman.dialects.scale0.configuration.documents import Documents
from dragoman.dialects.scale0.configuration.notations import parse
from dragoman.errors import BadDocument
from dragoman.model.enums import DRAINING
from tests.core.harness import InMemoryBroker
from tests.dialects.scale0.in_memory import configure, new_client, new_worker, pinged

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
    broker = InMemoryBroker()
    configure(broker, FLEET)
    worker, other_client = new_worker(broker), new_client(broker)
    worker.send("NEEDBROKER", identity="w9", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h3:8081"
    worker.send("NEEDBROKER", identity="w9", services=["mail", "thumbs"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    other_client.send("NEEDBROKER", services=["mail", "thumbs"])
    assert other_client.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8080"


def test_a_fallback_family_comes_before_strangers_whatever_their_load() -> None:
    broker = InMemoryBroker()
    configure(broker, FLEET.replace(b"    address", b"    services = none\n    address"))
    worker = new_worker(broker)
    worker.send("NEEDBROKER", services=["rare"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h5:8081"


def test_needbroker_may_name_this_broker_itself_while_it_has_capacity() -> None:
    broker = InMemoryBroker()
    configure(broker, FLEET)
    worker = pinged(broker, identity=b"idle")
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h1:8081"


def test_a_broker_that_did_not_answer_is_not_named_and_a_reported_load_counts() -> None:
    broker = InMemoryBroker()
    configure(broker, FLEET)
    worker = new_worker(broker)
    broker.dialects.scale0.note_check("tcp://h3:8081", False, -1.0)
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    configure(broker, FLEET + b"worker\n    identity = w\n")
    worker.hear()
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"  # a reload does not bring it back to life
    broker.dialects.scale0.note_check("tcp://h3:8081", True, 0.9)
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"
    broker.dialects.scale0.note_check("tcp://h3:8081", True, 0.1)
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.one("CHANGEBROKER")[0]["broker"] == "tcp://h3:8081"


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
    broker = InMemoryBroker()
    worker = new_worker(broker)
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.errors() == [503]


def test_a_refusing_broker_takes_nobody_and_nothing_but_answers_needbroker() -> None:
    broker = InMemoryBroker()
    configure(broker, b"broker\n    state = refusing\n    peers\n        broker = tcp://h2:8081\n")
    peer = new_client(broker)
    peer.send("CONNECT")
    assert peer.errors() == [503]
    peer.task(1)
    assert peer.errors() == [503]
    peer.send("NEEDBROKER")
    assert peer.one("CHANGEBROKER")[0]["broker"] == "tcp://h2:8081"


def test_a_draining_broker_sends_all_peers_elsewhere() -> None:
    broker = InMemoryBroker()
    configure(broker, FLEET)
    worker, client = pinged(broker), new_client(broker)
    broker.core.refusing = DRAINING
    broker.core.dispatch.is_stopped = True
    broker.dialects.scale0.draining()
    for peer in (worker, client):
        assert peer.words() == ["ERROR", "CHANGEBROKER"]
    client.task("late")
    error, change = client.hear()
    assert json.loads(error[1])["code"] == 301
    assert json.loads(error[1])["id"] == "late"
    assert json.loads(change[1])["broker"] == "tcp://h3:8081"
    worker.send("NEEDBROKER", services=["mail"])
    assert worker.words() == ["ERROR", "CHANGEBROKER"]
    worker.send("CONNECT")
    assert worker.words() == ["ERROR", "CHANGEBROKER"]


def test_a_draining_broker_still_takes_replies() -> None:
    broker = InMemoryBroker()
    worker, client = pinged(broker), new_client(broker)
    client.task(1)
    ((given, _),) = worker.tasks()
    broker.core.refusing = DRAINING
    broker.dialects.scale0.draining()
    client.hear()
    worker.reply(given)
    assert client.results() == [(1, b"done")]
