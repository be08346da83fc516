"""ebus peers of a running broker: pyzmq's sockets."""

from __future__ import annotations

import time
from typing import Any

import zmq

from tests.runtime.daemon import Daemon

WAIT_S = 60.0


class Peer:
    """A socket that fails when nothing comes in time, so that no test hangs."""

    def __init__(self, broker: Daemon, listener: str, kind: int = zmq.DEALER, identity: bytes = b"") -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.linger = 0
        if identity:
            self.socket.routing_id = identity
        self.socket.connect(broker.address(listener))

    def send(self, *frames: bytes) -> None:
        self.socket.send_multipart(list(frames))

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        assert self.socket.poll(wait_s * 1000), f"nothing came within {wait_s:g} s"
        return self.socket.recv_multipart()

    def hear_word(self, *words: bytes, wait_s: float = WAIT_S) -> list[bytes]:
        """The next message that says one of these; the rest is passed over."""
        end_s = time.monotonic() + wait_s
        while True:
            frames = self.hear(max(end_s - time.monotonic(), 0.001))
            if any(word in frames[:3] for word in words):
                return frames

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    def __init__(self, broker: Daemon, identity: bytes = b"") -> None:
        super().__init__(broker, "ebus.client", zmq.DEALER, identity)

    def ask(self, service: bytes, rid: bytes, data: bytes = b"data", stales_ms: int = 15_000) -> None:
        self.send(b"", b"EBC01", b"REQ", service, rid, data, b"%d" % stales_ms)

    def outcome(self, wait_s: float = WAIT_S) -> list[bytes]:
        """REPLY or REJECT, rid and data."""
        return self.hear_word(b"REPLY", b"REJECT", wait_s=wait_s)[2:]

    def ping(self) -> None:
        self.send(b"", b"EBC01", b"PING")
        self.hear_word(b"HEARTBEAT")


class Worker(Peer):
    def __init__(self, broker: Daemon, service: bytes, identity: bytes = b"") -> None:
        super().__init__(broker, "ebus.worker", zmq.DEALER, identity)
        self.early: list[list[bytes]] = []  # requests that came before an answer we waited for
        self.send(b"EBW01", b"READY", b"null", service)
        self.ping()  # its answer tells that READY was heard

    def ping(self) -> None:
        self.send(b"EBW01", b"PING")
        while b"REQ" in (frames := self.hear_word(b"HEARTBEAT", b"REQ"))[:2]:
            self.early.append(frames)

    def take(self) -> tuple[bytes, bytes]:
        """The next request: rid and data."""
        frames = self.early.pop(0) if self.early else self.hear_word(b"REQ")
        return frames[2], frames[3]

    def answer(self, rid: bytes, value: bytes) -> None:
        self.send(b"EBW01", b"REPLY", rid, value)
