"""The client's end of the ping-pong dialogue, in the plain form: orders to bytes, the broker's bytes to results.

Nothing carries an id: the n-th message from the broker answers the n-th order of the connection. So it never claims an identity:
what an earlier connection asked must not be answered here.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.pingpong.words import DELIMITER, ERROR
from dragoman.dialects.sides import ANSWERED, FAILED, REFUSED, ClientSide, Wish
from dragoman.model.words import REFUSAL_CODES
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import write_frame

REFUSALS: Final = [code.encode() for code in REFUSAL_CODES] + [b"BAD_ORDER"]


@final
class PingpongClientSide(ClientSide):
    """One client connection."""

    def __init__(self, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"DEALER", False, b"", message_size_max)
        self.calls: deque[bytes] = deque()
        self.out = BytesWriter()

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        said: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            if len(frames) < 2 or frames[0] or not self.calls:
                continue
            call_id = self.calls.popleft()
            if len(frames) > 2 and frames[1] == ERROR:
                is_refusal = frames[2].partition(b":")[0] in REFUSALS
                said.append((REFUSED if is_refusal else FAILED, call_id, frames[2]))
            else:
                said.append((ANSWERED, call_id, frames[1]))
        self.is_ready = self.zmtp.is_ready
        return said

    def request(self, call_id: bytes, wish: Wish, body: bytes) -> None:
        """The port has one queue, so the wish's is not said."""
        self.calls.append(call_id)
        self.out.write(DELIMITER)
        write_frame(self.out, body, False)

    def cancel(self, call_id: bytes) -> None:
        """There is no word for it; the answer keeps its place in the order."""

    def beat(self, now_s: float) -> None:
        """Clients give no signs of life."""

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data
