"""The broker's sessions of Scale0. `Scale0Session` is one connection on a ROUTER port: a client on the client port, a worker on the worker port, or a legacy peer, by its messages.

Rule for workers: one PING grants one task (to a REQ socket a TASKREPLY does, too). A PING puts a worker at the back of its services' worker queues if it is not in them; a TASK
removes it. Rule for REQ sockets: one answer to each message, whatever else there would be to send.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.scale0 import commands, legacy, negotiation
from dragoman.dialects.scale0.dialect import Scale0Dialect
from dragoman.dialects.scale0.headers import Header, HeaderCache, names_of, read_header, text_of
from dragoman.dialects.scale0.phrases import error_header, id_token
from dragoman.dialects.scale0.settings import Scale0Settings
from dragoman.dialects.session import Outboxes, Session, ZmtpSession
from dragoman.dialects.subscriber import SubscriberSession
from dragoman.dialects.traceparent import with_traceparent
from dragoman.limits import ERROR_TEXT_SIZE_MAX, ID_SIZE_MAX, INLINE_BODY_SIZE_MAX
from dragoman.model.enums import (
    BAD_HEADER,
    DRAINING,
    HEARTBEAT_LOST,
    INEXPRESSIBLE,
    PROTOCOL_FAULT,
    REASON_NAMES,
    REFUSAL_CODES,
    REFUSAL_TEXTS,
    REPLY_WANTED,
    SCALE0,
    TAKEN,
    TOO_LONG,
)
from dragoman.model.message import Message
from dragoman.model.units import MILLISECOND_NS, SECOND_NS
from dragoman.model.wire_ids import DIGITS
from dragoman.wire.zmtp.frames import write_frame

BRACE: Final = 0x7B
TIME_MS_MAX: Final = 9_000_000_000_000


@final
class Scale0Session(ZmtpSession):
    """Handles every command on both ports; the port distinguishes workers from clients."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: Scale0Dialect) -> None:
        super().__init__(SCALE0, listener, listener_no, outboxes, b"ROUTER")
        self.scale0 = dialect
        self.is_on_worker_port: bool = listener == "scale0.worker"
        self.envelope: int = 0
        self.is_req: bool = False
        self.is_plain: bool = True  # no envelope, the usual frame form, no REQ socket: the fast output path applies
        self.is_answer_due: bool = False  # of a REQ socket: its message is not answered yet
        self.awaited: int = 0  # and the number of the message that it waits for
        self.is_task_awaited: bool = False  # of a REQ worker: it keeps its slot while the body of a task is read for it
        self.task_until_ns: int = 0  # and until when
        self.has_spoken: bool = False  # it has used the JSON form: it understands CONFIG and ERROR
        self.generation: int = 0  # of a legacy peer
        self.name: str = ""  # its identity
        self.config_type: bytes = b"JSON"
        self.offered_token: bytes = b""
        self.offered: list[bytes] = []
        self.serving: list[bytes] = []  # the services registered with the core
        self.is_unregistered: bool = True  # its services must be registered again
        self.interval_ns: int = 0  # 0: the configuration's
        self.task_headers = HeaderCache()
        self.ping_headers = HeaderCache()
        self.last_message_ns: int = 0
        self.owes_config: bool = False  # messages that wait for a REQ socket's next message
        self.owes_move: bool = False
        self.ban_key: bytes = b""  # host and identity, the key of a ban; empty: it has none
        self.banned_until_ns: int = 0
        self.offences: int = 0
        self.first_offence_ns: int = 0

    def opened(self) -> None:
        self.is_req = self.zmtp.peer_socket_type == b"REQ"
        self.takes_one_answer = self.is_req
        self.is_plain = not self.zmtp.is_v1 and not self.is_req
        self.name = self.identity.decode("utf-8", "replace")
        self.last_message_ns = self.exchange.now_ns
        if self.identity:
            self.ban_key = self.remote.rpartition(":")[0].encode() + b" " + self.identity
            if self.scale0.is_banned(self.ban_key):
                self.banned_until_ns = self.scale0.bans[self.ban_key]
        self.scale0.sessions[self.connection_no] = self
        self.scale0.routed[self.connection_no] = self

    def ended(self) -> None:
        self.scale0.sessions.pop(self.connection_no, None)
        self.scale0.routed.pop(self.connection_no, None)
        self.scale0.unpushed.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    # -- messages from the peer -----------------------------------------------------------------------------------------

    def on_message(self, frames: list[bytes]) -> None:
        now_ns = self.exchange.now_ns
        if self.banned_until_ns != 0:
            if now_ns < self.banned_until_ns:
                return  # it got an error when the ban began
            self.banned_until_ns = 0
            self.offences = 0
        self.last_message_ns = now_ns
        if self.is_task_awaited:
            self.await_no_task()  # it asks again before it was answered (ZMQ_REQ_RELAXED)
        at = 0 if len(frames[0]) > 0 or len(frames) == 1 else 1
        if at != self.envelope:
            self.envelope = at
            self.is_plain = at == 0 and not self.is_req and not self.zmtp.is_v1
        self.is_answer_due = self.is_req
        self.awaited = 0
        count = len(frames)
        command = frames[at]
        text = frames[at + 1] if count > at + 1 else b""
        if len(text) > 0 and text[0] != BRACE:  # `len` is faster than asking whether bytes are true
            legacy.take(self, command, text)
            return
        self.has_spoken = True
        if command == commands.TASK:
            self.on_task(text, frames[at + 2] if count > at + 2 else b"")
        elif command == commands.PING:
            self.on_ping(text)
        elif command == commands.TASKREPLY:
            self.on_taskreply(text, frames[at + 2] if count > at + 2 else b"")
        elif command == commands.CONNECT:
            negotiation.on_connect(self, read_header(text))
            self.had_enough = True  # a configuration may be large, and so may be the list of brokers
        elif command == commands.NEEDBROKER:
            negotiation.on_needbroker(self, read_header(text))
            self.had_enough = True
        else:
            self.misunderstood(f"{command[:40].decode('utf-8', 'replace')} is no command here", b"")

    def on_task(self, text: bytes, body: bytes) -> None:
        h = self.task_headers.read(text)
        if h.problem or len(h.service) == 0:
            self.misunderstood(h.problem or "a TASK names its service", h.id_token())
            return
        if h.time_ms >= 0 and self.is_skewed(h.time_ms):
            self.send_skew(h.time_ms, h.id_token())
            return
        if h.has_plain_id:
            m = Message(SCALE0, h.service, text[h.id_at + 1 : h.id_end - 1], body)
        else:
            m = Message(SCALE0, h.service, text_of(h.id), body)
            m.headers = h.id if h.id else b"null"
        if len(h.traceparent) > 0:
            m.headers = with_traceparent(h.traceparent, m.headers)
        m.flags = REPLY_WANTED
        m.client = self
        m.address = self.address
        if not self.scale0.documents.is_accepting:
            self.error(commands.NOT_ACCEPTING, f"{commands.NOT_TAKEN}: the broker takes nothing new", id_token(m))
            return
        refusal = self.exchange.submit(m)
        if refusal == TAKEN:
            self.awaited = m.number
        else:
            self.refuse(m, refusal)

    def on_taskreply(self, text: bytes, body: bytes) -> None:
        h = self.task_headers.read(text)
        if h.problem or not self.is_on_worker_port:
            self.misunderstood(h.problem or "only a worker sends TASKREPLY, on its own port", h.id_token())
            return
        digits_at: i64 = -1
        if h.has_plain_id and h.id_end - h.id_at >= DIGITS + 2:
            digits_at = h.id_at + 1
        m = self.exchange.by_digits(self, text, digits_at)  # a worker that knows the digits has, or had, the task
        if m is None or (m.worker is not self and h.id_token() != b'"%s"' % self.scale0.phrases.task_id(m)):
            # With the id that a trace of the message uses.
            self.exchange.late(self, self.exchange.ids.fact_id(text, digits_at, text_of(h.id_token())))
        else:
            self.exchange.reply(self, m, body, False)  # the content concerns only the client
        # The work is done, so the answer counts; after that the worker's clock and version are checked.
        if self.is_acceptable(h) and self.is_req:
            self.answer_req(self.is_worker)

    def on_ping(self, text: bytes) -> None:
        h = self.ping_headers.read(text)
        if h.problem:
            self.misunderstood(h.problem, b"")
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
        if len(h.services) > 0 and h.services != self.offered_token:
            self.offered_token = h.services
            self.offered = names_of(h.services)
            self.is_unregistered = True
        if len(h.identity) > 0:
            negotiation.set_name(self, h.identity)
        if (self.is_unregistered or not self.is_worker) and not negotiation.register(self):
            return
        if self.is_req:
            self.answer_req(self.is_worker and not h.is_busy)
            return
        self.pong()
        if h.is_busy:
            self.exchange.busy(self)  # even if it was queued: the worker reports that it has no free slot
        elif self.is_worker and self.work.slots <= 0:
            self.exchange.ready(self, 1)

    def is_acceptable(self, h: Header) -> bool:
        """Check clock and version; False when the peer got an error instead of an answer."""
        if h.time_ms >= 0 and self.is_skewed(h.time_ms):
            self.send_skew(h.time_ms, b"")
            if self.is_on_worker_port:
                self.exchange.lose(self, PROTOCOL_FAULT)
                self.finish()
            return False
        phrases = self.scale0.phrases
        has_version = len(h.version) > 0
        if has_version and h.version != phrases.version_token and text_of(h.version) != phrases.version:
            self.config_version = text_of(h.version)[:ID_SIZE_MAX]
            if self.owes_config or self.owes_move:
                self.answer_req(False)  # a pending message for this REQ socket brings it up to date
                return False
            self.exchange.note(self, "SCALE0_WRONG_VERSION")
            self.error(commands.WRONG_VERSION, f"the configuration is version {phrases.version.decode()}", b"")
            if not self.is_req:
                self.send_now([commands.FORCENEGOTIATE, b"{}"])
            return False
        if has_version:
            self.config_version = phrases.version
        return True

    def answer_req(self, may_work: bool) -> None:
        """Send the one answer to a REQ socket's PING or TASKREPLY: a pending move or configuration, else a waiting task, else PONG. A task whose body
        must be read from disk comes later: its worker waits for it for half of its heartbeat interval."""
        if self.owes_move:
            self.owes_move = False
            negotiation.move(self)
        elif self.owes_config:
            self.owes_config = False
            negotiation.send_config(self)
        elif may_work:
            self.exchange.ready(self, 1)
            if self.is_answer_due and self.work.is_feeding_interrupted:
                self.is_task_awaited = True
                self.task_until_ns = self.exchange.now_ns + self.heartbeat_ns() // 2
                return
            self.exchange.busy(self)  # it cannot receive a task later
        if self.is_answer_due:
            self.pong()

    def await_no_task(self) -> None:
        """Answer a REQ worker whose task was not read in time, or is not there any more. If it is being read, that goes on: the answer to a later PING
        is the task."""
        self.is_task_awaited = False
        self.exchange.busy(self)
        self.answer_req(False)

    def heartbeat_ns(self) -> int:
        return self.interval_ns if self.interval_ns != 0 else int(self.scale0.documents.heartbeat_s * SECOND_NS)

    def is_skewed(self, time_ms: i64) -> bool:
        # In machine words: a product of this size is slow as an int. An absurd time is clamped to stay within one.
        skew_ns: i64 = i64(self.scale0.wall_ns()) - min(time_ms, TIME_MS_MAX) * MILLISECOND_NS
        most_ns: i64 = self.scale0.settings.skew_ns
        return skew_ns > most_ns or -skew_ns > most_ns

    # -- errors ---------------------------------------------------------------------------------------------------------

    def error(self, code: int, reason: str, token: bytes) -> None:
        """Send an ERROR without waiting for a commit: the message it refers to was not accepted."""
        self.send_now([commands.ERROR, error_header(code, reason.encode("utf-8", "replace"), token)])

    def send_skew(self, time_ms: i64, token: bytes) -> None:
        self.exchange.note(self, "SCALE0_CLOCK_SKEW")
        skew_s = int(time_ms) / 1000 - self.scale0.wall_ns() / SECOND_NS
        self.error(commands.NOT_ACCEPTING, f"{commands.SKEWED}: your clock is {skew_s:+.3f} s off the broker's", token)

    def misunderstood(self, reason: str, token: bytes) -> None:
        """Answer and count a message that is not understood: a peer that sends too many gets one more error and is then ignored for a while."""
        now_ns = self.exchange.now_ns
        settings = self.scale0.settings
        if now_ns - self.first_offence_ns > settings.ban_ns:
            self.offences = 0
            self.first_offence_ns = now_ns
        self.offences += 1
        if self.offences <= settings.offences_max:
            self.exchange.note(self, "SCALE0_NOT_UNDERSTOOD")
            self.error(commands.NOT_UNDERSTOOD, reason, token)
            return
        self.exchange.note(self, "SCALE0_HOSTILE")
        self.error(commands.HOSTILE, f"{self.offences} messages that mean nothing here", b"")
        self.banned_until_ns = now_ns + settings.ban_ns
        if self.ban_key:
            self.scale0.ban(self.ban_key)
        self.exchange.lose(self, PROTOCOL_FAULT)

    def refuse(self, m: Message, refusal: int) -> None:
        """Answer new work that was not accepted."""
        if refusal == DRAINING:
            code = commands.MOVED
        elif refusal == TOO_LONG or refusal == BAD_HEADER or refusal == INEXPRESSIBLE:
            code = commands.NOT_UNDERSTOOD
        else:
            code = commands.NOT_ACCEPTING
        self.error(code, f"{REFUSAL_CODES[refusal]}: {REFUSAL_TEXTS[refusal]}", id_token(m))
        if refusal == DRAINING and not self.is_req:
            negotiation.send_elsewhere(self, negotiation.STOPPING)

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        phrases = self.scale0.phrases
        phrases.at(self.scale0.wall_ns())
        if not self.is_plain:
            self.is_task_awaited = False
            self.send([commands.TASK, phrases.task_header(message), message.body])
            return
        out = self.held_out
        out.write(commands.TASK_OPENING)
        phrases.write_task_header(out, message)
        self.write_body(message.body)

    def answered(self, message: Message, value: bytes) -> None:
        phrases = self.scale0.phrases
        phrases.at(self.scale0.wall_ns())
        if not self.is_plain:
            if not self.is_req or message.number == self.awaited:
                self.send([commands.TASKREPLY, phrases.reply_header(message), value])
            return
        out = self.held_out
        out.write(commands.TASKREPLY_OPENING)
        phrases.write_reply_header(out, message)
        self.write_body(value)

    def write_body(self, body: bytes) -> None:
        if len(body) <= INLINE_BODY_SIZE_MAX:
            write_frame(self.held_out, body, False)
        else:
            self.hold_frame(body, False)
        self.touch()

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """Send the reason why there will be no TASKREPLY, as given by the worker, if it gave one."""
        if not self.is_req or message.number == self.awaited:
            text = value[:ERROR_TEXT_SIZE_MAX] if value else REASON_NAMES[reason].upper().encode()
            self.send([commands.ERROR, error_header(commands.NOT_ACCEPTING, text, id_token(message))])

    def withdraw(self, message: Message, reason: int) -> None:
        """Do nothing: Scale0 has no command for it; the late answer will be dropped."""

    # -- unrequested messages and time ----------------------------------------------------------------------------------

    def push_config(self) -> None:
        """Apply and send a changed configuration."""
        if self.is_worker:
            negotiation.register_again(self)
        self.is_unregistered = True
        if self.is_req:
            self.owes_config = self.has_spoken
        elif self.has_spoken:
            negotiation.send_config(self)

    def send_away(self) -> None:
        """The broker stops: redirect every peer except legacy ones, which have no command for it."""
        if self.is_req:
            self.owes_move = True
        elif self.generation == 0 and self.is_open:
            negotiation.move(self)

    def ping_legacy(self, stamp: bytes) -> None:
        if self.generation == legacy.SECOND and not self.is_req:
            self.send_now([commands.PING, stamp])

    def beat(self, now_ns: int) -> None:
        """Remove a worker that is silent for too long. One that has a task may be silent: it keeps the task and only loses its slot; the
        task's timeout and the connection limit it."""
        now_ns = self.exchange.now_ns
        if self.is_unread:
            self.last_message_ns = now_ns
        if self.is_task_awaited and (now_ns >= self.task_until_ns or not self.work.is_feeding_interrupted):
            self.await_no_task()
        if not self.is_worker:
            return
        if now_ns - self.last_message_ns > self.scale0.settings.heartbeats_missed * self.heartbeat_ns():
            if self.work.leases:
                self.exchange.busy(self)
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
            self.send_now([commands.PONG, phrases.pong_header])

    def send(self, frames: list[bytes]) -> None:
        if self.may_send():
            self.say([b""] * self.envelope + frames)

    def send_now(self, frames: list[bytes]) -> None:
        if self.may_send():
            self.say_now([b""] * self.envelope + frames)

    def may_send(self) -> bool:
        """Whether a message may be sent: a REQ socket gets one answer, and would take a second for the answer to its next message."""
        if self.is_req:
            if not self.is_answer_due:
                return False
            self.is_answer_due = False
        return True


