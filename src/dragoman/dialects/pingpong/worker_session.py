"""One worker of the ping-pong dialogue, as the broker sees it.

    READY, PING ──► a worker with one slot          PING, READY while it holds a job ──► a sign of life, no slot
    a result ─────► answers the one job it holds, and frees it
    job's timeout, cancel ──► *owing*: no slot before its next result (late, dropped), READY, or a new connection
    its first job sent twice, and answered plainly ──► *owing* too: the second copy's result is still to come

Everything it says is answered PONG; its workers count on that to know that the broker lives. A result has no id in the
plain form, so a worker never has two jobs, and an owing one has none.
"""

from __future__ import annotations

from typing import Final, final

from librt.strings import write_i64_be

from dragoman.dialects.pingpong import texts
from dragoman.dialects.pingpong.dialect import PingpongDialect
from dragoman.dialects.pingpong.words import (
    DELIMITER,
    EXIT,
    JOB_COMPLETE,
    JSON,
    JSON_PONG,
    PACKAGE,
    PACKAGE_ENDING,
    PING,
    PLAIN,
    PONG,
    PONG_MESSAGE,
    READY,
    UNKNOWN,
    envelope_of,
)
from dragoman.dialects.session import Hub, ZmtpSession
from dragoman.limits import INLINE_BODY_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_NO_CONTROL_WORDS, TAKES_TEXT
from dragoman.model.words import HEARTBEAT_LOST, PINGPONG, TAKEN
from dragoman.wire.zmtp.frames import LONG, write_frame

SOON_NS: Final = 10_000_000
CROSSING_NS: Final = 500_000_000  # a PING so soon after a job crossed it on its way; workers PING each second


