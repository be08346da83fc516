"""`dragoman find` over what two clients and two workers of different dialects did with a real broker, beside it and without it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq

from dragoman.runtime.search.finding import Question, find_messages
from tests.cli.broker import Commands
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for


class Scale0Client:
    """A client of another dialect that gives an identity."""

    def __init__(self, broker: Daemon, identity: bytes) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
        self.socket.linger = 0
        self.socket.routing_id = identity
        self.socket.connect(broker.address("scale0.client"))

    def ask(self, task_id: str, queue: str) -> None:
        header = {"id": task_id, "service": queue, "time": time.time()}
        self.socket.send_multipart([b"TASK", json.dumps(header).encode(), b"{}"])


class Scenario:
    """One broker in which: alice's two messages to `mail` were done by `mailer`, carol's one was too, one of hers to `parcels` was
    cancelled, and one of alice's waits there."""

    def __init__(self, data: Path) -> None:
        self.daemon = Daemon(data).start()
        with (
            Client(self.daemon, identity=b"alice") as alice,
            Worker(self.daemon, b"mail", identity=b"mailer") as mailer,
        ):
            self.carol = Scale0Client(self.daemon, b"\xffcarol")
            self.done = [alice.request(b"mail", b"reply-requested").decode() for _ in range(2)]
            mailer.serve(2)
            self.carol.ask("task-mail", "mail")
            mailer.serve(1)
            self.carol.ask("task-parcels", "parcels")
            wait_for("carol's message", lambda: self.waiting("parcels"))
            self.daemon.ask("cancel", id="task-parcels")
            self.open = alice.keep(b"parcels").decode()
            self.worker = self.daemon.ask("workers")["workers"][0]
        journal, ended = str(data / "journal"), Question(state="ended")
        wait_for("the ends", lambda: len(find_messages(journal, ended).rows) == 4)

    def waiting(self, queue: str) -> bool:
        return any(one["waiting"] for one in self.daemon.ask("queues", prefix=queue)["queues"])


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    made = Scenario(tmp_path_factory.mktemp("find") / "data")
    yield made
    made.carol.socket.close()
    made.daemon.kill()


@pytest.fixture
def dragoman(scenario: Scenario, capfd: pytest.CaptureFixture[str]) -> Commands:
    return Commands(scenario.daemon.data, capfd)


def ids(dragoman: Commands, *arguments: str) -> list[str]:
    return [row["client_id"] for row in dragoman("find", "--json", *arguments).json["messages"]]


def test_messages_are_found_by_each_thing_that_is_known_of_them(scenario: Scenario, dragoman: Commands) -> None:
    carols, alices = ["task-parcels", "task-mail"], [scenario.open, *scenario.done[::-1]]
    assert ids(dragoman) == [scenario.open, *carols, *scenario.done[::-1]]
    assert ids(dragoman, "--queue", "mail") == ["task-mail", *scenario.done[::-1]]
    assert ids(dragoman, "--dialect", "scale0") == carols
    assert ids(dragoman, "--state", "open") == [scenario.open]
    assert ids(dragoman, "--state", "cancelled") == ["task-parcels"]
    assert ids(dragoman, "--state", "ended", "--queue", "parcels") == ["task-parcels"]
    assert ids(dragoman, "--peer", "alice") == alices
    assert ids(dragoman, "--peer", "\\xffcarol") == ids(dragoman, "--peer", b"\xffcarol".hex()) == carols
    assert ids(dragoman, "--peer", "alice", "--state", "done") == scenario.done[::-1]
    for worker in ("mailer", scenario.worker["remote"], scenario.worker["id"]):
        assert ids(dragoman, "--peer", worker) == ["task-mail", *scenario.done[::-1]], worker
    assert ids(dragoman, "--peer", "nobody") == []


def test_a_row_tells_the_message_in_short(scenario: Scenario, dragoman: Commands) -> None:
    [row] = dragoman("find", "--queue", "mail", "--dialect", "scale0", "--json").json["messages"]
    assert row["accepted_ns"] < row["ended_ns"]
    told = {name: row[name] for name in ("client", "worker", "worker_name", "state", "reason", "queue", "dialect")}
    assert told == {
        "client": "\\xffcarol",
        "worker": scenario.worker["id"],
        "worker_name": "mailer",
        "state": "done",
        "reason": "answered",
        "queue": "mail",
        "dialect": "scale0",
    }
    printed = dragoman("find", "--peer", "mailer")
    assert "w1." in printed.out
    assert "done: answered" in printed.out
    assert "3 messages; looked back to" in printed.out


def test_pages_follow_each_other(scenario: Scenario, dragoman: Commands) -> None:
    everything, found = ids(dragoman), []
    arguments: list[str] = []
    for _ in range(3):
        page: Any = dragoman("find", "--limit", "2", "--json", *arguments).json
        found += [row["client_id"] for row in page["messages"]]
        arguments = ["--before", str(page["next_lsn"])]
    assert found == everything
    assert "goes on" in dragoman("find", "--limit", "2").out


def test_time_bounds_what_is_found(scenario: Scenario, dragoman: Commands) -> None:
    assert ids(dragoman, "--to", "-1h") == []
    assert len(ids(dragoman, "--from", "-1h")) == 5
    assert "no message matches" in dragoman("find", "--to", "-1h").out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--state", "floating"], "BAD_SEARCH"),
        (["--dialect", "latin"], "BAD_SEARCH"),
        (["--from", "yesterday"], "BAD_INSTANT"),
        (["--from", "-1m", "--to", "-1h"], "BAD_SEARCH"),
    ],
)
def test_what_cannot_be_is_refused_with_its_code(dragoman: Commands, arguments: list[str], code: str) -> None:
    refused = dragoman("find", *arguments)
    assert refused.code == 2
    assert f"[{code}]" in refused.err


def test_without_a_journal_there_is_nothing_to_find(alone: Commands) -> None:
    missing = alone("find", "--json")
    assert missing.code == 4
    assert json.loads(missing.err)["error"]["code"] == "NOT_FOUND"


def test_a_stopped_broker_is_searched_all_the_same(scenario: Scenario, dragoman: Commands) -> None:
    beside = ids(dragoman)
    assert scenario.daemon.stop() == 0
    try:
        assert ids(dragoman) == beside
        assert ids(dragoman, "--peer", "mailer", "--queue", "mail") == ["task-mail", *scenario.done[::-1]]
    finally:
        scenario.daemon.start()
    assert ids(dragoman, "--state", "open") == [scenario.open]
