"""The broker's sessions of ebus. `EbusSession` is one connection on a ROUTER port: client or worker, or both, depending on how it signs its messages.

The specification shows every message with an empty frame before the signature; the original's workers send none. Both forms are
understood on both ports, with up to two empty frames (a REQ socket adds one), and each role is answered in its own form. One case is
refused: a client's message without the empty frame on the worker port, which the original treats as a broken worker.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.ebus.commands import (
    ANSWER_OPENING,
    ASK_OPENING,
    CLIENT,
    DISCONNECT,
    NULL,
    PREFIXES,
    REPLY,
    WORKER,
)
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.settings import EbusSettings
from dragoman.dialects.ebus.worker_role import WorkerRole
from dragoman.dialects.session import Outboxes, Session, ZmtpSession
from dragoman.dialects.subscriber import TopicSubscriber
from dragoman.limits import NAME_SIZE_MAX
from dragoman.model.enums import EBUS

# Outcomes that a client which reconnected receives in one turn.
UNDELIVERED_STEP: Final = 1000


@final
class EbusSession(WorkerRole):
    """Handles every ebus message; the listener decides how a peer that never signed correctly is rejected."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: EbusDialect) -> None:
        super().__init__(listener, listener_no, outboxes, dialect)
        self.zmtp.reader.prefixes = PREFIXES
        self.is_worker_port: bool = listener == "ebus.worker"
        self.undelivered: list[bytes] = []  # rids of outcomes that still have to be sent to it

    def opened(self) -> None:
        self.takes_one_answer = self.zmtp.peer_socket_type == b"REQ"
        self.set_plain()
        self.ebus.sessions[self.connection_no] = self
        if self.ebus.requests.knows(self.address):
            client_record = self.ebus.requests.arrived(self)
            self.client_record = client_record
            undelivered = client_record.undelivered
            client_record.undelivered = []
            if self.takes_one_answer:
                return
            if client_record.envelope != 1:  # outcomes may be sent before its first message on this connection
                self.client_envelope = client_record.envelope
                self.set_plain()
            self.undelivered = undelivered
            self.send_undelivered()

    def send_undelivered(self) -> None:
        """Send outcomes from the time the client was away, UNDELIVERED_STEP at a time."""
        undelivered = self.undelivered
        self.undelivered = undelivered[UNDELIVERED_STEP:]
        client_record = self.client_record
        if client_record is None:
            return
        for rid in undelivered[:UNDELIVERED_STEP]:
            ended = client_record.find(rid)
            if ended is not None:
                self.send_outcome(rid, ended)

    def has_waiting(self) -> bool:
        return len(self.waiting) > 0 or len(self.undelivered) > 0

    def go_on(self) -> None:
        if self.undelivered:
            self.send_undelivered()
        else:
            super().go_on()

    def ended(self) -> None:
        self.ebus.sessions.pop(self.connection_no, None)
        client_record = self.client_record
        if client_record is not None:
            # Before `goodbye` releases the requests it leased as a worker: they may be its own requests.
            self.client_record = None
            # The next connection receives them.
            client_record.undelivered = self.undelivered + client_record.undelivered
            self.undelivered = []
            self.ebus.requests.left(client_record, self)
        self.exchange.goodbye(self)

    def on_message(self, frames: list[bytes]) -> None:
        if self.is_finished:
            return
        first = frames[0]
        if first is ASK_OPENING or first is ANSWER_OPENING:
            self.on_prefixed(first, frames)
            return
        at = 0
        while at < 2 and at < len(frames) and not frames[at]:
            at += 1
        if len(frames) < at + 2:
            self.exchange.note(self, "EBUS_SHORT_MESSAGE")
            self.disconnect_unknown(at, b"a message needs a sender and a type")
            return
        sender = frames[at]
        if sender == CLIENT:
            if at == 0 and self.is_worker_port:
                self.disconnect_unknown(at, b"a worker signs EBW01")
                return
            if at != self.client_envelope:
                self.client_envelope = at
                self.set_plain()
            self.is_client = True
            self.on_client(frames[at + 1], frames, at + 2)
        elif sender == WORKER:
            if at != self.worker_envelope:
                self.worker_envelope = at
                self.set_plain()
            if self.slots_owed > 0:
                self.give_slots_back()
            self.on_worker(frames[at + 1], frames, at + 2)
        else:
            self.exchange.note(self, "EBUS_UNKNOWN_SENDER")
            self.disconnect_unknown(at, b"unknown sender type")

    def on_prefixed(self, opening: bytes, frames: list[bytes]) -> None:
        """Handle the two messages that make up most of the traffic, in the original's form."""
        if opening is ASK_OPENING:
            if self.client_envelope != 1:
                self.client_envelope = 1
                self.set_plain()
            self.is_client = True
            self.on_request(frames, 1)
            return
        if self.worker_envelope != 0:
            self.worker_envelope = 0
            self.set_plain()
        if self.slots_owed > 0:
            self.give_slots_back()
        self.on_worker(REPLY, frames, 1)

    def set_plain(self) -> None:
        self.is_plain_client = self.client_envelope == 1 and not self.zmtp.is_v1
        self.is_plain_worker = self.worker_envelope == 0 and not self.zmtp.is_v1

    def disconnect_unknown(self, envelope: int, why: bytes) -> None:
        """Reject a peer whose role is unknown: the port decides which role is assumed, the message determines the envelope."""
        if self.is_worker_port:
            self.worker_envelope = envelope
            self.disconnect_at_fault(why)
        else:
            self.client_envelope = envelope
            if self.is_worker:
                self.disconnect_at_fault(why)
            else:
                self.disconnect_client(why)

    def beat(self, now_ns: int) -> None:
        if self.is_worker and not self.is_finished:
            self.beat_worker(now_ns)

    def say_goodbye(self) -> None:
        """Send DISCONNECT because the broker stops."""
        if self.is_worker:
            self.send_worker_now([DISCONNECT, b"broker is stopping"])
        elif self.is_client:
            self.send_client_now([DISCONNECT, b"broker is stopping"])


@final
class EbusPublisher(ZmtpSession):
    """A publisher's connection: PUB peers send `channel, data` to our XSUB. A libzmq PUB sends nothing without a subscription, so it gets the empty subscription right after the handshake."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes) -> None:
        super().__init__(EBUS, listener, listener_no, outboxes, b"XSUB")

    def opened(self) -> None:
        subscription = self.zmtp.subscribe_bytes(b"")
        if subscription:
            self.free_out.write(subscription)
            self.touch()

    def on_message(self, frames: list[bytes]) -> None:
        channel = frames[0]
        if len(channel) > NAME_SIZE_MAX:
            self.exchange.note(self, "TOPIC_TOO_LONG")
        elif len(frames) > 2:
            self.exchange.note(self, "EBUS_ODD_NEWS")
        else:
            self.exchange.publish(self, channel, frames[1] if len(frames) == 2 else NULL)


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> EbusDialect:
    return EbusDialect(outboxes, EbusSettings())


def new_session(dialect: EbusDialect, listener: str, listener_no: int) -> Session:
    if listener == "ebus.subscribe":
        return TopicSubscriber(EBUS, listener, listener_no, dialect.outboxes, b"XPUB")
    if listener == "ebus.publish":
        return EbusPublisher(listener, listener_no, dialect.outboxes)
    return EbusSession(listener, listener_no, dialect.outboxes, dialect)
