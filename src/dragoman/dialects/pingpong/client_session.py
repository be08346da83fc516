"""The broker's session for one pingpong client: orders in, results out, in the order of the orders.

Neither order nor result has an id, so a result that is ready early waits for those before it, and every order is answered once:
by its result, or by `"", ERROR, reason` (json: `{"msg":"ERROR","reason":…}`, and `{"msg":"FULL"}` when no new work is accepted).
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from librt.strings import write_i64_be

from dragoman.dialects.pingpong import texts
from dragoman.dialects.pingpong.dialect import Ask, PingpongDialect, size_of
from dragoman.dialects.pingpong.words import ASKED_IN_JSON, DELIMITER, ERROR, JSON_FULL, envelope_of
from dragoman.dialects.session import Outboxes, ZmtpSession
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
# Results waiting for an earlier one that are sent in one turn.
SAID_PER_TURN: Final = 1000
# Reading many short orders takes long: the rest waits for the next turn.
JSON_ORDERS_PER_TURN: Final = 500
NOT_TEXT: Final = b"INEXPRESSIBLE: the result is not text, and JSON carries nothing else"
NO_ORDER: Final = b"BAD_ORDER: an order is one frame behind an empty one, or a JSON object with `order`"


@final
class PingpongClient(ZmtpSession):
    """Submits orders to the dialect's only queue."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: PingpongDialect) -> None:
        super().__init__(PINGPONG, listener, listener_no, outboxes, b"ROUTER")
        self.pingpong = dialect
        self.envelope: int = 1
        self.is_usual: bool = True  # the usual envelope and frame form: the fast output path applies
        self.asked: deque[Ask] = deque()  # not answered yet, the oldest first
        self.by_number: dict[int, Ask] = {}
        self.early_size: int = 0  # its share of the dialect's `early_size`
        self.json_orders: int = 0  # count so far

    def opened(self) -> None:
        self.takes_one_answer = self.zmtp.peer_socket_type == b"REQ"
        self.is_usual = not self.zmtp.is_v1
        if self.identity and not self.takes_one_answer:
            self.pingpong.named[self.address] = self
            self.inherit(self.pingpong.take_left(self.address))

    def inherit(self, asks: deque[Ask]) -> None:
        """Take over the open orders of an earlier connection, which are answered before its own."""
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
                newest.inherit(self.asked)  # it reconnected before we noticed that the old connection was lost
            elif self.asked:
                self.pingpong.leave(self.address, self.asked)
        else:
            self.pingpong.early_size -= self.early_size
        self.exchange.goodbye(self)

    # -- messages from the client ---------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        if len(frames) == 2 and not frames[0] and self.is_usual:
            self.order(frames[1], b"")
            return
        if len(frames) == 1:
            fields = texts.read_object(frames[0])
            if fields is not None:
                self.json_orders += 1
                self.had_enough = self.json_orders % JSON_ORDERS_PER_TURN == 0
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
        # Answers wait in memory for earlier ones: the only thing here that a client could make grow without limit. A client without waiting
        # answers is not affected by the others.
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
        """Answer a refused order once the orders before it are answered. While the journal cannot store anything it must not wait for that."""
        if self.asked:
            ask = Ask(0, b"")
            self.asked.append(ask)
            self.keep_early(ask, words)
            self.check_early()
        elif is_stuck:
            self.say_now(words)
        else:
            self.say(words)

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def answered(self, message: Message, value: bytes) -> None:
        if message.headers == ASKED_IN_JSON:
            form = texts.form_of(value)
            words = texts.error_of(NOT_TEXT) if form == texts.NO_TEXT else texts.message_of(value, form)
            self.answer(message, [words])
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
        """Do nothing: pingpong clients never request it."""

    def kept(self, message: Message) -> None:
        """Do nothing: pingpong clients never request it."""

    def answer(self, message: Message, words: list[bytes]) -> None:
        """Send an answer once all earlier orders are answered."""
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
            # Ordered on an earlier connection, so long ago that its position is lost: it would be mistaken for the answer to another order.
            self.exchange.note(self, "PINGPONG_PLACE_FORGOTTEN")
        else:
            self.say(words)

    def keep_early(self, ask: Ask, words: list[bytes]) -> None:
        """Store an answer until all earlier orders are answered."""
        ask.words = words
        size = size_of(ask)
        self.early_size += size
        self.pingpong.early_size += size

    def check_early(self) -> None:
        """Disconnect a client with too many waiting answers, like one that does not read."""
        if self.early_size > EARLY_ANSWERS_SIZE_MAX + self.outboxes.message_size_max:
            self.exchange.note(self, "PINGPONG_TOO_MUCH_WAITS")
            self.pingpong.early_size -= self.early_size
            self.early_size = 0
            self.asked.clear()
            self.by_number.clear()
            self.finish()

    def say_ready(self) -> None:
        """Send all answers up to the first order without one; beyond SAID_PER_TURN the rest is sent in the next turns."""
        asked = self.asked
        count = 0
        while asked:
            words = asked[0].words
            if words is None:
                return
            if count == SAID_PER_TURN:
                self.fall_behind()
                return
            count += 1
            size = size_of(asked[0])
            self.early_size -= size
            self.pingpong.early_size -= size
            asked.popleft()
            self.say(words)

    def catch_up(self) -> bool:
        """Send more of the results that are no longer blocked by an earlier order."""
        self.say_ready()
        return False

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        """Called only for a client that reconnected, or whose answers wait for an earlier one: an order that ended without an answer (while the
        client was away, or whose record is damaged so that its client is unknown) would block all later answers."""
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
            if self in self.outboxes.behind:
                return
        self.pingpong.sessions.pop(self.connection_no, None)

    def in_envelope(self, frames: list[bytes]) -> list[bytes]:
        return [b""] * self.envelope + frames
