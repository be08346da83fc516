"""The broker's side of the ping-pong dialogue.

A client sends orders and receives results, in the order of the orders. Neither has an id, so a result that is ready early waits for those
before it, and every order is answered once: by its result, or by `"", ERROR, reason` (json: `{"msg":"ERROR","reason":…}`, and
`{"msg":"FULL"}` when no new work is accepted).

    READY, PING ──► a worker with one slot          PING, READY while it has a job ──► a heartbeat, no slot
    a result ─────► answers its only job, and frees the slot
    job's timeout, cancel ──► *owing*: no slot before its next result (late, dropped), READY, or a new connection
    its first job sent twice, and answered plainly ──► *owing* too: the second copy's result is still to come

Every message of a worker is answered with PONG, by which workers detect that the broker is alive. A result has no id in the plain form,
so a worker never has two jobs, and an owing one has none.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from dragoman.dialects.pingpong import commands, texts
from dragoman.dialects.pingpong.dialect import Order, PingpongDialect, size_of
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.session import Outboxes, Session, ZmtpSession
from dragoman.limits import EARLY_ANSWERS_SIZE_MAX, INLINE_BODY_SIZE_MAX, JSON_READ_SIZE_MAX
from dragoman.model import enums
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_NO_CONTROL_WORDS, TAKES_TEXT
from dragoman.wire.zmtp.frames import write_frame

FULL: Final = [
    enums.DRAINING,
    enums.JOURNAL_FULL,
    enums.JOURNAL_FAILING,
    enums.QUEUE_FULL,
    enums.QUEUE_CLOSED,
    enums.MEMORY_FULL,
]
# Results waiting for an earlier one that are sent in one turn.
ANSWERS_PER_TURN: Final = 1000
# Reading many short orders takes long: the rest waits for the next turn.
JSON_ORDERS_PER_TURN: Final = 500
NOT_TEXT: Final = b"INEXPRESSIBLE: the result is not text, and JSON carries nothing else"
NO_ORDER: Final = b"BAD_ORDER: an order is one frame behind an empty one, or a JSON object with `order`"
SOON_NS: Final = 10_000_000
CROSSING_NS: Final = (
    500_000_000  # a PING or READY this soon after a job was sent before it arrived; workers PING each second
)


@final
class PingpongClient(ZmtpSession):
    """Submits orders to the dialect's only queue."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: PingpongDialect) -> None:
        super().__init__(enums.PINGPONG, listener, listener_no, outboxes, b"ROUTER")
        self.pingpong = dialect
        self.envelope: int = 1
        self.is_usual: bool = True  # the usual envelope and frame form: the fast output path applies
        self.orders: deque[Order] = deque()  # not answered yet, the oldest first
        self.by_number: dict[int, Order] = {}
        self.early_size: int = 0  # its share of the dialect's `early_size`
        self.json_orders: int = 0  # count so far

    def opened(self) -> None:
        self.takes_one_answer = self.zmtp.peer_socket_type == b"REQ"
        self.is_usual = not self.zmtp.is_v1
        if self.identity and not self.takes_one_answer:
            self.pingpong.clients[self.address] = self
            self.inherit(self.pingpong.take_departed(self.address))

    def inherit(self, orders: deque[Order]) -> None:
        """Take over the open orders of an earlier connection, which are answered before its own."""
        if not orders:
            return
        for order in orders:
            self.early_size += size_of(order)
            if order.answer is None:
                self.by_number[order.number] = order
        orders.extend(self.orders)
        self.orders = orders
        self.pingpong.sessions[self.connection_no] = self
        self.send_ready()

    def ended(self) -> None:
        self.pingpong.sessions.pop(self.connection_no, None)
        if self.identity and not self.takes_one_answer:
            newest = self.pingpong.clients.get(self.address)
            if newest is self:
                del self.pingpong.clients[self.address]
            if newest is not None and newest is not self:
                newest.inherit(self.orders)  # it reconnected before we noticed that the old connection was lost
            elif self.orders:
                self.pingpong.store_departed(self.address, self.orders)
        else:
            self.pingpong.early_size -= self.early_size
        self.exchange.goodbye(self)

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
                    self.order(fields["order"], commands.ASKED_IN_JSON)
                else:
                    self.refuse_shape(commands.ASKED_IN_JSON)
                return
        at = commands.envelope_of(frames)
        self.envelope = at
        self.is_usual = at == 1 and not self.zmtp.is_v1
        if len(frames) == at + 1:
            self.order(frames[at], b"")
        else:
            self.refuse_shape(b"")

    def refuse_shape(self, form: bytes) -> None:
        self.exchange.note(self, "PINGPONG_SHAPE")
        self.refuse(self.error_frames(NO_ORDER, form), False)

    def order(self, body: bytes, form: bytes) -> None:
        pingpong = self.pingpong
        m = Message(enums.PINGPONG, pingpong.settings.queue, b"", body)
        m.headers = form
        m.flags = enums.REPLY_WANTED
        m.client = self
        m.address = self.address
        # Answers wait in memory for earlier ones: the only thing here that a client could make grow without limit. A client without waiting
        # answers is not affected by the others.
        is_crowded = self.early_size > 0 and pingpong.early_size > EARLY_ANSWERS_SIZE_MAX
        refusal = enums.QUEUE_FULL if is_crowded else self.exchange.submit(m)
        if refusal == enums.TAKEN:
            order = Order(m.number, form)
            self.orders.append(order)
            self.by_number[m.number] = order
            return
        reason = f"{enums.REFUSAL_CODES[refusal]}: {enums.REFUSAL_TEXTS[refusal]}".encode()
        frames = [commands.JSON_FULL] if form and refusal in FULL else self.error_frames(reason, form)
        self.refuse(frames, refusal == enums.JOURNAL_FAILING)

    def refuse(self, frames: list[bytes], is_stuck: bool) -> None:
        """Answer a refused order once the orders before it are answered. While the journal cannot store anything it must not wait for that."""
        if self.orders:
            order = Order(0, b"")
            self.orders.append(order)
            self.store_early(order, frames)
            self.check_early()
        elif is_stuck:
            self.say_now(frames)
        else:
            self.say(frames)

    def answered(self, message: Message, value: bytes) -> None:
        if message.headers == commands.ASKED_IN_JSON:
            form = texts.form_of(value)
            text = texts.error_of(NOT_TEXT) if form == texts.NO_TEXT else b'{"msg":%s}' % texts.as_json(value, form)
            self.answer(message, [text])
        elif self.is_usual and len(self.orders) > 0 and self.orders[0].number == message.number:
            self.orders.popleft()
            del self.by_number[message.number]
            out = self.held_out
            out.write(commands.DELIMITER)
            if len(value) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, value, False)
            else:
                self.hold_frame(value, False)
            self.touch()
            if self.orders:
                self.send_ready()
        else:
            self.answer(message, self.in_envelope([value]))

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        text = value if value else enums.REASON_NAMES[reason].upper().encode()
        self.answer(message, self.error_frames(text, message.headers))

    def handed_over(self, message: Message) -> None:
        """Do nothing: pingpong clients never request it."""

    def kept(self, message: Message) -> None:
        """Do nothing: pingpong clients never request it."""

    def answer(self, message: Message, frames: list[bytes]) -> None:
        """Send an answer once all earlier orders are answered."""
        order = self.by_number.pop(message.number, None)
        if order is not None:
            self.store_early(order, frames)
            self.send_ready()
            if self.orders:
                # The first may never be answered: its record may be damaged.
                self.pingpong.sessions[self.connection_no] = self
            self.check_early()
        elif self.orders or self.takes_one_answer:
            # Ordered on an earlier connection, so long ago that its position is lost: it would be mistaken for the answer to another order.
            self.exchange.note(self, "PINGPONG_PLACE_FORGOTTEN")
        else:
            self.say(frames)

    def store_early(self, order: Order, frames: list[bytes]) -> None:
        """Store an answer until all earlier orders are answered."""
        order.answer = frames
        size = size_of(order)
        self.early_size += size
        self.pingpong.early_size += size

    def check_early(self) -> None:
        """Disconnect a client with too many waiting answers, like one that does not read."""
        if self.early_size > EARLY_ANSWERS_SIZE_MAX + self.outboxes.message_size_max:
            self.exchange.note(self, "PINGPONG_TOO_MUCH_WAITS")
            self.pingpong.early_size -= self.early_size
            self.early_size = 0
            self.orders.clear()
            self.by_number.clear()
            self.finish()

    def send_ready(self) -> None:
        """Send all answers up to the first order without one; beyond ANSWERS_PER_TURN the rest is sent in the next turns."""
        orders = self.orders
        count = 0
        while orders:
            frames = orders[0].answer
            if frames is None:
                return
            if count == ANSWERS_PER_TURN:
                self.fall_behind()
                return
            count += 1
            size = size_of(orders[0])
            self.early_size -= size
            self.pingpong.early_size -= size
            orders.popleft()
            self.say(frames)

    def catch_up(self) -> bool:
        """Send more of the results that are no longer blocked by an earlier order."""
        self.send_ready()
        return False

    def beat(self, now_ns: int) -> None:
        """Called only for a client that reconnected, or whose answers wait for an earlier one: an order that ended without an answer (while the
        client was away, or whose record is damaged so that its client is unknown) would block all later answers."""
        while self.orders:
            order = self.orders[0]
            if order.answer is None:
                m = self.exchange.fetch(order.number)
                if m is not None and m.is_answerable:
                    return
                del self.by_number[order.number]
                reason = enums.REASON_NAMES[enums.REPLY_UNDELIVERABLE].upper().encode()
                self.store_early(order, self.error_frames(reason, order.form))
            self.send_ready()
            if self in self.outboxes.deferred:
                return
        self.pingpong.sessions.pop(self.connection_no, None)

    def in_envelope(self, frames: list[bytes]) -> list[bytes]:
        return [b""] * self.envelope + frames

    def error_frames(self, reason: bytes, form: bytes) -> list[bytes]:
        """The answer to an order of this form that failed."""
        return (
            [texts.error_of(reason)] if form == commands.ASKED_IN_JSON else self.in_envelope([commands.ERROR, reason])
        )