@final
class Scale0Subscriber(SubscriberSession):
    """A worker of the newest original, subscribed on the PUB port to `PING` and to its own id. As with any PUB socket, messages for a
    subscriber that does not read are dropped. These are not topics of the broker: the messages are for Scale0's own workers."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: Scale0Dialect) -> None:
        super().__init__(SCALE0, listener, listener_no, outboxes, b"PUB")
        self.scale0 = dialect

    def opened(self) -> None:
        self.scale0.sessions[self.connection_no] = self
        self.scale0.listeners[self.connection_no] = self

    def ended(self) -> None:
        self.scale0.sessions.pop(self.connection_no, None)
        self.scale0.listeners.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def send(self, frames: list[bytes]) -> None:
        if not self.wants(frames[0]):
            return
        if self.is_socket_full:
            self.exchange.note(self, "SLOW_SUBSCRIBER_DROPPED")
        else:
            self.say_now(frames)

    def wants(self, topic: bytes) -> bool:
        """Whether a prefix matches: looks up the beginnings of the topic, which are few, instead of iterating over thousands of prefixes."""
        return any(topic[:end] in self.prefixes for end in range(len(topic) + 1))


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> Scale0Dialect:
    return Scale0Dialect(outboxes, Scale0Settings())


def new_session(dialect: Scale0Dialect, listener: str, listener_no: int) -> Session:
    if listener == "scale0.publish":
        return Scale0Subscriber(listener, listener_no, dialect.outboxes, dialect)
    return Scale0Session(listener, listener_no, dialect.outboxes, dialect)
