"""A source: whoever asks, be it a node or another controller's broker. The core's verbs towards it, as rq words them."""

from __future__ import annotations

from librt.strings import write_i32_be
from mypy_extensions import i32

from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.session import Hub, Session, address_of
from dragoman.limits import INLINE_BODY_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.words import REPLY_WANTED, RQ
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import DELIVERED, PAYLOAD, REPLY, UNDELIVERED
from dragoman.wire.risp.writer import CLEAR_ID


class RqSource(Session):
    """One connection over which requests come and their answers go."""

    def __init__(self, listener: str, listener_no: int, hub: Hub, dialect: RqDialect) -> None:
        super().__init__(RQ, listener, hub)
        self.listener_no = listener_no
        self.rq = dialect
        self.asked: int = 0  # requests of its that are owed an answer
        self.is_closing: bool = False  # it said CLOSING: the connection ends once nothing is owed

    def enter(self) -> None:
        """The connection is there."""
        self.address = address_of(self.listener_no, b"", self.hub.boot_no, self.connection_no)
        self.last_sign_ns = self.exchange.now_ns
        self.rq.sessions[self.connection_no] = self
        self.exchange.hello(self)

    def note_operation(self, reader: RispReader) -> None:
        """Keep account of what the reader keeps after a read: an operation cut short, or the payload of the last one."""
        size = reader.unfinished_size()
        if size != self.unfinished_size or self.is_unfinished:
            is_cut_short = reader.is_cut_short()
            self.note_unfinished(size, not is_cut_short or size < self.unfinished_size, is_cut_short)

    def exit(self) -> None:
        """The connection is gone."""
        self.rq.sessions.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def finish_if_done(self) -> None:
        """End the connection of one that said CLOSING, once nothing is owed either way."""
        raise NotImplementedError

    # -- the core's verbs, towards a source -----------------------------------------------------------------------------

    def kept(self, message: Message) -> None:
        """A request without a reply is delivered once it is kept, and nothing more is said of it."""
        self.say_of(message, DELIVERED)

    def handed_over(self, message: Message) -> None:
        self.say_of(message, DELIVERED)

    def answered(self, message: Message, value: bytes) -> None:
        if not message.flags & REPLY_WANTED:
            return
        self.asked -= 1
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
        """rq has one word for every failure; a request without a reply had its last word when it was kept."""
        if message.flags & REPLY_WANTED:
            self.asked -= 1
            self.say_undelivered(message)
            if self.is_closing:
                self.finish_if_done()

    def say_undelivered(self, message: Message) -> None:
        self.say_of(message, UNDELIVERED)

    def say_of(self, message: Message, command: int) -> None:
        """One of the words that carry only an id."""
        out = self.held_out
        out.write(CLEAR_ID)
        out.write(message.client_id)
        out.append(command)
        self.touch()

    # -- words ----------------------------------------------------------------------------------------------------------

    def say_now(self, data: bytes) -> None:
        """Send what no fact caused."""
        if self.is_connected:
            self.free_out.write(data)
            self.touch()
