"""One client of the ping-pong dialogue, as the broker sees it: orders in, results out, in the order they were asked.

Neither order nor result has an id, so a result that comes early waits for those before it, and every order is answered once:
by its result, or by `"", ERROR, reason` (json: `{"msg":"ERROR","reason":…}`, and `{"msg":"FULL"}` when no new work is taken).
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from librt.strings import write_i64_be

from dragoman.dialects.pingpong import texts
from dragoman.dialects.pingpong.dialect import Ask, PingpongDialect, size_of
from dragoman.dialects.pingpong.words import ASKED_IN_JSON, DELIMITER, ERROR, JSON_FULL, envelope_of
from dragoman.dialects.session import Hub, ZmtpSession
from dragoman.limits import EARLY_ANSWERS_SIZE_MAX, INLINE_BODY_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.words import (
    DRAINING,
    JOURNAL_FAILING,
    JOURNAL_FULL,
    MEMORY_FULL,
    PINGPONG,
    QUEUE_CLOSED,
    QUEUE_FULL,
    REASON_NAMES,
    REFUSAL_CODES,
    REFUSAL_TEXTS,
    REPLY_UNDELIVERABLE,
    REPLY_WANTED,
    TAKEN,
)
from dragoman.wire.zmtp.frames import LONG, write_frame

FULL: Final = [DRAINING, JOURNAL_FULL, JOURNAL_FAILING, QUEUE_FULL, QUEUE_CLOSED, MEMORY_FULL]
NOT_TEXT: Final = b"INEXPRESSIBLE: the result is not text, and JSON carries nothing else"
NO_ORDER: Final = b"BAD_ORDER: an order is one frame behind an empty one, or a JSON object with `order`"


@final
class PingpongClient(ZmtpSession):
    """Sends orders to the dialect's one queue."""

    def __init__(self, listener: str, listener_no: int, hub: Hub, dialect: PingpongDialect) -> None:
        super().__init__(PINGPONG, listener, listener_no, hub, b"ROUTER")
        self.pingpong = dialect
        self.envelope: int = 1
        self.is_usual: bool = True  # envelope and frame form: the fast way out applies
        self.asked: deque[Ask] = deque()  # not yet answered, the oldest first
        self.by_number: dict[int, Ask] = {}
        self.early_size: int = 0  # its part of the dialect's

    def opened(self) -> None:
        self.takes_one_answer = self.zmtp.peer_socket_type == b"REQ"
        self.is_usual = not self.zmtp.is_v1
        if self.identity and not self.takes_one_answer:
            self.pingpong.named[self.address] = self
            self.inherit(self.pingpong.take_left(self.address))

    def inherit(self, asks: deque[Ask]) -> None:
        """What its earlier connection asked is answered before its own orders."""
        if not asks:
            return
        for ask in asks:
            self.early_size += size_of(ask)
            if ask.words is None:
                self.by_number[ask.number] = ask
        asks.extend(self.asked)
        self.asked = asks
        self.pingpong.sessions[self.connection_no] = self
        self.say_ready()

    def ended(self) -> None:
        self.pingpong.sessions.pop(self.connection_no, None)
        if self.identity and not self.takes_one_answer:
            newest = self.pingpong.named.get(self.address)
            if newest is self:
                del self.pingpong.named[self.address]
            if newest is not None and newest is not self:
                newest.inherit(self.asked)  # it was back before we knew that it had gone
            elif self.asked:
                self.pingpong.leave(self.address, self.asked)
        else:
            self.pingpong.early_size -= self.early_size
        self.exchange.goodbye(self)

    # -- what the client says -------------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        if len(frames) == 2 and not frames[0] and self.is_usual:
            self.order(frames[1], b"")
            return
        if len(frames) == 1:
            fields = texts.read_object(frames[0])
            if fields is not None:
                if "order" in fields:
                    self.order(fields["order"], ASKED_IN_JSON)
                else:
                    self.exchange.note(self, "PINGPONG_SHAPE")
                    self.refuse([texts.error_of(NO_ORDER)], False)
                return
        at = envelope_of(frames)
        self.envelope = at
        self.is_usual = at == 1 and not self.zmtp.is_v1
        if len(frames) == at + 1:
            self.order(frames[at], b"")
        else:
            self.exchange.note(self, "PINGPONG_SHAPE")
            self.refuse(self.in_envelope([ERROR, NO_ORDER]), False)

    def order(self, body: bytes, form: bytes) -> None:
        pingpong = self.pingpong
        m = Message(PINGPONG, pingpong.settings.queue, b"", body)
        m.headers = form
        m.flags = REPLY_WANTED
        m.client = self
        m.address = self.address
        # Answers wait in memory for the ones before them: the one thing here that a client could let grow. One that lets none wait
        # does not suffer for those that do.
        is_crowded = self.early_size > 0 and pingpong.early_size > EARLY_ANSWERS_SIZE_MAX
        refusal = QUEUE_FULL if is_crowded else self.exchange.submit(m)
        if refusal == TAKEN:
            ask = Ask(m.number, form)
            self.asked.append(ask)
            self.by_number[m.number] = ask
            return
        reason = f"{REFUSAL_CODES[refusal]}: {REFUSAL_TEXTS[refusal]}".encode()
        if not form:
            words = self.in_envelope([ERROR, reason])
        elif refusal in FULL:
            words = [JSON_FULL]
        else:
            words = [texts.error_of(reason)]
        self.refuse(words, refusal == JOURNAL_FAILING)

    def refuse(self, words: list[bytes], is_stuck: bool) -> None:
        """Said when the orders before it have been answered. While the journal can keep nothing it must not wait for that."""
        if self.asked:
            ask = Ask(0, b"")
            self.asked.append(ask)
            self.keep_early(ask, words)
            self.check_early()
        elif is_stuck:
            self.say_now(words)
        else:
            self.say(words)

    # -- the core's verbs -----------------------------------------------------------------------------------------------

    def answered(self, message: Message, value: bytes) -> None:
        if message.headers == ASKED_IN_JSON:
            self.answer(message, [texts.message_of(value) if texts.is_text(value) else texts.error_of(NOT_TEXT)])
        elif self.is_usual and len(self.asked) > 0 and self.asked[0].number == message.number:
            self.asked.popleft()
            del self.by_number[message.number]
            out = self.held_out
            out.write(DELIMITER)
            if len(value) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, value, False)
            else:
                out.append(LONG)
                write_i64_be(out, len(value))
                self.hold_part(value)
            self.touch()
            if self.asked:
                self.say_ready()
        else:
            self.answer(message, self.in_envelope([value]))

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        text = value if value else REASON_NAMES[reason].upper().encode()
        if message.headers == ASKED_IN_JSON:
            self.answer(message, [texts.error_of(text)])
        else:
            self.answer(message, self.in_envelope([ERROR, text]))

    def handed_over(self, message: Message) -> None:
        """It never asks to be told."""

    def kept(self, message: Message) -> None:
        """It never asks to be told."""

    def answer(self, message: Message, words: list[bytes]) -> None:
        """Say it when its turn has come."""
        ask = self.by_number.pop(message.number, None)
        if ask is not None:
            self.keep_early(ask, words)
            self.say_ready()
            if self.asked:
                self.pingpong.sessions[self.connection_no] = (
                    self  # the first may never be answered: its record may be damaged
                )
            self.check_early()
        elif self.asked or self.takes_one_answer:
            # Asked on an earlier connection, so long ago that its place is forgotten: it would be taken for the answer to another order.
            self.exchange.note(self, "PINGPONG_PLACE_FORGOTTEN")
        else:
            self.say(words)

    def keep_early(self, ask: Ask, words: list[bytes]) -> None:
        """Until its turn comes."""
        ask.words = words
        size = size_of(ask)
        self.early_size += size
        self.pingpong.early_size += size

    def check_early(self) -> None:
        """One that lets too much wait is cut off, as one is that does not read."""
        if self.early_size > EARLY_ANSWERS_SIZE_MAX + self.hub.message_size_max:
            self.exchange.note(self, "PINGPONG_TOO_MUCH_WAITS")
            self.pingpong.early_size -= self.early_size
            self.early_size = 0
            self.asked.clear()
            self.by_number.clear()
            self.finish()

    def say_ready(self) -> None:
        """Everything up to the first order that is not answered yet."""
        asked = self.asked
        while asked:
            words = asked[0].words
            if words is None:
                return
            size = size_of(asked[0])
            self.early_size -= size
            self.pingpong.early_size -= size
            asked.popleft()
            self.say(words)

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        """Only of a client that came back, or whose answers wait for an earlier one: what ended without an answer (while it was away, or
        damaged so that its client is not known) would hold up all later answers."""
        while self.asked:
            ask = self.asked[0]
            if ask.words is None:
                m = self.exchange.fetch(ask.number)
                if m is not None and m.is_answerable:
                    return
                del self.by_number[ask.number]
                reason = REASON_NAMES[REPLY_UNDELIVERABLE].upper().encode()
                is_json = ask.form == ASKED_IN_JSON
                self.keep_early(ask, [texts.error_of(reason)] if is_json else self.in_envelope([ERROR, reason]))
            self.say_ready()
        self.pingpong.sessions.pop(self.connection_no, None)

    def in_envelope(self, frames: list[bytes]) -> list[bytes]:
        return [b""] * self.envelope + frames