@final
class PingpongWorker(ZmtpSession):
    """Serves the dialect's only queue, one job at a time."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: PingpongDialect) -> None:
        super().__init__(enums.PINGPONG, listener, listener_no, outboxes, b"ROUTER")
        self.pingpong = dialect
        self.is_strict = True
        self.form: int = commands.UNKNOWN
        self.envelope: int = 1
        self.is_usual: bool = True  # the usual envelope and frame form: the fast output path applies
        self.jobs_sent: int = 0
        self.job: Message | None = None  # its current job, if any
        self.mark: bytes = b""  # what its result must return, in the forms that have a field for it
        self.was_repeated: bool = False
        self.is_owing: bool = False
        self.owed_ns: int = 0  # when the job was sent whose result is still to come
        # While jobs follow results within moments, a result's PONG is sent with the next job: one packet instead of two, and the worker wakes
        # up once. If no job follows, the next beat sends it alone.
        self.expects_job: bool = False
        self.owes_pong: bool = False
        self.freed_ns: int = 0
        self.was_sent_exit: bool = False
        self.set_form(dialect.settings.form)

    def opened(self) -> None:
        self.is_usual = not self.zmtp.is_v1
        self.pingpong.sessions[self.connection_no] = self

    def ended(self) -> None:
        self.pingpong.sessions.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def set_form(self, form: int) -> None:
        """Address the worker in this form from now on, unless the operator fixed the form."""
        fixed = self.pingpong.settings.form
        self.form = fixed if fixed != commands.UNKNOWN else form
        self.body_constraint = TAKES_TEXT if self.form == commands.JSON else TAKES_NO_CONTROL_WORDS

    def on_message(self, frames: list[bytes]) -> None:
        if len(frames) != 2 or frames[0] or not self.is_usual:
            self.on_rarer(frames)
            return
        word = frames[1]
        if self.expects_job and self.work.leases and word != commands.PING and word != commands.READY:
            self.owes_pong = True
        else:
            self.pay_pong()
            self.free_out.write(commands.PONG_MESSAGE)
            self.touch()
        self.on_word(word)

    def pay_pong(self) -> None:
        """Send the deferred PONG, because no job follows to carry it."""
        if self.owes_pong:
            self.owes_pong = False
            self.tell_now([commands.PONG])

    def on_rarer(self, frames: list[bytes]) -> None:
        if len(frames) == 1:
            fields = texts.read_object(frames[0])
            if fields is not None and "status" in fields:
                self.say_now([commands.JSON_PONG])
                self.on_status(fields)
                return
        self.pay_pong()
        at = commands.envelope_of(frames)
        self.envelope = at
        self.is_usual = at == 1 and not self.zmtp.is_v1
        self.tell_now([commands.PONG])
        count = len(frames) - at
        if count == 1:
            self.on_word(frames[at])
        elif count >= 3 and frames[at] == commands.JOB_COMPLETE:
            self.on_result(frames[-1], frames[at + 1], False, commands.PACKAGE)
        else:
            self.exchange.note(self, "PINGPONG_SHAPE")

    def on_word(self, word: bytes) -> None:
        if word == commands.PING:
            self.on_ping()
        elif word == commands.READY:
            self.on_ready()
        else:
            self.on_result(word, b"", False, commands.PLAIN)

    def on_status(self, fields: dict[str, bytes]) -> None:
        """Handle a message of the json form."""
        if self.form != commands.JSON:
            self.set_form(commands.JSON)
        status = texts.text_of(fields["status"])
        if status == commands.PING:
            self.on_ping()
        elif status == commands.READY:
            self.on_ready()
        elif status == b"SUCCESS" or status == b"ERROR":
            is_failure = status == b"ERROR"
            value = fields.get("result", b"")
            if is_failure:
                value = fields.get("msg", value)
            self.on_result(texts.text_of(value), texts.text_of(fields.get("token", b"")), is_failure, commands.JSON)
        else:
            self.exchange.note(self, "PINGPONG_UNKNOWN_STATUS")

    def on_ready(self) -> None:
        if self.work.leases or (self.is_owing and self.exchange.now_ns - self.owed_ns < CROSSING_NS):
            # It was sent before the job arrived, or the worker is confused; with a second job its results could not be distinguished.
            self.exchange.note(self, "PINGPONG_READY_WHILE_BUSY")
            return
        self.is_owing = False
        self.free()

    def on_ping(self) -> None:
        if not self.work.leases:
            self.free()
        elif self.form == commands.UNKNOWN and not self.was_repeated:
            self.repeat()

    def on_result(self, value: bytes, mark: bytes, is_failure: bool, form: int) -> None:
        m = self.job
        # A mark must be the job's own; only the first job may be answered as a package although it was sent plain.
        is_stray = mark != b"" and mark != self.mark and (self.mark != b"" or self.jobs_sent > 1)
        if m is None or not self.work.leases or is_stray:
            self.exchange.late(self, mark)
            if not self.work.leases and self.is_owing:
                self.on_owed(form)
            return
        self.job = None
        self.freed_ns = self.exchange.now_ns
        may_answer_again = self.was_repeated and self.form == commands.UNKNOWN and form == commands.PLAIN
        if form > self.form:  # never back: a damaged message looks plain
            self.set_form(form)
        self.exchange.reply(self, m, value, is_failure)
        if may_answer_again:
            # It got the job twice, and takes everything but PONG and EXIT for a job. The broker cannot know how long it works on that.
            self.is_owing = True
        elif len(value) > JSON_READ_SIZE_MAX:
            self.fall_behind()  # its next job, which may be as large, is sent in a turn of its own
        else:
            self.free()

    def catch_up(self) -> bool:
        if self.is_connected and not self.work.leases:
            self.free()
        return False

    def on_owed(self, form: int) -> None:
        """Handle the result of a job that was withdrawn: it is dropped, but shows the form, and that the worker is free."""
        may_answer_again = self.was_repeated and self.form == commands.UNKNOWN and form == commands.PLAIN
        if form > self.form:
            self.set_form(form)
        if not may_answer_again:
            self.is_owing = False
            self.free()

    def free(self) -> None:
        """Give an idle worker its slot: one, never two."""
        if self.is_owing:
            return
        if (self.pingpong.is_draining or self.work.is_dismissed) and self.pingpong.settings.send_exit:
            self.say_exit()
            return
        if not self.is_worker and self.exchange.join(self, [(10, self.pingpong.settings.queue)]) != enums.TAKEN:
            self.exchange.note(self, "PINGPONG_QUEUE_REFUSED")
            return
        # It may have shown another form while it was idle: a message that the old form could not carry may be waiting.
        self.exchange.ready(self, 1 if self.work.slots == 0 else 0)

    def deliver(self, message: Message) -> None:
        self.jobs_sent += 1
        self.job = message
        self.mark = b""
        self.was_repeated = False
        self.expects_job = self.exchange.now_ns - self.freed_ns < SOON_NS
        body = message.body
        if self.owes_pong and (self.form > commands.PLAIN or not self.is_usual):
            self.pay_pong()
        if self.form == commands.JSON:
            self.mark = b"%032x" % (message.number << 16 | self.jobs_sent & 0xFFFF)
            self.say([texts.work_of(self.mark, body, self.form_of(message))])
            self.pingpong.formed = None
        elif self.form == commands.PACKAGE:
            self.deliver_package(body)
        elif not self.is_usual:
            self.tell([body])
        else:
            out = self.held_out
            if self.owes_pong:
                self.owes_pong = False
                out.write(commands.PONG_MESSAGE)
            out.write(commands.DELIMITER)
            if len(body) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, body, False)
            else:
                self.hold_frame(body, False)
            self.touch()

    def deliver_package(self, body: bytes) -> None:
        """Send a job as a package: the worker returns the mark unchanged, which identifies the job of a result."""
        mark = b"\x00" + (self.jobs_sent & 0xFFFFFFFF).to_bytes(4, "big")
        self.mark = mark
        if self.is_usual and len(body) <= INLINE_BODY_SIZE_MAX:
            out = self.held_out
            out.write(commands.DELIMITER)
            write_frame(out, body, True)
            write_frame(out, mark, True)
            out.write(commands.PACKAGE_ENDING)
            self.touch()
        else:
            self.tell([body, mark, b"", b""])

    def repeat(self) -> None:
        """Send the job again as a package, in the same attempt: a worker that only knows packages ignores a plain job and keeps sending PINGs."""
        m = self.job
        assert m is not None
        if self.exchange.now_ns - m.leased_ns < CROSSING_NS:
            return  # the PING was sent before the first copy arrived
        self.was_repeated = True
        self.deliver_package(self.exchange.body_of(m))

    def withdraw(self, message: Message, reason: int) -> None:
        self.job = None
        self.is_owing = True
        self.owed_ns = message.leased_ns

    def accepts(self, message: Message) -> bool:
        kind = self.body_constraint
        if not (message.fit | message.unfit) & kind:
            if kind == TAKES_TEXT:
                is_fit = self.form_of(message) != texts.NO_TEXT
            else:
                is_fit = message.body != commands.PONG and message.body != commands.EXIT
            if is_fit:
                message.fit |= kind
            else:
                message.unfit |= kind
        return message.fit & kind != 0

    def form_of(self, message: Message) -> int:
        """How the json form carries a message. Called before and during delivery; the cache avoids scanning a large body twice."""
        pingpong = self.pingpong
        if pingpong.formed is not message:
            pingpong.formed = message
            pingpong.formed_as = texts.form_of(message.body)
        return pingpong.formed_as

    def dismissed(self) -> None:
        """Send EXIT only if the operator allowed it, because it ends the original's program."""
        self.say_goodbye()

    def beat(self, now_ns: int) -> None:
        """Remove an idle worker that is silent; its next message registers it again. A busy one may be silent."""
        core_ns = self.exchange.now_ns
        if self.owes_pong:
            self.expects_job = False
            self.pay_pong()
        if self.is_unread:
            self.last_sign_ns = core_ns
        if not self.is_worker or self.work.leases or self.is_owing:
            return
        if core_ns - self.last_sign_ns > self.pingpong.settings.worker_expire_ns:
            self.exchange.lose(self, enums.HEARTBEAT_LOST)

    def say_goodbye(self) -> None:
        """Send EXIT; a worker with a job gets it after its result."""
        if self.is_worker and not self.work.leases and self.pingpong.settings.send_exit:
            self.say_exit()

    def say_exit(self) -> None:
        """Send EXIT once; the json form has no such command."""
        if not self.was_sent_exit and self.form != commands.JSON:
            self.was_sent_exit = True
            self.pay_pong()
            self.tell_now([commands.EXIT])

    def tell(self, frames: list[bytes]) -> None:
        self.say([b""] * self.envelope + frames)

    def tell_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.envelope + frames)


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> PingpongDialect:
    return PingpongDialect(outboxes, PingpongSettings())


def new_session(dialect: PingpongDialect, listener: str, listener_no: int) -> Session:
    if listener == "pingpong.client":
        return PingpongClient(listener, listener_no, dialect.outboxes, dialect)
    return PingpongWorker(listener, listener_no, dialect.outboxes, dialect)
