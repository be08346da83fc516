"""Scale0's peers at a broker without a process: they speak ZMTP as programs in the field do, time is turned by hand."""

from __future__ import annotations

import json
from typing import Any

from dragoman.dialects.scale0.configuration.notations import parse
from dragoman.dialects.scale0.sessions import Scale0Session
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker


class Peer:
    """The far end of one connection. `heard` holds [command, header, body…] without the envelope."""

    def __init__(
        self, broker: InMemoryBroker, listener: str, identity: bytes = b"", socket_type: bytes = b"DEALER"
    ) -> None:
        self.broker = broker
        self.end = End(broker, listener, identity, socket_type)
        self.is_req = socket_type == b"REQ"

    @property
    def session(self) -> Scale0Session:
        assert isinstance(self.end.session, Scale0Session)
        return self.end.session

    def say(self, *frames: bytes) -> None:
        """Exactly these frames; a REQ socket puts its delimiter before them."""
        self.end.give(encode_message([b"", *frames] if self.is_req else list(frames)))

    def send(self, command: str, body: bytes | None = None, **header: Any) -> None:
        frames = [command.encode(), json.dumps(header).encode()]
        self.say(*frames, *([] if body is None else [body]))

    def hear(self) -> list[list[bytes]]:
        """Everything heard since the last look."""
        self.end.hear()
        heard, self.end.heard = self.end.heard, []
        if self.is_req:
            assert all(frames[0] == b"" for frames in heard)
            heard = [frames[1:] for frames in heard]
        return heard

    def words(self) -> list[str]:
        return [frames[0].decode() for frames in self.hear()]

    def one(self, command: str) -> tuple[dict[str, Any], bytes]:
        """The one message that was heard: its header and body."""
        (frames,) = self.hear()
        assert frames[0].decode() == command, frames
        header = json.loads(frames[1])
        assert isinstance(header, dict)
        return header, frames[2] if len(frames) > 2 else b""

    def errors(self) -> list[int]:
        """Codes of the errors heard; the rest of what was heard is forgotten."""
        return [json.loads(frames[1])["code"] for frames in self.hear() if frames[0] == b"ERROR"]

    # -- workers --------------------------------------------------------------------------------------------------------

    def ping(self, *services: str, **header: Any) -> None:
        if services:
            header["services"] = list(services)
        self.send("PING", **header)

    def tasks(self) -> list[tuple[str, bytes]]:
        """(id, body) of the tasks heard."""
        return [(json.loads(frames[1])["id"], frames[2]) for frames in self.hear() if frames[0] == b"TASK"]

    def reply(self, task_id: str, body: bytes = b"done", **header: Any) -> None:
        self.send("TASKREPLY", body, id=task_id, **header)

    # -- clients --------------------------------------------------------------------------------------------------------

    def task(self, task_id: Any, service: str = "mail", body: bytes = b"work", **header: Any) -> None:
        self.send("TASK", body, id=task_id, service=service, **header)

    def results(self) -> list[tuple[Any, bytes]]:
        return [(json.loads(frames[1])["id"], frames[2]) for frames in self.hear() if frames[0] == b"TASKREPLY"]


def new_worker(broker: InMemoryBroker, identity: bytes = b"worker", socket_type: bytes = b"DEALER") -> Peer:
    return Peer(broker, "scale0.worker", identity, socket_type)


def new_client(broker: InMemoryBroker, identity: bytes = b"client", socket_type: bytes = b"DEALER") -> Peer:
    return Peer(broker, "scale0.client", identity, socket_type)


def pinged(broker: InMemoryBroker, *services: str, identity: bytes = b"worker") -> Peer:
    """A worker in the line."""
    peer = new_worker(broker, identity)
    peer.ping(*(services or ("mail",)))
    assert peer.words() == ["PONG"]
    return peer


def configure(broker: InMemoryBroker, zpl: bytes) -> None:
    """As a reload would."""
    broker.dialects.scale0.settings.tree = parse(b"ZFL", zpl)
    broker.dialects.scale0.reconfigured()


def notes(broker: InMemoryBroker) -> dict[str, int]:
    counted: dict[str, int] = dict(broker.core.notes)
    broker.core.notes.clear()
    return counted