@final
class PingpongWorker(ZmtpSession):
    """Serves the dialect's one queue, a job at a time."""

    def __init__(self, listener: str, listener_no: int, hub: Hub, dialect: PingpongDialect) -> None:
        super().__init__(PINGPONG, listener, listener_no, hub, b"ROUTER")
        self.pingpong = dialect
        self.is_strict = True
        self.form: int = UNKNOWN
        self.envelope: int = 1
        self.is_usual: bool = True  # envelope and frame form: the fast way out applies
        self.given: int = 0  # jobs so far
        self.job: Message | None = None  # the one it holds, while it holds one
        self.mark: bytes = b""  # what its result must bring back, where the form has a place for it
        self.was_repeated: bool = False
        self.is_owing: bool = False
        # While jobs follow results within moments, a result's PONG travels with the next job: one packet instead of two, and the
        # worker wakes once. It is said by itself at the next beat if none comes.
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
        """Speak to it so from now on; a form fixed by the operator stays."""
        fixed = self.pingpong.settings.form
        self.form = fixed if fixed != UNKNOWN else form
        self.pickiness = TAKES_TEXT if self.form == JSON else TAKES_NO_CONTROL_WORDS

    # -- what the worker says -------------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        if len(frames) != 2 or frames[0] or not self.is_usual:
            self.on_rarer(frames)
            return
        word = frames[1]
        if self.expects_job and self.held and word != PING and word != READY:
            self.owes_pong = True
        else:
            self.say_pong()
        self.on_word(word)

    def say_pong(self) -> None:
        self.pay_pong()
        self.free_out.write(PONG_MESSAGE)
        self.touch()

    def pay_pong(self) -> None:
        """No job came for it to travel with."""
        if self.owes_pong:
            self.owes_pong = False
            self.tell_now([PONG])

    def on_rarer(self, frames: list[bytes]) -> None:
        if len(frames) == 1:
            fields = texts.read_object(frames[0])
            if fields is not None and "status" in fields:
                self.say_now([JSON_PONG])
                self.on_status(fields)
                return
        self.pay_pong()
        at = envelope_of(frames)
        self.envelope = at
        self.is_usual = at == 1 and not self.zmtp.is_v1
        self.tell_now([PONG])
        count = len(frames) - at
        if count == 1:
            self.on_word(frames[at])
        elif count >= 3 and frames[at] == JOB_COMPLETE:
            self.on_result(frames[-1], frames[at + 1], False, PACKAGE)
        else:
            self.exchange.note(self, "PINGPONG_SHAPE")

    def on_word(self, word: bytes) -> None:
        if word == PING:
            self.on_ping()
        elif word == READY:
            self.on_ready()
        else:
            self.on_result(word, b"", False, PLAIN)

    def on_status(self, fields: dict[str, bytes]) -> None:
        """The json form."""
        if self.form != JSON:
            self.set_form(JSON)
        status = texts.text_of(fields["status"])
        if status == PING:
            self.on_ping()
        elif status == READY:
            self.on_ready()
        elif status == b"SUCCESS" or status == b"ERROR":
            is_failure = status == b"ERROR"
            value = fields.get("result", b"")
            if is_failure:
                value = fields.get("msg", value)
            self.on_result(texts.text_of(value), texts.text_of(fields.get("token", b"")), is_failure, JSON)
        else:
            self.exchange.note(self, "PINGPONG_UNKNOWN_STATUS")

    def on_ready(self) -> None:
        if self.held:
            # It crossed the job on its way, or the worker is confused; a second job would be one whose results cannot be told apart.
            self.exchange.note(self, "PINGPONG_READY_WHILE_BUSY")
            return
        self.is_owing = False
        self.free()

    def on_ping(self) -> None:
        if not self.held:
            self.free()
        elif self.form == UNKNOWN and not self.was_repeated:
            self.repeat()

    def on_result(self, value: bytes, mark: bytes, is_failure: bool, form: int) -> None:
        m = self.job
        # A mark must be the job's own; only the first job may be answered as a package though it was sent plain.
        is_stray = mark != b"" and mark != self.mark and (self.mark != b"" or self.given > 1)
        if m is None or not self.held or is_stray:
            self.exchange.late(self, mark)
            if not self.held and self.is_owing:
                self.on_owed(form)
            return
        self.job = None
        self.freed_ns = self.exchange.now_ns
        may_answer_again = self.was_repeated and self.form == UNKNOWN and form == PLAIN
        if form > self.form:  # never back: what is spoilt on its way looks plain
            self.set_form(form)
        self.exchange.reply(self, m, value, is_failure)
        if may_answer_again:
            # It got the job twice, and whatever is not PONG or EXIT is a job. How long it works on that nobody can know.
            self.is_owing = True
        else:
            self.free()

    def on_owed(self, form: int) -> None:
        """The result of a job that was taken away meanwhile: it counts for nothing, but it tells the form, and that the worker is free."""
        may_answer_again = self.was_repeated and self.form == UNKNOWN and form == PLAIN
        if form > self.form:
            self.set_form(form)
        if not may_answer_again:
            self.is_owing = False
            self.free()

    def free(self) -> None:
        """It has nothing to do, as far as it can be told: one slot, never two."""
        if self.is_owing:
            return
        if (self.pingpong.is_draining or self.is_dismissed) and self.pingpong.settings.send_exit:
            self.say_exit()
            return
        if not self.is_worker and self.exchange.join(self, [(10, self.pingpong.settings.queue)]) != TAKEN:
            self.exchange.note(self, "PINGPONG_QUEUE_REFUSED")
            return
        if self.slots == 0:
            self.exchange.ready(self, 1)

    # -- the core's verbs -----------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        self.given += 1
        self.job = message
        self.mark = b""
        self.was_repeated = False
        self.expects_job = self.exchange.now_ns - self.freed_ns < SOON_NS
        body = message.body
        if self.owes_pong and (self.form > PLAIN or not self.is_usual):
            self.pay_pong()
        if self.form == JSON:
            self.mark = b"%032x" % (message.number << 16 | self.given & 0xFFFF)
            self.say([texts.work_of(self.mark, body)])
        elif self.form == PACKAGE:
            self.deliver_package(body)
        elif not self.is_usual:
            self.tell([body])
        else:
            out = self.held_out
            if self.owes_pong:
                self.owes_pong = False
                out.write(PONG_MESSAGE)
            out.write(DELIMITER)
            if len(body) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, body, False)
            else:
                out.append(LONG)
                write_i64_be(out, len(body))
                self.hold_part(body)
            self.touch()

    def deliver_package(self, body: bytes) -> None:
        """The worker brings the client's id back as it is: ours tells which of its jobs a result is for."""
        mark = b"\x00" + (self.given & 0xFFFFFFFF).to_bytes(4, "big")
        self.mark = mark
        if self.is_usual and len(body) <= INLINE_BODY_SIZE_MAX:
            out = self.held_out
            out.write(DELIMITER)
            write_frame(out, body, True)
            write_frame(out, mark, True)
            out.write(PACKAGE_ENDING)
            self.touch()
        else:
            self.tell([body, mark, b"", b""])

    def repeat(self) -> None:
        """A worker that only knows packages ignores a plain job and PINGs on: the same job once more, the same attempt."""
        m = self.job
        assert m is not None
        if self.exchange.now_ns - m.leased_ns < CROSSING_NS:
            return  # said before it had the first copy
        self.was_repeated = True
        self.deliver_package(self.exchange.body_of(m))

    def withdraw(self, message: Message, reason: int) -> None:
        self.job = None
        self.is_owing = True

    def accepts(self, message: Message) -> bool:
        kind = self.pickiness
        if not (message.fit | message.unfit) & kind:
            body = message.body
            can_be_told = texts.is_text(body) if kind == TAKES_TEXT else body != PONG and body != EXIT
            if can_be_told:
                message.fit |= kind
            else:
                message.unfit |= kind
        return message.fit & kind != 0

    def dismissed(self) -> None:
        """EXIT ends the original's program, so it is said only where the operator set it so."""
        self.say_goodbye()

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        """An idle worker that is silent leaves the line; its next word brings it back. A busy one may be silent."""
        core_ns = self.exchange.now_ns
        if self.owes_pong:
            self.expects_job = False
            self.pay_pong()
        if self.is_unread:
            self.last_sign_ns = core_ns
        if not self.is_worker or self.held or self.is_owing:
            return
        if core_ns - self.last_sign_ns > self.pingpong.settings.worker_expire_ns:
            self.exchange.lose(self, HEARTBEAT_LOST)

    def say_goodbye(self) -> None:
        """One that holds a job is told after its result."""
        if self.is_worker and not self.held and self.pingpong.settings.send_exit:
            self.say_exit()

    def say_exit(self) -> None:
        """The json form has no such word."""
        if not self.is_told_to_exit and self.form != JSON:
            self.is_told_to_exit = True
            self.pay_pong()
            self.tell_now([EXIT])

    # -- envelopes ------------------------------------------------------------------------------------------------------

    def tell(self, frames: list[bytes]) -> None:
        self.say([b""] * self.envelope + frames)

    def tell_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.envelope + frames)
