"""The admin socket's protocol: versioned lines, bounded, and no request that harms the broker."""

from __future__ import annotations

import asyncio
import json
import socket
from pathlib import Path
from typing import Any, cast

import pytest

from dragoman.cli.admin_client import AdminClient
from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.errors import AdminRefused
from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.limits import ADMIN_CONNECTIONS_MAX, ADMIN_REQUEST_SIZE_MAX, ADMIN_STEP_COUNT
from dragoman.model.enums import EMQP
from dragoman.model.message import Message
from dragoman.runtime.admin import operation
from dragoman.runtime.admin.socket import AdminServer
from dragoman.runtime.config import Config
from dragoman.runtime.server import Server
from dragoman.runtime.watchdog import Watchdog
from tests.cli.broker import BrokerProcess


class Lines:
    """A raw connection: lines out, lines in."""

    def __init__(self, path: Path) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rb")

    def ask(self, line: bytes) -> Any:
        self.socket.sendall(line + b"\n")
        return json.loads(self.file.readline())

    def close(self) -> None:
        self.file.close()
        self.socket.close()


@pytest.fixture
def lines(common_broker: BrokerProcess) -> Any:
    connection = Lines(common_broker.data / "admin.sock")
    yield connection
    connection.close()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"nonsense", "BAD_REQUEST"),
        (b"[]", "BAD_REQUEST"),
        (b'{"id":1}', "BAD_REQUEST"),
        (b'{"op":5}', "BAD_REQUEST"),
        (b"\xff\xfe", "BAD_REQUEST"),
        (b"[" * 50_000, "BAD_REQUEST"),
        (b'{"v":2,"op":"status"}', "BAD_VERSION"),
        (b'{"op":"dance"}', "UNKNOWN_OPERATION"),
        (b'{"op":"queues","args":{"limit":1001}}', "BAD_ARGUMENT"),
        (b'{"op":"queues","args":{"offset":-1}}', "BAD_ARGUMENT"),
        (b'{"op":"queues","args":{"colour":"red"}}', "BAD_ARGUMENT"),
        (b'{"op":"message","args":{}}', "BAD_ARGUMENT"),
        (b'{"op":"message","args":{"id":""}}', "BAD_ARGUMENT"),
        (b'{"op":"quarantine_retry"}', "BAD_ARGUMENT"),
        (b'{"op":"backup","args":{"target":"relative"}}', "BAD_ARGUMENT"),
        (b'{"op":"message","args":{"id":"nobody"}}', "NOT_FOUND"),
        (b'{"op":"unschedule","args":{"id":"s1.1"}}', "NOT_FOUND"),
        (b'{"op":"purge","args":{"queue":"nobody"}}', "NOT_FOUND"),
        (b'{"op":"quarantine_drop","args":{"queue":"nobody"}}', "NOT_FOUND"),
    ],
)
def test_a_wrong_request_is_answered_with_its_code_and_the_connection_goes_on(
    lines: Lines, line: bytes, code: str
) -> None:
    answer = lines.ask(line)
    assert (answer["ok"], answer["error"]["code"]) == (False, code)
    assert answer["error"]["message"]
    assert lines.ask(b'{"v":1,"id":"mine","op":"counters"}')["id"] == "mine"


def test_requests_are_answered_in_order_with_their_ids(lines: Lines) -> None:
    lines.socket.sendall(b"".join(b'{"id":%d,"op":"counters"}\n' % number for number in range(50)))
    assert [json.loads(lines.file.readline())["id"] for _ in range(50)] == list(range(50))


def test_a_request_that_never_ends_is_refused_and_its_connection_closed(common_broker: BrokerProcess) -> None:
    lines = Lines(common_broker.data / "admin.sock")
    lines.socket.sendall(b"x" * (ADMIN_REQUEST_SIZE_MAX + 10))
    answer = json.loads(lines.file.readline())
    assert answer["error"]["code"] == "REQUEST_TOO_LONG"
    with pytest.raises(ConnectionError):
        raise_at_end(lines)
    lines.close()
    with AdminClient(common_broker.data) as client:
        assert client.ask("counters")["queues"] >= 0


def raise_at_end(lines: Lines) -> None:
    if lines.file.read() == b"":
        raise ConnectionResetError


def test_connections_beyond_the_limit_are_reported(common_broker: BrokerProcess) -> None:
    path = common_broker.data / "admin.sock"
    open_ones = [Lines(path) for _ in range(ADMIN_CONNECTIONS_MAX)]
    for connection in open_ones:
        assert connection.ask(b'{"op":"counters"}')["ok"]
    extra = Lines(path)
    assert json.loads(extra.file.readline())["error"]["code"] == "TOO_MANY_CONNECTIONS"
    for connection in [*open_ones, extra]:
        connection.close()


