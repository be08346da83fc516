"""EBUS from its page alone, in the running original's words: pyzmq and nothing of dragoman.

Clients put an empty frame first and sign EBC01; workers put none and sign EBW01; the broker signs with the other's mark.
"""

from __future__ import annotations

import itertools
import time
from typing import Any

import zmq

WAIT_S = 60.0
HEARTBEAT_S = 0.5
_numbers = itertools.count(1)


class Peer:
    """A socket with a deadline on hearing."""

    def __init__(self, address: str, kind: int = zmq.DEALER) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.linger = 0
        self.socket.connect(address)

    def hear(self, wait_s: float = WAIT_S) -> list[bytes]:
        if not self.socket.poll(max(int(wait_s * 1000), 1)):
            raise TimeoutError(f"nothing heard for {wait_s:g} s")
        return self.socket.recv_multipart()

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    """Sends REQ; is told REPLY or REJECT; answers PING."""

    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["ebus.client"])
        self.outcomes: dict[bytes, tuple[str, bytes]] = {}
        self.services: dict[bytes, bytes] = {}

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart([b"", b"EBC01", *frames])

    def ask(self, queue: str, body: bytes, stales_ms: int = 10_000) -> bytes:
        rid = b"rid-%d" % next(_numbers)
        self.services[rid] = queue.encode()
        self.say(b"REQ", queue.encode(), rid, body, b"%d" % stales_ms)
        return rid

    def cancel(self, rid: bytes) -> None:
        self.say(b"CANCEL", self.services[rid], rid)

    def outcome(self, rid: bytes, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """("answered", data) or ("refused", data)."""
        ends = time.monotonic() + wait_s
        while rid not in self.outcomes:
            empty, mark, word, *rest = self.hear(ends - time.monotonic())
            assert (empty, mark) == (b"", b"EBW01"), (empty, mark)
            if word == b"PING":
                self.say(b"HEARTBEAT")
            elif word in (b"REPLY", b"REJECT"):
                kind = "answered" if word == b"REPLY" else "refused"
                self.outcomes[rest[0]] = (kind, rest[1] if len(rest) > 1 else b"")
        return self.outcomes.pop(rid)


class Worker(Peer):
    """READY for one service; takes requests as they come; shows life while it waits."""

    def __init__(self, listeners: dict[str, str], queue: str) -> None:
        super().__init__(listeners["ebus.worker"])
        self.cancelled: list[bytes] = []
        self.say(b"READY", b"null", queue.encode())

    def say(self, *frames: bytes) -> None:
        self.socket.send_multipart([b"EBW01", *frames])

    def take(self, wait_s: float = WAIT_S) -> tuple[bytes, bytes]:
        """The next request: its rid and its data."""
        ends = time.monotonic() + wait_s
        while True:
            if not self.socket.poll(max(int(min(HEARTBEAT_S, ends - time.monotonic()) * 1000), 1)):
                if time.monotonic() >= ends:
                    raise TimeoutError(f"no request for {wait_s:g} s")
                self.say(b"HEARTBEAT")
                continue
            mark, word, *rest = self.hear()
            assert mark == b"EBC01", mark
            if word == b"REQ":
                return rest[0], rest[1]
            if word == b"PING":
                self.say(b"HEARTBEAT")
            elif word == b"CANCEL":
                self.cancelled.append(rest[0])
            elif word == b"DISCONNECT":
                raise ConnectionError(rest)

    def answer(self, rid: bytes, value: bytes) -> None:
        self.say(b"REPLY", rid, value)

    def refuse(self, rid: bytes, value: bytes) -> None:
        self.say(b"REJECT", rid, value)


class Publisher(Peer):
    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["ebus.publish"], zmq.PUB)

    def publish(self, topic: str, body: bytes) -> None:
        self.socket.send_multipart([topic.encode(), body])


class Subscriber(Peer):
    """Hears every channel that begins with its own."""

    def __init__(self, listeners: dict[str, str], topic: str) -> None:
        super().__init__(listeners["ebus.subscribe"], zmq.SUB)
        self.socket.subscribe(topic)

    def news(self, wait_s: float = WAIT_S) -> bytes | None:
        """The next body, or None when there is none in time."""
        return self.socket.recv_multipart()[1] if self.socket.poll(int(wait_s * 1000)) else None
