"""The client's end of ebus: requests to bytes, the broker's bytes to outcomes. No sockets, no clock.

    REQ ──► REPLY or REJECT under its rid          PING after half a second of silence, DISCONNECT or five misses: over

A call's id is its rid. Sent again on another connection under the same identity, or with the same data, it attaches to the first.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import BytesWriter

from dragoman.dialects.ebus.data import text_in
from dragoman.dialects.ebus.pulse import DEAD, PING_DUE, Pulse
from dragoman.dialects.ebus.stales import in_ms
from dragoman.dialects.ebus.words import (
    ASK_OPENING,
    CANCEL,
    CLIENT,
    DISCONNECT,
    HEARTBEAT,
    PING,
    REJECT,
    REPLY,
    WORKER,
)
from dragoman.dialects.sides import ANSWERED, FAILED, REFUSED, ClientSide, Wish
from dragoman.model.words import REFUSAL_CODES
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message, write_frame

HEARTBEAT_S: Final = 0.5
MISSES_MAX: Final = 5
REFUSALS: Final = [code.encode() for code in REFUSAL_CODES[1:]]
# A bare REJECT means that the request has expired.
EXPIRED: Final = b"PAST_EXPIRY: past expiry"


@final
class EbusClientSide(ClientSide):
    """One client connection."""

    def __init__(self, identity: bytes, message_size_max: int) -> None:
        super().__init__()
        self.zmtp = ZmtpConnection(b"DEALER", False, identity, message_size_max)
        self.pulse = Pulse(HEARTBEAT_S, MISSES_MAX)
        self.services: dict[bytes, bytes] = {}  # rid → service of what was asked and is not answered
        self.out = BytesWriter()

    def opening(self) -> bytes:
        return self.zmtp.greeting()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        said: list[tuple[int, bytes, bytes]] = []
        for frames in self.zmtp.receive(data):
            self.hear(frames, said)
        self.is_ready = self.zmtp.is_ready
        return said

    def hear(self, frames: list[bytes], said: list[tuple[int, bytes, bytes]]) -> None:
        count = len(frames)
        if count < 3 or frames[0] or frames[1] != WORKER:
            return  # not for us
        self.pulse.has_heard = True
        word = frames[2]
        if word == REPLY or word == REJECT:
            # An answer to what we did not ask, or were told already, is nothing.
            if count < 4 or self.services.pop(frames[3], None) is None:
                return
            value = frames[4] if count > 4 else b""
            if word == REPLY:
                said.append((ANSWERED, frames[3], value))
            else:
                reason = text_in(value) if value else EXPIRED
                is_refusal = reason.partition(b":")[0] in REFUSALS
                said.append((REFUSED if is_refusal else FAILED, frames[3], reason))
        elif word == PING:
            self.tell([HEARTBEAT])
        elif word == DISCONNECT:
            self.is_over = True
            self.problem = frames[3].decode("utf-8", "replace") if count > 3 else "the broker sent us away"

    def request(self, call_id: bytes, wish: Wish, body: bytes) -> None:
        """The wish's expiry is `stales ms`; where it has none, a bound on the one attempt serves as well."""
        self.services[call_id] = wish.queue
        stales_ns = wish.expires_ns if wish.expires_ns > 0 else wish.timeout_ns
        out = self.out
        out.write(ASK_OPENING)
        write_frame(out, wish.queue, True)
        write_frame(out, call_id, True)
        write_frame(out, body, stales_ns > 0)
        if stales_ns > 0:
            write_frame(out, in_ms(stales_ns), False)

    def cancel(self, call_id: bytes) -> None:
        service = self.services.get(call_id)
        if service is not None:
            self.tell([CANCEL, service, call_id])

    def publish(self, topic: bytes, body: bytes) -> None:
        raise AssertionError("ebus publishes on a connection of its own")

    def beat(self, now_s: float) -> None:
        if not self.is_ready or self.is_over:
            return
        found = self.pulse.beat(now_s)
        if found == PING_DUE:
            self.tell([PING])
        elif found == DEAD:
            self.is_over = True
            self.problem = "the broker is silent"

    def take_out(self) -> bytes:
        data = self.zmtp.take_outgoing()
        if self.is_ready and len(self.out) > 0:
            data += self.out.getvalue()
            self.out = BytesWriter()
        return data

    def tell(self, frames: list[bytes]) -> None:
        self.out.write(encode_message([b"", CLIENT, *frames]))
