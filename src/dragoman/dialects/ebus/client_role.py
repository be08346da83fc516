"""The client role of an ebus connection: requests in, outcomes out.

REQ ──► submitted ──► REPLY or REJECT, once         the same rid again: attached, or the outcome is sent again
CANCEL, REJECT ──► the request ends                 PING ──► HEARTBEAT         SERVICES, WORKERS ──► the same with data
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter

from dragoman.dialects.ebus import commands
from dragoman.dialects.ebus.data import pack, reject_data
from dragoman.dialects.ebus.dialect import EbusDialect
from dragoman.dialects.ebus.requests import ClientRecord, Ended, recipient_of
from dragoman.dialects.ebus.stales import STALES_NS_MAX, in_ms
from dragoman.dialects.session import Outboxes, ZmtpSession
from dragoman.limits import INLINE_BODY_SIZE_MAX
from dragoman.model.enums import BY_CLIENT, EBUS, EXPIRES_HELD, REFUSAL_CODES, REFUSAL_TEXTS, REPLY_WANTED, TAKEN
from dragoman.model.message import Message
from dragoman.wire.zmtp.frames import write_frame

# Lookups of existing requests in one turn of this connection.
LOOKED_UP_PER_TURN: Final = 100


class ClientRole(ZmtpSession):
    """Handles all messages signed EBC01."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: EbusDialect) -> None:
        super().__init__(EBUS, listener, listener_no, outboxes, b"ROUTER")
        self.ebus = dialect
        self.client_envelope: int = 1  # empty frames before the signature
        self.is_plain_client: bool = True  # the usual envelope and frame form: the fast output path applies
        self.is_client: bool = False
        self.client_record: ClientRecord | None = None
        self.looked_up: int = 0  # lookups of existing requests so far
        self.unwanted: int = 0  # the request that the client is ending by a REJECT: its outcome is not sent

    # -- messages from the client ---------------------------------------------------------------------------------------

    def on_client(self, word: bytes, frames: list[bytes], at: int) -> None:
        """`at` is the index of the first frame after the command."""
        if word == commands.REQ or word == commands.REQUEST:
            self.on_request(frames, at)
        elif word == commands.PING:
            self.send_client_now([commands.HEARTBEAT])
        elif word == commands.HEARTBEAT:
            pass
        elif word == commands.CANCEL:
            self.on_cancel(frames, at + 1 if len(frames) > at + 1 else at, True)
        elif word == commands.REJECT:
            self.on_cancel(frames, at, False)
        elif word == commands.SERVICES:
            self.send_client_now([commands.SERVICES, b"", self.ebus.worker_list().services()])
            self.had_enough = True
        elif word == commands.WORKERS:
            self.send_client_now([commands.WORKERS, b"", self.ebus.worker_list().workers()])
            self.had_enough = True
        elif word == commands.DISCONNECT:
            if not self.is_worker:
                self.finish()
        else:
            self.exchange.note(self, "EBUS_UNKNOWN_MESSAGE")
            self.disconnect_client(b"unknown message type")

    def on_request(self, frames: list[bytes], at: int) -> None:
        count = len(frames)
        if count < at + 2 or not frames[at]:
            self.exchange.note(self, "EBUS_SHORT_MESSAGE")
            self.disconnect_client(b"a request needs a service and a rid")
            return
        client_record = self.client_record
        if client_record is None:
            client_record = self.ebus.requests.arrived(self)
            self.client_record = client_record
        client_record.envelope = self.client_envelope
        queue = frames[at]
        rid = frames[at + 1]
        body = frames[at + 2] if count > at + 2 else commands.NULL
        if self.is_known(client_record, rid):
            return
        if self.ebus.requests.has_orphans():
            self.look_up()
            self.ebus.requests.adopt(client_record, rid, queue, body)
            if self.is_known(client_record, rid):
                return
        m = Message(EBUS, queue, rid, body)
        stales = self.ebus.stales
        stales_ns = stales.of(frames[at + 3]) if count > at + 3 else 0
        if stales_ns > 0:
            m.headers = frames[at + 3] if stales_ns < STALES_NS_MAX else in_ms(stales_ns)
        else:
            stales_ns = stales.default_ns
            m.headers = stales.default_text
        m.flags = REPLY_WANTED | EXPIRES_HELD
        m.expires_ns = self.exchange.now_ns + stales_ns
        m.client = self
        m.address = self.address
        refusal = self.exchange.submit(m)
        if refusal == TAKEN:
            client_record.open[rid] = m.key  # its number as an object that exists already
        else:
            text = f"{REFUSAL_CODES[refusal]}: {REFUSAL_TEXTS[refusal]}"
            self.send_client_now([commands.REJECT, rid, pack(text, self.ebus.settings.is_json)])

    def is_known(self, client_record: ClientRecord, rid: bytes) -> bool:
        """Whether the request exists already. If it is open, its outcome is redirected to this connection; if it has ended, it is sent again."""
        number = client_record.open.get(rid, 0)
        if number != 0:
            self.look_up()
            m = self.exchange.fetch(number)
            if m is not None:
                if m.client is not self:
                    self.ebus.requests.claim(m, rid, recipient_of(m, client_record, self))
                return True
            del client_record.open[rid]  # it has ended without anyone to notify
        ended = client_record.find(rid)
        if ended is not None:
            self.send_outcome(rid, ended)
            return True
        return False

    def look_up(self) -> None:
        """Count a lookup, which may cost a disk read: after many, the rest of the input waits for the next turn."""
        self.looked_up += 1
        if self.looked_up % LOOKED_UP_PER_TURN == 0:
            self.had_enough = True

    def on_cancel(self, frames: list[bytes], at: int, is_confirmed: bool) -> None:
        """CANCEL: the request ends and the client is notified. REJECT: the client does not want the reply; nothing more is sent for it."""
        client_record = self.client_record
        number = client_record.open.get(frames[at], 0) if client_record is not None and len(frames) > at else 0
        self.look_up()
        m = self.exchange.fetch(number) if number != 0 else None
        if m is None:
            if is_confirmed:
                self.exchange.note(self, "EBUS_NOTHING_TO_CANCEL")
            return
        if m.client is not self and client_record is not None:
            self.ebus.requests.claim(m, frames[at], recipient_of(m, client_record, self))
        if not is_confirmed:
            self.unwanted = m.number
        self.exchange.cancel(m, BY_CLIENT)
        self.unwanted = 0

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def answered(self, message: Message, value: bytes) -> None:
        self.remember(message, value, True, False)
        if self.is_plain_client:
            out = self.held_out
            out.write(commands.REPLY_OPENING)
            write_frame(out, message.client_id, True)
            self.write_body(out, value, False)
            self.touch()
        else:
            self.send_client([commands.REPLY, message.client_id, value])

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """An expired request is rejected without a reason, as in the original; any other with the worker's reason, or ours."""
        value = reject_data(reason, value, self.ebus.settings.is_json)
        self.remember(message, value, len(value) > 0, True)
        if message.number == self.unwanted:
            return
        if self.is_plain_client:
            out = self.held_out
            out.write(commands.REJECT_OPENING)
            write_frame(out, message.client_id, len(value) > 0)
            if value:
                self.write_body(out, value, False)
            self.touch()
        else:
            self.send_client(
                [commands.REJECT, message.client_id, value] if value else [commands.REJECT, message.client_id]
            )

    def remember(self, message: Message, value: bytes, has_value: bool, is_rejected: bool) -> None:
        client_record = self.client_record
        if client_record is None:  # requested on another connection with the same identity
            client_record = self.ebus.requests.client_records.get(message.address)
        if client_record is not None:
            self.ebus.requests.ended(client_record, message, value, has_value, is_rejected)

    def send_outcome(self, rid: bytes, ended: Ended) -> None:
        """Send a remembered outcome."""
        frames = [commands.REJECT if ended.is_rejected else commands.REPLY, rid]
        if ended.has_value:
            frames.append(ended.value)
        self.send_client(frames)

    # -- envelopes ------------------------------------------------------------------------------------------------------

    def write_body(self, out: BytesWriter, body: bytes, more: bool) -> None:
        """Append a frame of any size to the output that waits for a commit, whose writer is `out`; a large one is passed by reference, not copied."""
        if len(body) <= INLINE_BODY_SIZE_MAX:
            write_frame(out, body, more)
        else:
            self.hold_frame(body, more)

    def send_client(self, frames: list[bytes]) -> None:
        self.say([b""] * self.client_envelope + [commands.WORKER, *frames])

    def send_client_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.client_envelope + [commands.WORKER, *frames])

    def disconnect_client(self, why: bytes) -> None:
        """Send DISCONNECT with the reason, in the client's own envelope, and end the connection."""
        self.send_client([commands.DISCONNECT, why])
        self.finish()
