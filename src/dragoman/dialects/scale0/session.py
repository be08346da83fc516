"""One Scale0 connection on a ROUTER port: a client on the client port, a worker on the worker port, or a legacy peer, by what it says.

The law of the line: one PING buys one task. A PING puts a worker at the back of its services' lines if it is not in them, a TASK
takes it out. The law of a REQ socket: one answer to each message, whatever there would be to say besides.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.scale0 import complaints, legacy, negotiation
from dragoman.dialects.scale0.complaints import error_header
from dragoman.dialects.scale0.dialect import Scale0Dialect
from dragoman.dialects.scale0.headers import Header, Memory, names_of, read_header, text_of
from dragoman.dialects.scale0.phrases import id_token, write_size
from dragoman.dialects.scale0.words import (
    CONNECT,
    ERROR,
    FORCENEGOTIATE,
    MOVED,
    NEEDBROKER,
    NOT_ACCEPTING,
    PING,
    PONG,
    TASK,
    TASK_OPENING,
    TASKREPLY,
    TASKREPLY_OPENING,
    WRONG_VERSION,
)
from dragoman.dialects.session import Hub, ZmtpSession
from dragoman.dialects.traceparent import with_traceparent
from dragoman.limits import ERROR_TEXT_SIZE_MAX, ID_SIZE_MAX, INLINE_BODY_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.units import MILLISECOND_NS, SECOND_NS
from dragoman.model.wire_ids import DIGITS
from dragoman.model.words import (
    HEARTBEAT_LOST,
    PROTOCOL_FAULT,
    REASON_NAMES,
    REPLY_WANTED,
    SCALE0,
    TAKEN,
)
from dragoman.wire.zmtp.frames import LONG, write_frame

BRACE: Final = 0x7B
TIME_MS_MAX: Final = 9_000_000_000_000


@final
class Scale0Session(ZmtpSession):
    """Understands every command on both ports; the port tells workers from clients."""

    def __init__(self, listener: str, listener_no: int, hub: Hub, dialect: Scale0Dialect) -> None:
        super().__init__(SCALE0, listener, listener_no, hub, b"ROUTER")
        self.scale0 = dialect
        self.is_on_worker_port: bool = listener == "scale0.worker"
        self.envelope: int = 0
        self.is_req: bool = False
        self.is_plain: bool = True  # no envelope, the usual frame form, no REQ socket: the fast way out applies
        self.owes: bool = False  # of a REQ socket: its message has had no answer yet
        self.awaited: int = 0  # and the number of the message that it waits for
        self.has_spoken: bool = False  # in the JSON form: it knows CONFIG and ERROR
        self.generation: int = 0  # of a legacy peer
        self.name: str = ""  # the identity it goes by
        self.config_type: bytes = b"JSON"
        self.offered_token: bytes = b""
        self.offered: list[bytes] = []
        self.serving: list[bytes] = []  # what the core knows it for
        self.is_unsettled: bool = True  # what it serves is to be looked at again
        self.interval_ns: int = 0  # 0: the configuration's
        self.task_headers = Memory()
        self.ping_headers = Memory()
        self.last_word_ns: int = 0
        self.owes_config: bool = False  # pushes that wait for a REQ socket's next message
        self.owes_move: bool = False
        self.who: bytes = b""  # host and identity, under which a ban is kept; empty: it has none
        self.banned_until_ns: int = 0
        self.offences: int = 0
        self.first_offence_ns: int = 0

    def opened(self) -> None:
        self.is_req = self.zmtp.peer_socket_type == b"REQ"
        self.takes_one_answer = self.is_req
        self.is_plain = not self.zmtp.is_v1 and not self.is_req
        self.name = self.identity.decode("utf-8", "replace")
        self.last_word_ns = self.exchange.now_ns
        if self.identity:
            self.who = self.remote.rpartition(":")[0].encode() + b" " + self.identity
            if self.scale0.is_banned(self.who):
                self.banned_until_ns = self.scale0.bans[self.who]
        self.scale0.sessions[self.connection_no] = self
        self.scale0.speakers[self.connection_no] = self

    def ended(self) -> None:
        self.scale0.sessions.pop(self.connection_no, None)
        self.scale0.speakers.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    # -- what the peer says ---------------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        now_ns = self.exchange.now_ns
        if self.banned_until_ns != 0:
            if now_ns < self.banned_until_ns:
                return  # it was told once
            self.banned_until_ns = 0
            self.offences = 0
        self.last_word_ns = now_ns
        at = 0 if frames[0] or len(frames) == 1 else 1
        if at != self.envelope:
            self.envelope = at
            self.is_plain = at == 0 and not self.is_req and not self.zmtp.is_v1
        self.owes = self.is_req
        self.awaited = 0
        count = len(frames)
        command = frames[at]
        text = frames[at + 1] if count > at + 1 else b""
        if text and text[0] != BRACE:
            legacy.take(self, command, text)
            return
        self.has_spoken = True
        if command == TASK:
            self.on_task(text, frames[at + 2] if count > at + 2 else b"")
        elif command == PING:
            self.on_ping(text)
        elif command == TASKREPLY:
            self.on_taskreply(text, frames[at + 2] if count > at + 2 else b"")
        elif command == CONNECT:
            negotiation.on_connect(self, read_header(text))
        elif command == NEEDBROKER:
            negotiation.on_needbroker(self, read_header(text))
        else:
            complaints.misunderstood(self, f"{command[:40].decode('utf-8', 'replace')} is no command here", b"")

    def on_task(self, text: bytes, body: bytes) -> None:
        h = self.task_headers.read(text)
        if h.problem or not h.service:
            complaints.misunderstood(self, h.problem or "a TASK names its service", h.id_token())
            return
        if h.time_ms >= 0 and self.is_skewed(h.time_ms):
            complaints.say_skew(self, h.time_ms, h.id_token())
            return
        if h.has_plain_id:
            m = Message(SCALE0, h.service, text[h.id_at + 1 : h.id_end - 1], body)
        else:
            m = Message(SCALE0, h.service, text_of(h.id), body)
            m.headers = h.id if h.id else b"null"
        if h.traceparent:
            m.headers = with_traceparent(h.traceparent, m.headers)
        m.flags = REPLY_WANTED
        m.client = self
        m.address = self.address
        if not self.scale0.documents.is_accepting:
            self.error(NOT_ACCEPTING, f"{complaints.NOT_TAKEN}: the broker takes nothing new", id_token(m))
            return
        refusal = self.exchange.submit(m)
        if refusal == TAKEN:
            self.awaited = m.number
        else:
            complaints.refuse(self, m, refusal)

    def on_taskreply(self, text: bytes, body: bytes) -> None:
        h = self.task_headers.read(text)
        if h.problem or not self.is_on_worker_port:
            complaints.misunderstood(self, h.problem or "only a worker sends TASKREPLY, on its own port", h.id_token())
            return
        digits_at: int = h.id_at + 1 if h.has_plain_id and h.id_end - h.id_at >= DIGITS + 2 else -1
        m = self.exchange.by_digits(self, text, digits_at)  # whoever knows the digits holds it, or held it
        if m is None or (m.worker is not self and h.id_token() != b'"%s"' % self.scale0.phrases.task_id(m)):
            # By the name under which a trace of the message looks for it.
            self.exchange.late(self, self.exchange.ids.fact_id(text, digits_at, text_of(h.id_token())))
        else:
            self.exchange.reply(self, m, body, False)  # whatever it says: its content is the client's business
        # The work is done, so it counts; then the worker is judged.
        if self.is_acceptable(h) and self.is_req:
            self.answer_req(self.is_worker)

    def on_ping(self, text: bytes) -> None:
        h = self.ping_headers.read(text)
        if h.problem:
            complaints.misunderstood(self, h.problem, b"")
            return
        if not self.is_acceptable(h):
            return
        if not self.is_on_worker_port:
            if self.is_req:
                self.answer_req(False)
            else:
                self.pong()
            return
        if h.interval_s != 0.0:
            self.interval_ns = int(h.interval_s * SECOND_NS)
        if h.services and h.services != self.offered_token:
            self.offered_token = h.services
            self.offered = names_of(h.services)
            self.is_unsettled = True
        if h.identity:
            negotiation.set_name(self, h.identity)
        if (self.is_unsettled or not self.is_worker) and not negotiation.settle(self):
            return
        if self.is_req:
            self.answer_req(self.is_worker and not h.is_busy)
            return
        self.pong()
        if h.is_busy:
            self.slots = 0  # also of one that was in the line: it says that it has no room
        elif self.is_worker and self.slots <= 0:
            self.exchange.ready(self, 1)

    def is_acceptable(self, h: Header) -> bool:
        """Judge clock and version; False when the peer was told what is wrong instead of an answer."""
        if h.time_ms >= 0 and self.is_skewed(h.time_ms):
            complaints.say_skew(self, h.time_ms, b"")
            if self.is_on_worker_port:
                self.exchange.lose(self, PROTOCOL_FAULT)
                self.finish()
            return False
        phrases = self.scale0.phrases
        if h.version and h.version != phrases.version_token and text_of(h.version) != phrases.version:
            self.config_version = text_of(h.version)[:ID_SIZE_MAX]
            if self.owes_config or self.owes_move:
                self.answer_req(False)  # a push waits for this REQ socket, and brings it up to date
                return False
            self.exchange.note(self, "SCALE0_WRONG_VERSION")
            self.error(WRONG_VERSION, f"the configuration is version {phrases.version.decode()}", b"")
            if not self.is_req:
                self.tell_now([FORCENEGOTIATE, b"{}"])
            return False
        if h.version:
            self.config_version = phrases.version
        return True

    def answer_req(self, may_work: bool) -> None:
        """The one answer to a REQ socket's PING or TASKREPLY: what was to be pushed, else a task if one waits, else PONG."""
        if self.owes_move:
            self.owes_move = False
            negotiation.move(self)
        elif self.owes_config:
            self.owes_config = False
            negotiation.send_config(self)
        elif may_work:
            self.exchange.ready(self, 1)
            self.slots = 0  # it cannot be told of one later
        if self.owes:
            self.pong()

    def is_skewed(self, time_ms: i64) -> bool:
        # In machine words: a product of this size is slow as an int. A time beyond all reason is cut to stay within one.
        skew_ns: i64 = i64(self.scale0.wall_ns()) - min(time_ms, TIME_MS_MAX) * MILLISECOND_NS
        most_ns: i64 = self.scale0.settings.skew_ns
        return skew_ns > most_ns or -skew_ns > most_ns

    # -- what it is told when something is wrong ------------------------------------------------------------------------

    def error(self, code: int, reason: str, token: bytes) -> None:
        """Nothing that waits for a commit: of what is told so, nothing was taken."""
        self.tell_now([ERROR, error_header(code, reason.encode("utf-8", "replace"), token)])

    # -- the core's verbs -----------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        phrases = self.scale0.phrases
        phrases.at(self.scale0.wall_ns())
        if not self.is_plain:
            self.tell([TASK, phrases.task_header(message), message.body])
            return
        out = self.held_out
        out.write(TASK_OPENING)
        phrases.write_task_header(out, message)
        self.write_body(message.body)

    def answered(self, message: Message, value: bytes) -> None:
        phrases = self.scale0.phrases
        phrases.at(self.scale0.wall_ns())
        if not self.is_plain:
            if not self.is_req or message.number == self.awaited:
                self.tell([TASKREPLY, phrases.reply_header(message), value])
            return
        out = self.held_out
        out.write(TASKREPLY_OPENING)
        phrases.write_reply_header(out, message)
        self.write_body(value)

    def write_body(self, body: bytes) -> None:
        if len(body) <= INLINE_BODY_SIZE_MAX:
            write_frame(self.held_out, body, False)
        else:
            self.held_out.append(LONG)
            write_size(self.held_out, len(body))
            self.hold_part(body)
        self.touch()

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """There will be no TASKREPLY: why, in the worker's words if it had some."""
        if not self.is_req or message.number == self.awaited:
            said = value[:ERROR_TEXT_SIZE_MAX] if value else REASON_NAMES[reason].upper().encode()
            self.tell([ERROR, error_header(NOT_ACCEPTING, said, id_token(message))])

    def withdraw(self, message: Message, reason: int) -> None:
        """Scale0 has no word for it; the late answer will be dropped."""

    def kept(self, message: Message) -> None:
        """Scale0 has no word for it."""

    def handed_over(self, message: Message) -> None:
        """Scale0 has no word for it."""

    def promoted(self, queue: bytes) -> None:
        """Nothing here is exclusive."""

    # -- pushes and time ------------------------------------------------------------------------------------------------

    def push_config(self) -> None:
        """The configuration has changed."""
        if self.is_worker:
            negotiation.settle_anew(self)
        self.is_unsettled = True
        if self.is_req:
            self.owes_config = self.has_spoken
        elif self.has_spoken:
            negotiation.send_config(self)

    def push_away(self) -> None:
        """The broker stops: everybody is sent elsewhere but legacy peers, who know no word for it."""
        if self.is_req:
            self.owes_move = True
        elif self.generation == 0 and self.is_open:
            self.error(MOVED, "this broker is stopping", b"")
            negotiation.send_elsewhere(self, "this broker is stopping")

    def ping_legacy(self, stamp: bytes) -> None:
        if self.generation == legacy.SECOND and not self.is_req:
            self.tell_now([PING, stamp])

    def beat(self, now_ns: int) -> None:
        """A worker silent for too long leaves the line. One that holds a task may be silent: it keeps that, and only its place is
        gone; the task's timeout and the connection bound it."""
        now_ns = self.exchange.now_ns
        if self.is_unread:
            self.last_word_ns = now_ns
        if not self.is_worker:
            return
        interval_ns = self.interval_ns
        if interval_ns == 0:
            interval_ns = int(self.scale0.documents.heartbeat_s * SECOND_NS)
        if now_ns - self.last_word_ns > self.scale0.settings.heartbeats_missed * interval_ns:
            if self.held:
                self.slots = 0
            else:
                self.exchange.lose(self, HEARTBEAT_LOST)

    # -- envelopes ------------------------------------------------------------------------------------------------------

    def pong(self) -> None:
        phrases = self.scale0.phrases
        phrases.at(self.scale0.wall_ns())
        if self.is_plain:
            self.free_out.write(phrases.pong)
            self.touch()
        else:
            self.tell_now([PONG, phrases.pong_header])

    def tell(self, frames: list[bytes]) -> None:
        if self.may_tell():
            self.say([b""] * self.envelope + frames)

    def tell_now(self, frames: list[bytes]) -> None:
        if self.may_tell():
            self.say_now([b""] * self.envelope + frames)

    def may_tell(self) -> bool:
        """A REQ socket takes one answer, and would take a second for that to its next message."""
        if self.is_req:
            if not self.owes:
                return False
            self.owes = False
        return True
