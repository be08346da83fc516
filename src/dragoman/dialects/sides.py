"""The other ends of the dialects, for programs that connect to a broker: no sockets, no clock.

A client program drives a side so, whatever the dialect:

    connect ─► opening() is sent ─► receive(data) … until is_ready ─► request(…) … receive(data) says what became of each
    after every call that may have made something to send: take_out()
    four times a second: beat(now_s), which makes signs of life that are due and notices a broker that is silent

When `is_over` is set the connection is of no more use for new work: connect anew, to `moved_to` if it is set, else to the next
address. Set by `receive`, the broker sent us away and may still settle what is under way; set by `beat`, it is silent and the
connection is cut. A side serves one connection; a new connection gets a new side, made as `Side(identity, message_size_max)`, the
identity being unused where the wire has none. A broker that is full or silent must show before `is_ready` where the dialect
allows it (rq: a PING of ours is answered first), so that nothing is sent to it and lost.
"""

from __future__ import annotations

from typing import Final, final

# What a broker says of a call: (what, call id, value).
KEPT: Final = 1  # it is in the journal
ANSWERED: Final = 2  # the worker's answer, as its bytes
FAILED: Final = 3  # there will be no answer; the value says why, as text or as the worker's bytes
REFUSED: Final = 4  # it was not taken at all; the value says why


@final
class Wish:
    """What a call asks for, in the words all dialects share; a dialect that lacks a word leaves it out.

    Which ones each dialect can say is declared in dialects/crossing.py; the client refuses the others before they come here.
    """

    def __init__(self, queue: bytes) -> None:
        self.queue = queue
        self.wants_reply: bool = True
        self.retries: int = -1  # -1: not said
        self.timeout_ns: int = 0  # 0: not said
        self.expires_ns: int = 0  # 0: not said
        self.priority: int = 0


class Side:
    """What clients and workers share."""

    def __init__(self) -> None:
        self.is_ready: bool = False  # the handshake is done: it may be used
        self.is_over: bool = False  # the broker sent us away, or is silent: connect anew
        self.moved_to: bytes = b""  # where the broker sent us; empty: the next address
        self.problem: str = ""  # why it is over, in words

    def opening(self) -> bytes:
        """What is sent first."""
        raise NotImplementedError

    def beat(self, now_s: float) -> None:
        """Four times a second, by a clock that never jumps."""
        raise NotImplementedError

    def take_out(self) -> bytes:
        """What there is to send."""
        raise NotImplementedError


class ClientSide(Side):
    """One client connection."""

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        """What the bytes say of calls: (KEPT, ANSWERED, FAILED or REFUSED, call id, value). Raises a PeerError."""
        raise NotImplementedError

    def request(self, call_id: bytes, wish: Wish, body: bytes) -> None:
        """Ask; what was said of it comes under `call_id`, a text unique among this program's calls."""
        raise NotImplementedError

    def cancel(self, call_id: bytes) -> None:
        """Give up a call, where the dialect has a word for it."""
        raise NotImplementedError

    def publish(self, topic: bytes, body: bytes) -> None:
        """Tell the subscribers of a topic; only where the dialect publishes on this connection."""
        raise NotImplementedError


class WorkerSide(Side):
    """One worker connection. `is_ready` means: the broker has taken us on."""

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Serve these (weight, name) pairs with so many slots; said once, as soon as the handshake allows."""
        raise NotImplementedError

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        """The jobs in the bytes: (request id, seconds it may take or 0, body). Raises a PeerError."""
        raise NotImplementedError

    def take_cancelled(self) -> list[bytes]:
        """Request ids the broker has withdrawn since."""
        return []

    def ready(self, slots: int) -> None:
        """So many slots are free again; called once for each job answered, after its answer."""
        raise NotImplementedError

    def reply(self, request_id: bytes, value: bytes) -> None:
        raise NotImplementedError

    def goodbye(self) -> None:
        """Take nothing new; what runs is still answered."""
        raise NotImplementedError


class SubscriberSide(Side):
    """One subscriber connection."""

    def subscribe(self, prefix: bytes) -> None:
        raise NotImplementedError

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        """The news in the bytes: (topic, body). Raises a PeerError."""
        raise NotImplementedError


class PublisherSide(Side):
    """One connection that only publishes, where publishers have a port of their own."""

    def receive(self, data: bytes) -> None:
        """Take what the broker says: subscriptions, signs of life. Raises a PeerError."""
        raise NotImplementedError

    def publish(self, topic: bytes, body: bytes) -> None:
        raise NotImplementedError
