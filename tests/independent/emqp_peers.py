"""eMQP/1.0 from its page alone: pyzmq and nothing of dragoman.

Frames: an empty one, `eMQP/1.0`, command, message id, arguments. A worker INFORMs, is ACKed, and says READY once per free slot.
"""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

import zmq

WAIT_S = 60.0
HEARTBEAT_S = 1.0


def new_id() -> bytes:
    return str(uuid.uuid4()).encode()


class Peer:
    """A DEALER that says and hears commands; both sides show life by HEARTBEAT."""

    def __init__(self, address: str, kind: int = zmq.DEALER) -> None:
        self.socket: zmq.Socket[bytes] = zmq.Context.instance().socket(kind)
        self.socket.linger = 0
        self.socket.connect(address)

    def say(self, command: bytes, message_id: bytes, *arguments: bytes) -> None:
        self.socket.send_multipart([b"", b"eMQP/1.0", command, message_id, *arguments])

    def hear(self, wait_s: float = WAIT_S) -> tuple[bytes, bytes, list[bytes]]:
        """Command, id and arguments."""
        if not self.socket.poll(max(int(wait_s * 1000), 1)):
            raise TimeoutError(f"nothing heard for {wait_s:g} s")
        empty, version, command, message_id, *arguments = self.socket.recv_multipart()
        assert (empty, version) == (b"", b"eMQP/1.0"), (empty, version)
        return command, message_id, arguments

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    """Sends REQUESTs; is told by one REPLY that a worker has it and by another what the worker said."""

    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["emqp.client"])
        self.handed_over: list[bytes] = []
        self.outcomes: dict[bytes, tuple[str, bytes]] = {}

    def ask(self, queue: str, body: bytes, *headers: str) -> bytes:
        request_id = new_id()
        self.say(b"REQUEST", request_id, queue.encode(), ",".join(["reply-requested", *headers]).encode(), body)
        return request_id

    def outcome(self, request_id: bytes, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """("answered", value) or ("refused", the error as JSON)."""
        ends = time.monotonic() + wait_s
        while request_id not in self.outcomes:
            self.hear_reply(ends - time.monotonic())
        return self.outcomes.pop(request_id)

    def hear_reply(self, wait_s: float = WAIT_S) -> None:
        command, _, arguments = self.hear(wait_s)
        if command == b"REPLY" and len(arguments) == 1:
            self.handed_over.append(arguments[0])
        elif command == b"REPLY":
            value, answered_id = arguments
            self.outcomes[answered_id] = ("refused" if value.startswith(b'{"error"') else "answered", value)

    def wait_handed_over(self, request_id: bytes) -> None:
        while request_id not in self.handed_over:
            self.hear_reply()

    def cancel(self, request_id: bytes) -> None:
        """An extension: the request is not wanted any more."""
        self.say(b"CANCEL", new_id(), request_id)


class Worker(Peer):
    """One slot. It takes bodies of any kind, which it says with the seventh frame of its INFORM."""

    def __init__(self, listeners: dict[str, str], queue: str) -> None:
        super().__init__(listeners["emqp.worker"])
        self.say(b"INFORM", new_id(), json.dumps([[10, queue]]).encode(), b"worker", b"bytes")
        while self.hear()[0] != b"ACK":
            pass
        self.say(b"READY", new_id())
        self.is_ready = True

    def take(self, wait_s: float = WAIT_S) -> tuple[bytes, bytes]:
        """The next request: its id and its body."""
        ends = time.monotonic() + wait_s
        if not self.is_ready:
            self.say(b"READY", new_id())
        while True:
            if not self.socket.poll(max(int(min(HEARTBEAT_S, ends - time.monotonic()) * 1000), 1)):
                if time.monotonic() >= ends:
                    raise TimeoutError(f"no request for {wait_s:g} s")
                self.heartbeat()
                continue
            command, message_id, arguments = self.hear()
            if command == b"REQUEST":
                self.is_ready = False
                self.headers = arguments[1].decode().split(",")
                return message_id, arguments[2]

    def heartbeat(self) -> None:
        self.say(b"HEARTBEAT", new_id(), str(time.time()).encode())

    def answer(self, request_id: bytes, value: bytes) -> None:
        self.say(b"REPLY", new_id(), value, request_id)


class Publisher(Peer):
    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners["emqp.publish"])

    def publish(self, topic: str, body: bytes) -> None:
        self.say(b"PUBLISH", new_id(), topic.encode(), body)


class Subscriber(Peer):
    """Hears every topic that begins with its own."""

    def __init__(self, listeners: dict[str, str], topic: str) -> None:
        super().__init__(listeners["emqp.subscribe"], zmq.SUB)
        self.socket.subscribe(topic)

    def news(self, wait_s: float = WAIT_S) -> bytes | None:
        """The next body, or None when there is none in time."""
        return self.socket.recv_multipart()[1] if self.socket.poll(int(wait_s * 1000)) else None
