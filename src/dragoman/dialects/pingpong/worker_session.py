"""The broker's session for one pingpong worker.

    READY, PING ──► a worker with one slot          PING, READY while it has a job ──► a heartbeat, no slot
    a result ─────► answers its only job, and frees the slot
    job's timeout, cancel ──► *owing*: no slot before its next result (late, dropped), READY, or a new connection
    its first job sent twice, and answered plainly ──► *owing* too: the second copy's result is still to come

Every message of a worker is answered with PONG, by which workers detect that the broker is alive. A result has no id in the plain form,
so a worker never has two jobs, and an owing one has none.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i64_be

from dragoman.dialects.pingpong import texts, words
from dragoman.dialects.pingpong.dialect import PingpongDialect
from dragoman.dialects.session import Outboxes, ZmtpSession
from dragoman.limits import INLINE_BODY_SIZE_MAX, JSON_READ_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_NO_CONTROL_WORDS, TAKES_TEXT
from dragoman.model.words import HEARTBEAT_LOST, PINGPONG, TAKEN
from dragoman.wire.zmtp.frames import LONG, write_frame

SOON_NS: Final = 10_000_000
CROSSING_NS: Final = 500_000_000  # a PING this soon after a job was sent before it arrived; workers PING each second


@final
class PingpongWorker(ZmtpSession):
    """Serves the dialect's only queue, one job at a time."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: PingpongDialect) -> None:
        super().__init__(PINGPONG, listener, listener_no, outboxes, b"ROUTER")
        self.pingpong = dialect
        self.is_strict = True
        self.form: int = words.UNKNOWN
        self.envelope: int = 1
        self.is_usual: bool = True  # the usual envelope and frame form: the fast output path applies
        self.given: int = 0  # jobs so far
        self.job: Message | None = None  # its current job, if any
        self.mark: bytes = b""  # what its result must return, in the forms that have a field for it
        self.was_repeated: bool = False
        self.is_owing: bool = False
        # While jobs follow results within moments, a result's PONG is sent with the next job: one packet instead of two, and the worker wakes
        # up once. If no job follows, the next beat sends it alone.
        self.expects_job: bool = False
        self.owes_pong: bool = False
        self.freed_ns: int = 0
        self.is_told_to_exit: bool = False
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
        self.form = fixed if fixed != words.UNKNOWN else form
        self.body_constraint = TAKES_TEXT if self.form == words.JSON else TAKES_NO_CONTROL_WORDS

    # -- messages from the worker ---------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        if len(frames) != 2 or frames[0] or not self.is_usual:
            self.on_rarer(frames)
            return
        word = frames[1]
        if self.expects_job and self.work.held and word != words.PING and word != words.READY:
            self.owes_pong = True
        else:
            self.say_pong()
        self.on_word(word)

    def say_pong(self) -> None:
        self.pay_pong()
        self.free_out.write(words.PONG_MESSAGE)
        self.touch()

    def pay_pong(self) -> None:
        """Send the deferred PONG, because no job follows to carry it."""
        if self.owes_pong:
            self.owes_pong = False
            self.tell_now([words.PONG])

    def on_rarer(self, frames: list[bytes]) -> None:
        if len(frames) == 1:
            fields = texts.read_object(frames[0])
            if fields is not None and "status" in fields:
                self.say_now([words.JSON_PONG])
                self.on_status(fields)
                return
        self.pay_pong()
        at = words.envelope_of(frames)
        self.envelope = at
        self.is_usual = at == 1 and not self.zmtp.is_v1
        self.tell_now([words.PONG])
        count = len(frames) - at
        if count == 1:
            self.on_word(frames[at])
        elif count >= 3 and frames[at] == words.JOB_COMPLETE:
            self.on_result(frames[-1], frames[at + 1], False, words.PACKAGE)
        else:
            self.exchange.note(self, "PINGPONG_SHAPE")

    def on_word(self, word: bytes) -> None:
        if word == words.PING:
            self.on_ping()
        elif word == words.READY:
            self.on_ready()
        else:
            self.on_result(word, b"", False, words.PLAIN)

    def on_status(self, fields: dict[str, bytes]) -> None:
        """Handle a message of the json form."""
        if self.form != words.JSON:
            self.set_form(words.JSON)
        status = texts.text_of(fields["status"])
        if status == words.PING:
            self.on_ping()
        elif status == words.READY:
            self.on_ready()
        elif status == b"SUCCESS" or status == b"ERROR":
            is_failure = status == b"ERROR"
            value = fields.get("result", b"")
            if is_failure:
                value = fields.get("msg", value)
            self.on_result(texts.text_of(value), texts.text_of(fields.get("token", b"")), is_failure, words.JSON)
        else:
            self.exchange.note(self, "PINGPONG_UNKNOWN_STATUS")

    def on_ready(self) -> None:
        if self.work.held:
            # It was sent before the job arrived, or the worker is confused; with a second job its results could not be told apart.
            self.exchange.note(self, "PINGPONG_READY_WHILE_BUSY")
            return
        self.is_owing = False
        self.free()

    def on_ping(self) -> None:
        if not self.work.held:
            self.free()
        elif self.form == words.UNKNOWN and not self.was_repeated:
            self.repeat()

    def on_result(self, value: bytes, mark: bytes, is_failure: bool, form: int) -> None:
        m = self.job
        # A mark must be the job's own; only the first job may be answered as a package although it was sent plain.
        is_stray = mark != b"" and mark != self.mark and (self.mark != b"" or self.given > 1)
        if m is None or not self.work.held or is_stray:
            self.exchange.late(self, mark)
            if not self.work.held and self.is_owing:
                self.on_owed(form)
            return
        self.job = None
        self.freed_ns = self.exchange.now_ns
        may_answer_again = self.was_repeated and self.form == words.UNKNOWN and form == words.PLAIN
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
        if self.is_connected and not self.work.held:
            self.free()
        return False

    def on_owed(self, form: int) -> None:
        """Handle the result of a job that was withdrawn: it is dropped, but shows the form, and that the worker is free."""
        may_answer_again = self.was_repeated and self.form == words.UNKNOWN and form == words.PLAIN
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
        if not self.is_worker and self.exchange.join(self, [(10, self.pingpong.settings.queue)]) != TAKEN:
            self.exchange.note(self, "PINGPONG_QUEUE_REFUSED")
            return
        # It may have shown another form while it was idle: a message that the old form could not carry may be waiting.
        self.exchange.ready(self, 1 if self.work.slots == 0 else 0)

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        self.given += 1
        self.job = message
        self.mark = b""
        self.was_repeated = False
        self.expects_job = self.exchange.now_ns - self.freed_ns < SOON_NS
        body = message.body
        if self.owes_pong and (self.form > words.PLAIN or not self.is_usual):
            self.pay_pong()
        if self.form == words.JSON:
            self.mark = b"%032x" % (message.number << 16 | self.given & 0xFFFF)
            self.say([texts.work_of(self.mark, body, self.form_of(message))])
            self.pingpong.formed = None
        elif self.form == words.PACKAGE:
            self.deliver_package(body)
        elif not self.is_usual:
            self.tell([body])
        else:
            out = self.held_out
            if self.owes_pong:
                self.owes_pong = False
                out.write(words.PONG_MESSAGE)
            out.write(words.DELIMITER)
            if len(body) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, body, False)
            else:
                out.append(LONG)
                write_i64_be(out, len(body))
                self.hold_part(body)
            self.touch()

    def deliver_package(self, body: bytes) -> None:
        """Send a job as a package: the worker returns the mark unchanged, which identifies the job of a result."""
        mark = b"\x00" + (self.given & 0xFFFFFFFF).to_bytes(4, "big")
        self.mark = mark
        if self.is_usual and len(body) <= INLINE_BODY_SIZE_MAX:
            out = self.held_out
            out.write(words.DELIMITER)
            write_frame(out, body, True)
            write_frame(out, mark, True)
            out.write(words.PACKAGE_ENDING)
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

    def accepts(self, message: Message) -> bool:
        kind = self.body_constraint
        if not (message.fit | message.unfit) & kind:
            body = message.body
            can_be_told = (
                self.form_of(message) != texts.NO_TEXT
                if kind == TAKES_TEXT
                else body != words.PONG and body != words.EXIT
            )
            if can_be_told:
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

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        """Remove an idle worker that is silent; its next message registers it again. A busy one may be silent."""
        core_ns = self.exchange.now_ns
        if self.owes_pong:
            self.expects_job = False
            self.pay_pong()
        if self.is_unread:
            self.last_sign_ns = core_ns
        if not self.is_worker or self.work.held or self.is_owing:
            return
        if core_ns - self.last_sign_ns > self.pingpong.settings.worker_expire_ns:
            self.exchange.lose(self, HEARTBEAT_LOST)

    def say_goodbye(self) -> None:
        """Send EXIT; a worker with a job gets it after its result."""
        if self.is_worker and not self.work.held and self.pingpong.settings.send_exit:
            self.say_exit()

    def say_exit(self) -> None:
        """Send EXIT once; the json form has no such command."""
        if not self.is_told_to_exit and self.form != words.JSON:
            self.is_told_to_exit = True
            self.pay_pong()
            self.tell_now([words.EXIT])

    # -- envelopes ------------------------------------------------------------------------------------------------------

    def tell(self, frames: list[bytes]) -> None:
        self.say([b""] * self.envelope + frames)

    def tell_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.envelope + frames)
