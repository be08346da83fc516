"""A tap on connections in memory: it sees both ways, in frames, and leaves no trace when it goes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.runtime.admin.tap import TapEvent, TappedConnection, Taps
from dragoman.runtime.clock import Clock
from dragoman.runtime.connection import Connection
from dragoman.runtime.watchdog import Watchdog
from dragoman.version import build_flavour
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import InMemoryBroker

if build_flavour() == "compiled":
    pytest.skip("a compiled connection takes no double of a broker", allow_module_level=True)


class Pipe:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def get_write_buffer_size(self) -> int:
        return 0

    def set_write_buffer_limits(self, high: int) -> None:
        pass

    def get_extra_info(self, name: str) -> Any:
        return ("127.0.0.1", 50000) if name == "peername" else None


class FakeBroker:
    """Just enough of a broker for its connections."""

    def __init__(self) -> None:
        self.broker = InMemoryBroker()
        self.clock = Clock()
        self.watchdog = Watchdog()
        self.connections: dict[Any, Connection] = {}
        self.board = Taps()
        self.seen: list[TapEvent] = []

    def admit(self, connection: Connection) -> Any:
        session = self.broker.dialects.session(connection.listener)
        self.connections[session] = connection
        return session

    def forget(self, connection: Connection, session: Any) -> None:
        del self.connections[session]

    def wake(self) -> None:
        pass

    def write_buffer_size(self, listener: str) -> int:
        return 1 << 20

    def words_when_full(self, listener: str) -> bytes:
        return b""

    def connect(self, listener: str) -> tuple[Connection, Pipe, ZmtpConnection]:
        connection = self.board.connection(cast(Any, self), listener)
        pipe = Pipe()
        connection.connection_made(cast(Any, pipe))
        zmtp = ZmtpConnection(b"DEALER")
        connection.data_received(zmtp.greeting())
        for _ in range(3):
            self.tick()
            zmtp.receive(b"".join(pipe.written))
            pipe.written.clear()
            out = zmtp.take_outgoing()
            if out:
                connection.data_received(out)
        assert zmtp.is_ready
        self.tick()
        return connection, pipe, zmtp

    def tick(self) -> None:
        self.broker.commit()
        self.broker.outboxes.send_all()

    def watch(self) -> None:
        self.board.watch(cast(Any, self), self.seen.append)

    def unwatch(self) -> None:
        self.board.unwatch(cast(Any, self), self.seen.append)

    def said(self) -> list[tuple[str, list[bytes]]]:
        found = [("▶" if sight.to_broker else "◀", sight.frames) for sight in self.seen if sight.kind == "said"]
        self.seen.clear()
        return found


@pytest.fixture
def fake_broker() -> FakeBroker:
    return FakeBroker()


def test_a_connection_that_nobody_watches_is_a_plain_one(fake_broker: FakeBroker) -> None:
    connection, pipe, _ = fake_broker.connect("pingpong.worker")
    assert type(connection) is Connection
    assert connection.transport is cast(Any, pipe)
    assert connection.session is not None
    assert connection.session.tap is None


@pytest.mark.parametrize("is_older", [True, False])
def test_a_watcher_sees_both_ways_in_frames(fake_broker: FakeBroker, is_older: bool) -> None:
    if not is_older:
        fake_broker.watch()
    connection, _, _ = fake_broker.connect("pingpong.worker")
    if is_older:
        fake_broker.watch()
    fake_broker.board.sweep(cast(Any, fake_broker))
    assert [sight.kind for sight in fake_broker.seen] == ["opened"]
    assert fake_broker.seen[0].socket_types == ("DEALER", "ROUTER")
    fake_broker.seen.clear()
    connection.data_received(encode_message([b"", b"READY"]) + encode_message([b"", b"PING"]))
    fake_broker.tick()
    assert fake_broker.said() == [
        ("▶", [b"", b"READY"]),
        ("▶", [b"", b"PING"]),
        ("◀", [b"", b"PONG"]),
        ("◀", [b"", b"PONG"]),
    ]


def test_openings_that_are_read_whole_are_shown_as_the_frames_they_are(fake_broker: FakeBroker) -> None:
    connection, _, _ = fake_broker.connect("emqp.client")
    fake_broker.watch()
    frames = [b"", b"eMQP/1.0", b"REQUEST", b"an-id-of-some-length", b"queue", b"", b"body"]
    connection.data_received(encode_message(frames))
    assert fake_broker.said() == [("▶", frames)]


def test_when_the_last_watcher_goes_everything_is_as_before(fake_broker: FakeBroker) -> None:
    connection, pipe, _ = fake_broker.connect("pingpong.worker")
    session = connection.session
    assert session is not None
    fake_broker.watch()
    assert connection.transport is not cast(Any, pipe)
    fake_broker.unwatch()
    assert connection.transport is cast(Any, pipe)
    assert session.sink == pipe.write
    assert session.tap is None
    connection.data_received(encode_message([b"", b"READY"]))
    fake_broker.tick()
    assert pipe.written == [encode_message([b"", b"PONG"])]
    assert fake_broker.said() == []


def test_a_connection_made_while_watched_works_on_when_nobody_watches(fake_broker: FakeBroker) -> None:
    fake_broker.watch()
    connection, pipe, _ = fake_broker.connect("pingpong.worker")
    assert isinstance(connection, TappedConnection)
    fake_broker.unwatch()
    connection.data_received(encode_message([b"", b"READY"]))
    fake_broker.tick()
    assert pipe.written == [encode_message([b"", b"PONG"])]
    assert connection.transport is cast(Any, pipe)


def test_a_slow_peer_is_watched_on_after_it_reads_again(fake_broker: FakeBroker) -> None:
    connection, pipe, _ = fake_broker.connect("pingpong.worker")
    fake_broker.watch()
    stub = cast(Any, SimpleNamespace(is_closing=lambda: False))
    cast(Any, pipe).is_closing = stub.is_closing
    connection.broker.balance = lambda connection: None  # type: ignore[method-assign]  # the desk has no backpressure
    connection.pause_writing()
    connection.resume_writing()
    fake_broker.seen.clear()
    connection.data_received(encode_message([b"", b"PING"]))
    fake_broker.tick()
    assert ("◀", [b"", b"PONG"]) in fake_broker.said()


def test_two_watchers_see_the_same(fake_broker: FakeBroker) -> None:
    other: list[TapEvent] = []
    fake_broker.watch()
    fake_broker.board.watch(cast(Any, fake_broker), other.append)
    connection, _, _ = fake_broker.connect("pingpong.worker")
    connection.data_received(encode_message([b"", b"READY"]))
    fake_broker.tick()
    assert other == fake_broker.seen
    fake_broker.board.unwatch(cast(Any, fake_broker), other.append)
    connection.data_received(encode_message([b"", b"PING"]))
    assert len(fake_broker.seen) == len(other) + 1


@pytest.mark.parametrize("is_older", [True, False])
def test_the_end_of_a_connection_is_seen(fake_broker: FakeBroker, is_older: bool) -> None:
    if not is_older:
        fake_broker.watch()
    connection, _, _ = fake_broker.connect("pingpong.worker")
    if is_older:
        fake_broker.watch()
    connection.connection_lost(None)
    fake_broker.board.sweep(cast(Any, fake_broker))
    assert fake_broker.seen[-1].kind == "ended"
