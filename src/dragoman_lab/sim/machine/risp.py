"""RISP on the peer's side of an RQ connection, implemented from the protocol's table alone, as an independent check.

A received operation is the frames `name, id, queue id, queue, payload`, each empty if it was absent, followed by the names
of the flags. Operations to send are built from the pieces below, in any order and with any nonsense between them.
"""

from __future__ import annotations

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


def request_id(number: int) -> bytes:
    return b"\x80" + number.to_bytes(4, "big")


def queue(name: bytes) -> bytes:
    return b"\xa0" + bytes([len(name)]) + name


def queue_id(number: int) -> bytes:
    return b"\x60" + number.to_bytes(2, "big")


def payload(data: bytes) -> bytes:
    return b"\xe0" + len(data).to_bytes(4, "big") + data


def most(number: int) -> bytes:
    return b"\x62" + number.to_bytes(2, "big")


def priority(number: int) -> bytes:
    return b"\x40" + bytes([number])


def retries(number: int) -> bytes:
    return b"\x41" + bytes([number])


def timeout(seconds: int) -> bytes:
    return b"\x61" + seconds.to_bytes(2, "big")


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
