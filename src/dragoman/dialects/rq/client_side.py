"""The source's end of rq: requests to bytes, the controller's bytes to answers. No sockets, no clock.

REQUEST            ─► DELIVERED … REPLY, or UNDELIVERED      a consumer has it; its answer, or why there will be none
REQUEST NOREPLY    ─► DELIVERED                              it is kept, and nothing more is said
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.rq.ids import FreeIds
from dragoman.dialects.rq.node import NodeEar, check_name
from dragoman.dialects.sides import ANSWERED, FAILED, KEPT, REFUSED, ClientSide, Wish
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import UNSAID
from dragoman.wire.risp.writer import encode_broadcast, encode_request, id_bytes

RETRIES_MAX: Final = 255
TIMEOUT_S_MAX: Final = 65535
UNDELIVERED_TEXT: Final = b"UNDELIVERED"


@final
class Call:
    """A request that is not settled yet."""

    def __init__(self, call_id: bytes, wants_reply: bool) -> None:
        self.call_id = call_id
        self.wants_reply = wants_reply
        self.is_delivered: bool = False


@final
class ClientEar(NodeEar):
    """Hears what becomes of requests."""

    def __init__(self) -> None:
        super().__init__()
        self.ids = FreeIds()
        self.calls: dict[int, Call] = {}
        self.said: list[tuple[int, bytes, bytes]] = []

    def end(self, request_id: i64) -> Call | None:
        call = self.calls.pop(int(request_id), None)
        if call is not None:
            self.ids.give(request_id)
        return call

    def on_delivered(self, request_id: i64) -> None:
        call = self.calls.get(int(request_id))
        if call is None:
            return
        call.is_delivered = True
        if not call.wants_reply:
            self.end(request_id)
            self.said.append((KEPT, call.call_id, b""))

    def on_reply(self, request_id: i64, body: bytes) -> None:
        call = self.end(request_id)
        if call is not None:
            self.said.append((ANSWERED, call.call_id, body))

    def on_undelivered(self, request_id: i64) -> None:
        call = self.end(request_id)
        if call is not None:
            # A closing controller takes nothing new; otherwise nobody knows whether a consumer had it.
            is_refused = self.is_closing and not call.is_delivered
            self.said.append((REFUSED if is_refused else FAILED, call.call_id, UNDELIVERED_TEXT))


@final
class RqClientSide(ClientSide):
    """One source's connection. After CLOSING it is over once nothing is owed any more."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.ear = ClientEar()
        self.reader = RispReader(self.ear, message_size_max)

    def opening(self) -> bytes:
        self.is_ready = True  # a node just begins
        return b""

    def beat(self, now_s: float) -> None:
        self.ear.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        ear = self.ear
        ear.has_heard = True
        self.reader.feed(data)
        self.look()
        said = ear.said
        ear.said = []
        return said

    def look(self) -> None:
        ear = self.ear
        if ear.is_full or ear.is_silent or (ear.is_closing and not ear.calls):
            self.is_over = True
            self.problem = ear.problem()

    def take_out(self) -> bytes:
        return self.ear.take_out()

    def request(self, call_id: bytes, wish: Wish, body: bytes) -> None:
        check_name(wish.queue)
        ear = self.ear
        request_id = int(ear.ids.take())
        ear.calls[request_id] = Call(call_id, wish.wants_reply)
        retries = min(wish.retries, RETRIES_MAX) if wish.retries >= 0 else UNSAID
        timeout_s = UNSAID
        if wish.expires_ns > 0:
            timeout_s = min(-(-wish.expires_ns // SECOND_NS), TIMEOUT_S_MAX)
        ear.out.write(encode_request(id_bytes(request_id), wish.queue, body, not wish.wants_reply, retries, timeout_s))

    def cancel(self, call_id: bytes) -> None:
        """rq has no word for it."""

    def publish(self, topic: bytes, body: bytes) -> None:
        check_name(topic)
        self.ear.out.write(encode_broadcast(topic, body))
