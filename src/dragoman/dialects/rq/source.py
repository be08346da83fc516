"""A source of requests, either a node or another controller: the core's callbacks for it, as rq messages."""

from __future__ import annotations

from librt.strings import write_i32_be
from mypy_extensions import i32

from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.session import Outboxes, Session
from dragoman.errors import PeerError
from dragoman.limits import INLINE_BODY_SIZE_MAX
from dragoman.model.enums import REPLY_WANTED, RQ
from dragoman.model.message import Message
from dragoman.model.peer import address_of
from dragoman.wire.risp.commands import DELIVERED, PAYLOAD, REPLY, UNDELIVERED
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.writer import CLEAR_ID


class RqSource(Session):
    """One connection that requests come from and their answers go to."""

    reader: RispReader  # each subclass creates it, with its own handler

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: RqDialect) -> None:
        super().__init__(RQ, listener, outboxes)
        self.listener_no = listener_no
        self.rq = dialect
        self.pending: int = 0  # its requests that are not answered yet
        self.is_closing: bool = False  # it sent CLOSING: the connection ends once no answer is pending
        self.is_pinged: bool = False  # a PING was sent, and nothing was received since

    def receive(self, data: bytes) -> None:
        self.last_sign_ns = self.exchange.now_ns
        self.is_pinged = False
        tap = self.tap
        if tap is not None:
            tap(False, [data])
        self.received_size += len(data)
        self.outboxes.traffic_size += len(data)
        try:
            self.reader.feed(data)
        finally:
            self.note_operation()

    def abandon(self, fault: PeerError) -> None:
        self.reader = RispReader(self.reader.handler, 0)
        self.note_unfinished(0, True, False)

    def missing_size(self) -> int:
        return self.reader.missing_size()

    def forget_spent(self) -> None:
        self.reader.forget_spent()
        self.note_operation()

    def silence_ns(self) -> int:
        """How long nothing was received; while the runtime does not read, that does not count."""
        if self.is_unread:
            self.last_sign_ns = self.exchange.now_ns
        return self.exchange.now_ns - self.last_sign_ns

    def enter(self) -> None:
        """Register the new connection."""
        self.address = address_of(self.listener_no, b"", self.outboxes.boot_no, self.connection_no)
        self.last_sign_ns = self.exchange.now_ns
        self.rq.sessions[self.connection_no] = self
        self.exchange.hello(self)

    def note_operation(self) -> None:
        """Account for the bytes that the reader stores after a read: an incomplete operation, or the payload of the last one."""
        reader = self.reader
        size = reader.unfinished_size()
        if size != self.unfinished_size or self.is_unfinished:
            is_cut_short = reader.is_cut_short()
            self.note_unfinished(size, not is_cut_short or size < self.unfinished_size, is_cut_short)

    def exit(self) -> None:
        """Unregister the connection that has ended."""
        self.rq.sessions.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def finish_if_done(self) -> None:
        """End the connection of a peer that sent CLOSING, once no answer is pending in either direction."""
        raise NotImplementedError

    # -- callbacks of the core, for a source ----------------------------------------------------------------------------

    def kept(self, message: Message) -> None:
        """Send DELIVERED for a request without a reply, which is its only answer."""
        self.say_of(message, DELIVERED)

    def handed_over(self, message: Message) -> None:
        self.say_of(message, DELIVERED)

    def answered(self, message: Message, value: bytes) -> None:
        if not message.flags & REPLY_WANTED:
            return
        self.pending -= 1
        size = len(value)
        if size == 0 and self.rq.settings.librq_safe:
            self.exchange.note(self, "RQ_EMPTY_BODY_REFUSED")
            self.say_undelivered(message)
            return
        out = self.held_out
        out.write(CLEAR_ID)
        out.write(message.client_id)
        out.append(PAYLOAD)
        write_i32_be(out, i32(size))
        if size <= INLINE_BODY_SIZE_MAX:
            out.write(value)
        else:
            self.hold_part(value)
        self.held_out.append(REPLY)
        self.touch()
        if self.is_closing:
            self.finish_if_done()

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """Send UNDELIVERED, rq's only message for a failure; a request without a reply already had its only answer."""
        if message.flags & REPLY_WANTED:
            self.pending -= 1
            self.say_undelivered(message)
            if self.is_closing:
                self.finish_if_done()

    def say_undelivered(self, message: Message) -> None:
        self.say_of(message, UNDELIVERED)

    def say_of(self, message: Message, command: int) -> None:
        """Send one of the commands that carry only an id."""
        out = self.held_out
        out.write(CLEAR_ID)
        out.write(message.client_id)
        out.append(command)
        self.touch()

    # -- output ---------------------------------------------------------------------------------------------------------

    def say_now(self, data: bytes) -> None:
        """Send bytes that do not depend on a fact."""
        if self.is_connected:
            self.free_out.write(data)
            self.touch()
