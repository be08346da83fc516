"""RISP on the peer's side of an RQ connection, implemented from the protocol's table alone, as an independent check.

A received operation is the frames `name, id, queue id, queue, payload`, each empty if it was absent, followed by the names
of the flags. Operations to send are built from the pieces below, in any order and with any nonsense between them.
"""

from __future__ import annotations

from collections.abc import Callable

CLEAR, PING, PONG, REQUEST, REPLY, DELIVERED, BROADCAST = (bytes([number]) for number in (1, 5, 6, 10, 11, 13, 14))
UNDELIVERED, CONSUME, CANCEL_QUEUE, CLOSING, EXCLUSIVE, NOREPLY = (bytes([n]) for n in (16, 20, 21, 22, 32, 33))
NAMES = {
    0: b"NOP", 1: b"CLEAR", 5: b"PING", 6: b"PONG", 10: b"REQUEST", 11: b"REPLY", 13: b"DELIVERED", 14: b"BROADCAST",
    16: b"UNDELIVERED", 20: b"CONSUME", 21: b"CANCEL_QUEUE", 22: b"CLOSING", 23: b"SERVER_FULL", 24: b"CONSUMING",
    32: b"EXCLUSIVE", 33: b"NOREPLY", 64: b"PRIORITY", 65: b"RETRIES", 96: b"QUEUEID", 97: b"TIMEOUT", 98: b"MAX", 128: b"ID",
    160: b"QUEUE", 224: b"PAYLOAD",
}  # fmt: skip
WIDTHS = (0, 0, 1, 2, 4, 1, 2, 4)  # bytes of a parameter or of its length, by the top three bits
FIRST_WITH_DATA = 160


def numbered(command: int, size: int) -> Callable[[int], bytes]:
    """A parameter that is a number of this many bytes."""
    return lambda number: bytes([command]) + number.to_bytes(size, "big")


def sized(command: int, size: int) -> Callable[[bytes], bytes]:
    """A parameter that is data after its length, a number of this many bytes."""
    return lambda data: bytes([command]) + len(data).to_bytes(size, "big") + data


priority, retries = numbered(64, 1), numbered(65, 1)
queue_id, timeout, most = numbered(96, 2), numbered(97, 2), numbered(98, 2)
request_id = numbered(128, 4)
queue, payload = sized(160, 1), sized(224, 4)


class BareEnd:
    """A peer's end without a protocol, which replaces a `ZmtpConnection`: no handshake, frames to send are just joined, and what it receives
    is not decoded."""

    is_ready = True

    def greeting(self) -> bytes:
        return b""

    def take_outgoing(self) -> bytes:
        return b""

    def encode(self, frames: list[bytes]) -> bytes:
        return b"".join(frames)

    def receive(self, data: bytes) -> list[list[bytes]]:
        return [[data]]


class RispEnd(BareEnd):
    def __init__(self) -> None:
        self._data = b""
        self._gathered: dict[bytes, bytes] = {}

    def receive(self, data: bytes) -> list[list[bytes]]:
        self._data += data
        operations: list[list[bytes]] = []
        while self._step(operations):
            pass
        return operations

    def _step(self, operations: list[list[bytes]]) -> bool:
        """Parse one command byte with its parameter, if it is complete."""
        if not self._data:
            return False
        command = self._data[0]
        assert command in NAMES, f"the broker sent {command}, which no peer knows"
        end = 1 + WIDTHS[command >> 5]
        value = self._data[1:end]
        if command >= FIRST_WITH_DATA:
            start, end = end, end + int.from_bytes(value, "big")
            value = self._data[start:end]
        if len(self._data) < end:
            return False
        self._data = self._data[end:]
        if command >= 32:
            is_number = 64 <= command < FIRST_WITH_DATA
            self._gathered[NAMES[command]] = b"%d" % int.from_bytes(value, "big") if is_number else value
        elif command == CLEAR[0]:
            self._gathered.clear()
        else:
            operations.append(self._operation(NAMES[command]))
        return True

    def _operation(self, name: bytes) -> list[bytes]:
        if name in (b"PING", b"PONG"):
            return [name, b"", b"", b"", b""]
        fields = [self._gathered.get(field, b"") for field in (b"ID", b"QUEUEID", b"QUEUE", b"PAYLOAD")]
        return [name, *fields, *(flag for flag in (b"EXCLUSIVE", b"NOREPLY") if flag in self._gathered)]
