"""A peer's side of a connection before ZMTP 3.0, implemented from the two old protocols' descriptions alone, as an independent check.

1.0   no greeting: one frame, the identity. Our own first ten bytes are to it the header of our identity frame.
      frame  size + 1 (1 byte, or 0xFF and 8 bytes), flags (bit 0 more), body
2.0   0xFF, 8 bytes, 0x7F, revision 1, socket type (1 byte), then the identity as a frame
      frame  flags (bit 0 more, bit 1 long), size (1 byte, or 8), body
"""

from __future__ import annotations

SOCKET_CODES = {b"PUB": 1, b"SUB": 2, b"REQ": 3, b"DEALER": 5}
SIGNATURE_SIZE = 10
GREETING_SIZE_V2 = 12
MORE = 1
LONG = 2


class LegacyEnd:
    """A peer that uses ZMTP 1.0 or 2.0 (`version`) with a broker that also supports 3.1."""

    def __init__(self, version: int, socket_type: bytes, identity: bytes) -> None:
        assert version in (1, 2)
        self._version, self._socket_type, self._identity = version, socket_type, identity
        self._data = b""
        self._greeting_left = SIGNATURE_SIZE if version == 1 else GREETING_SIZE_V2
        self._has_identity = version == 1  # ours came as the signature: it is empty
        self._frames: list[bytes] = []
        self.is_ready = False

    def greeting(self) -> bytes:
        if self._version == 1:
            return self.encode([self._identity])
        head = b"\xff" + (len(self._identity) + 1).to_bytes(8, "big") + b"\x7f\x01"
        return head + bytes([SOCKET_CODES[self._socket_type]]) + self.encode([self._identity])

    def take_outgoing(self) -> bytes:
        return b""

    def encode(self, frames: list[bytes]) -> bytes:
        last = len(frames) - 1
        return b"".join(self._frame(frame, MORE if at < last else 0) for at, frame in enumerate(frames))

    def _frame(self, body: bytes, flags: int) -> bytes:
        if self._version == 1:
            size = len(body) + 1
            head = bytes([size]) if size < 0xFF else b"\xff" + size.to_bytes(8, "big")
            return head + bytes([flags]) + body
        if len(body) > 0xFF:
            return bytes([flags | LONG]) + len(body).to_bytes(8, "big") + body
        return bytes([flags, len(body)]) + body

    def receive(self, data: bytes) -> list[list[bytes]]:
        self._data += data
        if self._greeting_left:
            size = min(self._greeting_left, len(self._data))
            self._data = self._data[size:]
            self._greeting_left -= size
        if not self._greeting_left and self._has_identity:
            self.is_ready = True
        messages: list[list[bytes]] = []
        while not self._greeting_left and (found := self._next_frame()) is not None:
            body, has_more = found
            if not self._has_identity:
                self._has_identity = self.is_ready = True
                continue
            self._frames.append(body)
            if not has_more:
                messages.append(self._frames)
                self._frames = []
        return messages

    def _next_frame(self) -> tuple[bytes, bool] | None:
        head = self._head_v1() if self._version == 1 else self._head_v2()
        if head is None:
            return None
        at, size, flags = head
        if len(self._data) < at + size:
            return None
        body, self._data = self._data[at : at + size], self._data[at + size :]
        return body, flags & MORE != 0

    def _head_v1(self) -> tuple[int, int, int] | None:
        """The body's offset, its size, and the flags."""
        data = self._data
        if not data or len(data) < (at := 10 if data[0] == 0xFF else 2):
            return None
        size = int.from_bytes(data[1:9], "big") if data[0] == 0xFF else data[0]
        return at, size - 1, data[at - 1]

    def _head_v2(self) -> tuple[int, int, int] | None:
        data = self._data
        if not data or len(data) < (at := 9 if data[0] & LONG else 2):
            return None
        assert not data[0] & ~(MORE | LONG), "a flag that 2.0 does not know"
        return at, int.from_bytes(data[1:at], "big"), data[0]
