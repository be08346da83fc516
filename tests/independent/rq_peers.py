"""RQ over RISP from its page alone: a plain TCP socket and nothing of dragoman.

One command byte; its top three bits say how long its parameter is. Parameters gather until a byte below 32 acts on them.
"""

from __future__ import annotations

import itertools
import socket
import time
from typing import Any

WAIT_S = 60.0
CLEAR, PING, PONG, REQUEST, REPLY, DELIVERED, BROADCAST, UNDELIVERED = 1, 5, 6, 10, 11, 13, 14, 16
CONSUME, CLOSING, CONSUMING = 20, 22, 24
NOREPLY, PRIORITY, RETRIES, QUEUEID, TIMEOUT, MAX, ID, QUEUE, PAYLOAD = 33, 64, 65, 96, 97, 98, 128, 160, 224
FIXED = {0: 0, 1: 0, 2: 1, 3: 2, 4: 4}  # the size of the parameter by range
LENGTHS = {5: 1, 6: 2, 7: 4}  # the size of the length in front of it
_numbers = itertools.count(70_000)


def parameter(command: int, value: int | bytes) -> bytes:
    kind = command >> 5
    if isinstance(value, bytes):
        return bytes([command]) + len(value).to_bytes(LENGTHS[kind], "big") + value
    return bytes([command]) + value.to_bytes(FIXED[kind], "big")


class Peer:
    """A node: what it hears comes out as (acting command, parameters)."""

    def __init__(self, listeners: dict[str, str]) -> None:
        host, port = listeners["rq"].removeprefix("tcp://").rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), WAIT_S)
        self.received = b""
        self.gathered: dict[int, bytes] = {}

    def say(self, acting: int, *parameters: bytes) -> None:
        self.socket.sendall(bytes([CLEAR]) + b"".join(parameters) + bytes([acting]))

    def _parse(self) -> tuple[int, dict[int, bytes]] | None:
        """The next acting command in what was received; None when its bytes are not all there."""
        while self.received:
            command = self.received[0]
            kind, begin = command >> 5, 1
            size = FIXED.get(kind, 0)
            if kind in LENGTHS:
                begin += LENGTHS[kind]
                size = int.from_bytes(self.received[1:begin], "big")
            if len(self.received) < begin + size:
                return None
            value, self.received = self.received[begin : begin + size], self.received[begin + size :]
            if command == CLEAR:
                self.gathered = {}
            elif command == PING:
                self.socket.sendall(bytes([PONG]))
            elif command >= 32:
                self.gathered[command] = value
            elif command != PONG:
                return command, self.gathered
        return None

    def hear(self, wait_s: float = WAIT_S) -> tuple[int, dict[int, bytes]]:
        ends = time.monotonic() + wait_s
        while True:
            operation = self._parse()
            if operation is not None:
                return operation
            self.socket.settimeout(max(ends - time.monotonic(), 0.001))
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionError("the controller closed")
            self.received += data

    def close(self) -> None:
        self.socket.close()

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


class Client(Peer):
    """A source: REQUEST out; DELIVERED, then REPLY back, or UNDELIVERED."""

    def __init__(self, listeners: dict[str, str]) -> None:
        super().__init__(listeners)
        self.handed_over: list[int] = []
        self.outcomes: dict[int, tuple[str, bytes]] = {}

    def ask(self, queue: str, body: bytes, *more: bytes) -> int:
        number = next(_numbers)
        self.say(REQUEST, parameter(ID, number), parameter(QUEUE, queue.encode()), parameter(PAYLOAD, body), *more)
        return number

    def outcome(self, number: int, wait_s: float = WAIT_S) -> tuple[str, bytes]:
        """("answered", value) or ("refused", nothing)."""
        ends = time.monotonic() + wait_s
        while number not in self.outcomes:
            self.hear_news(ends - time.monotonic())
        return self.outcomes.pop(number)

    def hear_news(self, wait_s: float = WAIT_S) -> None:
        acting, told = self.hear(wait_s)
        about = int.from_bytes(told[ID], "big")
        if acting == DELIVERED:
            assert about not in self.handed_over, "DELIVERED is said once"
            self.handed_over.append(about)
        elif acting == REPLY:
            assert about in self.handed_over, "a REPLY comes after its DELIVERED"
            self.outcomes[about] = ("answered", told.get(PAYLOAD, b""))
        elif acting == UNDELIVERED:
            self.outcomes[about] = ("refused", b"")

    def wait_handed_over(self, number: int) -> None:
        while number not in self.handed_over:
            self.hear_news()


class Worker(Peer):
    """A consumer with room for one message."""

    def __init__(self, listeners: dict[str, str], queue: str, priority: int = 20) -> None:
        super().__init__(listeners)
        self.say(CONSUME, parameter(QUEUE, queue.encode()), parameter(MAX, 1), parameter(PRIORITY, priority))
        acting, told = self.hear()
        assert (acting, told[QUEUE]) == (CONSUMING, queue.encode())
        self.queue_id = told[QUEUEID]
        self.broadcasts: list[bytes] = []

    def take(self, wait_s: float = WAIT_S) -> tuple[bytes, bytes]:
        """The next request: its id and its payload. It is confirmed when it is answered, or by `confirm`."""
        ends = time.monotonic() + wait_s
        while True:
            acting, told = self.hear(ends - time.monotonic())
            assert told[QUEUEID] == self.queue_id
            if acting == REQUEST:
                return told[ID], told[PAYLOAD]
            assert acting == BROADCAST, acting
            self.broadcasts.append(told[PAYLOAD])

    def confirm(self, number: bytes) -> None:
        self.say(DELIVERED, bytes([ID]) + number)

    def answer(self, number: bytes, value: bytes) -> None:
        self.confirm(number)
        self.say(REPLY, bytes([ID]) + number, parameter(PAYLOAD, value))

    def give_back(self, number: bytes) -> None:
        self.say(UNDELIVERED, bytes([ID]) + number)


class Publisher(Peer):
    def publish(self, topic: str, body: bytes) -> None:
        self.say(BROADCAST, parameter(QUEUE, topic.encode()), parameter(PAYLOAD, body))


class Subscriber(Worker):
    """A consumer that wants broadcasts only."""

    def __init__(self, listeners: dict[str, str], topic: str) -> None:
        super().__init__(listeners, topic, priority=0)

    def news(self, wait_s: float = WAIT_S) -> bytes | None:
        """The next body, or None when there is none in time."""
        try:
            acting, told = self.hear(wait_s)
        except TimeoutError:
            return None
        assert acting == BROADCAST, acting
        return told[PAYLOAD]