def test_an_asker_that_leaves_in_the_middle_harms_nobody(common_broker: BrokerProcess) -> None:
    for _ in range(20):
        lines = Lines(common_broker.data / "admin.sock")
        lines.socket.sendall(b'{"op":"status"}\n{"op":"sta')
        lines.close()
    with AdminClient(common_broker.data) as client:
        assert client.ask("status")["version"]


def test_the_client_raises_a_refusal_with_its_code(common_broker: BrokerProcess) -> None:
    with AdminClient(common_broker.data) as client, pytest.raises(AdminRefused) as caught:
        client.ask("message", id="nobody")
    assert caught.value.refusal == "NOT_FOUND"


class Acting:
    """A broker whose changes are kept at once, or never."""

    def __init__(self, core: Core, keeps: bool = True) -> None:
        self.connections: dict[object, object] = {}
        self.core = core
        self.keeps = keeps

    watchdog = Watchdog()

    async def act(self, change: Any) -> Any:
        result = change(self.core)
        if not self.keeps:
            await asyncio.Event().wait()
        return result


class FakeServer:
    """Just enough of a broker process for its admin socket."""

    def __init__(self, keeps: bool = True) -> None:
        self.core = Core(CoreSettings(), lambda place: b"")
        self.core.set_time(1_700_000_000_000_000_000)
        self.journal = Journal.open(JournalSettings("", "memory"))
        self.config = Config()
        self.version = "0.1.0"
        self.listeners: dict[str, str] = {}
        self.broker = Acting(self.core, keeps)

    def request_stop(self) -> None:
        raise AssertionError("a fault of our own")

    def reload(self) -> dict[str, list[str]]:
        return {"applied": [], "needs_restart": []}


async def converse(broker: FakeServer, path: Path, *requests: dict[str, Any]) -> list[Any]:
    """All lines the requests are answered with."""
    server = AdminServer(cast(Server, broker))
    await server.start(path)
    try:
        reader, writer = await asyncio.open_unix_connection(str(path))
        answers = []
        for request in requests:
            writer.write(json.dumps(request).encode() + b"\n")
            while True:
                answers.append(json.loads(await reader.readline()))
                if "ok" in answers[-1]:
                    break
        writer.close()
        await writer.wait_closed()
        return answers
    finally:
        await server.stop()


def test_a_fault_of_our_own_is_answered_as_internal_and_the_next_request_works(tmp_path: Path) -> None:
    requests: list[dict[str, Any]] = [{"op": "stop"}, {"op": "counters"}]
    first, second = asyncio.run(converse(FakeServer(), tmp_path / "admin.sock", *requests))
    assert first["error"]["code"] == "INTERNAL"
    assert second["ok"] is True
    assert not (tmp_path / "admin.sock").exists()


def test_a_purge_goes_in_steps_and_tells_how_far_it_is(tmp_path: Path) -> None:
    broker = FakeServer()
    total = 2 * ADMIN_STEP_COUNT + 10
    for number in range(total):
        assert broker.core.submit(Message(EMQP, b"mail", b"%d" % number, b"")) == 0
    request = {"id": 7, "op": "purge", "args": {"queue": "mail"}}
    answers = asyncio.run(converse(broker, tmp_path / "admin.sock", request))
    steps = [answer["progress"]["done"] for answer in answers[:-1]]
    assert steps == [ADMIN_STEP_COUNT, 2 * ADMIN_STEP_COUNT, total]
    assert answers[-1] == {"id": 7, "ok": True, "result": {"queue": "mail", "purged": total}}


def test_a_change_the_journal_cannot_keep_does_not_hang_the_asker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "ACT_PATIENCE_S", 0.05)
    broker = FakeServer(keeps=False)
    broker.core.submit(Message(EMQP, b"mail", b"1", b""))
    [answer] = asyncio.run(converse(broker, tmp_path / "admin.sock", {"op": "pause", "args": {"queue": "mail"}}))
    assert answer["error"]["code"] == "NOT_YET_KEPT"


def test_a_backup_of_a_broker_that_keeps_nothing_is_refused(tmp_path: Path) -> None:
    broker = FakeServer()
    broker.config = Config(journal=type(broker.config.journal)(durability="memory"))
    [answer] = asyncio.run(
        converse(broker, tmp_path / "admin.sock", {"op": "backup", "args": {"target": str(tmp_path / "copy")}})
    )
    assert answer["error"]["code"] == "NOTHING_KEPT"
