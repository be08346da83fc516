"""The common part of every node: PING and PONG, and detecting a controller that is closing, full or silent."""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter
from mypy_extensions import i64

from dragoman.wire.risp.handler import RispHandler
from dragoman.wire.risp.writer import PING_BYTES, PONG_BYTES

# After this long without a byte from the controller: PING; after as long again it counts as silent. The protocol's own number.
SILENCE_S: Final = 15.0

CLOSING_TEXT: Final = "the broker is closing"
FULL_TEXT: Final = "the broker has as many connections as it takes"
SILENT_TEXT: Final = "the broker does not answer PING"


class NodeHandler(RispHandler):
    """A node's handler for its controller. Operations that do not concern it are ignored, as the protocol requires."""

    def __init__(self) -> None:
        self.out = BytesWriter()
        self.is_closing: bool = False  # no new requests; pending answers may still arrive
        self.is_full: bool = False
        self.is_silent: bool = False
        self.has_received: bool = True
        self.is_pinged: bool = False
        self.heard_s: float = 0.0

    def problem(self) -> str:
        """Why the connection is unusable, or soon will be."""
        if self.is_full:
            return FULL_TEXT
        if self.is_silent:
            return SILENT_TEXT
        return CLOSING_TEXT if self.is_closing else ""

    def beat(self, now_s: float) -> None:
        if self.has_received:
            self.has_received = False
            self.is_pinged = False
            self.heard_s = now_s
        elif now_s - self.heard_s >= SILENCE_S:
            if not self.is_pinged:
                self.is_pinged = True
                self.out.write(PING_BYTES)
            elif now_s - self.heard_s >= 2 * SILENCE_S:
                self.is_silent = True

    def data_to_send(self) -> bytes:
        if len(self.out) == 0:
            return b""
        data = self.out.getvalue()
        self.out = BytesWriter()
        return data

    def on_request(
        self,
        request_id: bytes,
        queue: bytes,
        queue_id: i64,
        body: bytes,
        is_noreply: bool,
        retries: i64,
        timeout_s: i64,
    ) -> None:
        pass

    def on_delivered(self, request_id: i64) -> None:
        pass

    def on_reply(self, request_id: i64, body: bytes) -> None:
        pass

    def on_undelivered(self, request_id: i64) -> None:
        pass

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        pass

    def on_consume(self, queue: bytes, queue_id: i64, messages_max: i64, priority: i64, is_exclusive: bool) -> None:
        pass

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        pass

    def on_cancel_queue(self, queue: bytes, queue_id: i64) -> None:
        pass

    def on_ping(self) -> None:
        self.out.write(PONG_BYTES)

    def on_pong(self) -> None:
        pass

    def on_closing(self) -> None:
        self.is_closing = True

    def on_server_full(self) -> None:
        self.is_full = True

    def on_stray(self, command: i64) -> None:
        pass


def check_name(queue: bytes) -> None:
    """Raise ValueError unless the name has 1 to 255 bytes: its length on the wire is one byte, and an empty name does not exist."""
    if not 1 <= len(queue) <= 255:
        raise ValueError(f"the name of an rq queue has 1 to 255 bytes, not {len(queue)}")
