"""A broker in memory with the far ends of the ping-pong dialogue around it, in each of its forms."""

from __future__ import annotations

import msgspec

from dragoman.core.settings import CoreSettings
from dragoman.dialects.pingpong.sessions import PingpongClient, PingpongWorker
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker

PONG = [b"", b"PONG"]


class PingpongBroker(InMemoryBroker):
    """A broker in memory with the settings of pingpong at hand."""

    def __init__(self, settings: CoreSettings | None = None) -> None:
        super().__init__(settings)
        self.pingpong = self.dialects.pingpong

    def notes(self) -> dict[str, int]:
        """Oddities counted since the last look."""
        counted: dict[str, int] = dict(self.core.notes)
        self.core.notes.clear()
        return counted


class FakePeer(End):
    """The far end of one pingpong connection: says frames, hears frames."""

    def send(self, *frames: bytes) -> None:
        self.give(encode_message(list(frames)))

    def send_json(self, value: object) -> None:
        self.send(msgspec.json.encode(value))

    def said(self) -> list[list[bytes]]:
        """Everything the broker has said since the last look."""
        self.hear()
        heard, self.heard = self.heard, []
        return heard


class FakeWorker(FakePeer):
    def __init__(self, broker: InMemoryBroker, identity: bytes = b"", socket_type: bytes = b"DEALER") -> None:
        super().__init__(broker, "pingpong.worker", identity, socket_type)
        assert isinstance(self.session, PingpongWorker)
        self.broker_side = self.session

    def ready(self) -> None:
        self.send(b"", b"READY")

    def ping(self) -> None:
        self.send(b"", b"PING")

    def result(self, value: bytes) -> None:
        self.send(b"", value)

    def jobs(self) -> list[list[bytes]]:
        """What it was given since the last look: all but PONG."""
        return [frames for frames in self.said() if frames not in (PONG, [b'{"status":"PONG"}'])]


class FakeClient(FakePeer):
    def __init__(self, broker: InMemoryBroker, identity: bytes = b"client", socket_type: bytes = b"DEALER") -> None:
        super().__init__(broker, "pingpong.client", identity, socket_type)
        assert isinstance(self.session, PingpongClient)
        self.broker_side = self.session

    def order(self, body: bytes) -> None:
        self.send(b"", body)

    def results(self) -> list[bytes]:
        """Plain results since the last look."""
        said = self.said()
        assert all(len(frames) == 2 and not frames[0] for frames in said), said
        return [frames[1] for frames in said]


def ready_worker(broker: InMemoryBroker, identity: bytes = b"") -> FakeWorker:
    worker = FakeWorker(broker, identity)
    worker.ready()
    assert worker.heard.pop(0) == PONG  # a job that waited may follow it
    return worker


def json_worker(broker: InMemoryBroker) -> FakeWorker:
    worker = FakeWorker(broker)
    worker.send_json({"status": "PING"})
    assert worker.said() == [[b'{"status":"PONG"}']]
    return worker
