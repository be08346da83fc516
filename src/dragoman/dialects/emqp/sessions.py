"""One eMQP connection on a ROUTER port: client, worker, scheduler, admin or publisher, depending on the commands it sends.

The session stores the peer's envelope (the number of empty frames before the version) and answers with the same: one from a DEALER, two
from a REQ that adds its own, none from a peer that omits it.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.emqp import commands, jobs, schedules, status
from dragoman.dialects.emqp.dialect import EmqpDialect, id_prefix_of
from dragoman.dialects.emqp.headers import one_answer
from dragoman.dialects.emqp.settings import EmqpSettings
from dragoman.dialects.session import Outboxes, Session, ZmtpSession
from dragoman.dialects.subscriber import TopicSubscriber
from dragoman.limits import ERROR_TEXT_SIZE_MAX, INLINE_BODY_SIZE_MAX, NAME_SIZE_MAX, SERVED_TEXT_SIZE_MAX
from dragoman.model import enums
from dragoman.model.message import Message, own_digits
from dragoman.model.peer import TAKES_ANYTHING, TAKES_JSON_JOBS
from dragoman.wire.zmtp.frames import write_frame

# What is known about a peer (`EmqpSession.informed`).
UNKNOWN: Final = 0
ORIGINAL: Final = 1  # its INFORM has the original's form: accepts JSON jobs only
ANYTHING: Final = 2  # its INFORM has the specification's form, or states that it accepts bytes


@final
class EmqpSession(ZmtpSession):
    """Handles every eMQP command; the listener only decides what an unknown peer may do."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: EmqpDialect) -> None:
        super().__init__(enums.EMQP, listener, listener_no, outboxes, b"ROUTER")
        self.zmtp.reader.prefixes = commands.PREFIXES
        self.emqp = dialect
        self.envelope: int = 1
        self.is_req: bool = False
        self.is_plain: bool = True  # the usual envelope and frame form: the fast output path applies
        self.informed: int = UNKNOWN
        self.is_scheduler: bool = False
        self.has_sent_ready: bool = False
        self.has_sent: bool = False
        self.was_released: bool = False
        self.next_beat_ns: int = 0
        self.opened_ns: int = 0

    def opened(self) -> None:
        self.is_req = self.zmtp.peer_socket_type == b"REQ"
        self.takes_one_answer = self.is_req
        self.is_plain = not self.zmtp.is_v1
        self.opened_ns = self.exchange.now_ns
        self.emqp.sessions[self.connection_no] = self

    def ended(self) -> None:
        self.emqp.sessions.pop(self.connection_no, None)
        self.emqp.schedulers.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def on_message(self, frames: list[bytes]) -> None:
        first = frames[0]
        if first is commands.REQUEST_OPENING or first is commands.REPLY_OPENING or first is commands.READY_OPENING:
            self.on_prefixed(first, frames)
            return
        at = 0
        while at < len(frames) and at < 2 and not frames[at]:
            at += 1
        if len(frames) < at + 3:
            self.exchange.note(self, "EMQP_SHORT_MESSAGE")
            return
        version = frames[at]
        if version != commands.VERSION and not version.startswith(commands.VERSION_MAJOR):
            self.exchange.note(self, "EMQP_VERSION")
            return
        if at != self.envelope:
            self.envelope = at
            self.is_plain = at == 1 and not self.zmtp.is_v1
        self.has_sent = True
        command = frames[at + 1]
        if command == commands.REQUEST:
            self.on_request(frames, at + 2)
        elif command == commands.REPLY:
            self.on_reply(frames, at + 2)
        elif command == commands.READY:
            self.on_ready()
        else:
            self.on_rarer(command.upper(), frames, at + 2)

    def on_prefixed(self, opening: bytes, frames: list[bytes]) -> None:
        """Handle the three commands that make up most of the traffic, in their usual envelope."""
        if self.envelope != 1:
            self.envelope = 1
            self.is_plain = True
        self.has_sent = True
        if opening is commands.REQUEST_OPENING:
            self.on_request(frames, 1)
        elif opening is commands.REPLY_OPENING:
            self.on_reply(frames, 1)
        else:
            self.on_ready()

    def on_rarer(self, command: bytes, frames: list[bytes], at: int) -> None:
        """`at` is the index of the message id."""
        if command == commands.HEARTBEAT:
            self.on_heartbeat()
        elif command == commands.INFORM:
            self.on_inform(frames, at)
        elif command == commands.SCHEDULE or command == commands.UNSCHEDULE:
            schedules.take(self, command, frames, at)
        elif command == commands.PUBLISH:
            self.on_publish(frames, at)
        elif command == commands.STATE or command == commands.CANCEL:
            self.on_question(command, frames, at)
        elif command == commands.KBYE or command == commands.KBAI:
            self.on_kbye()
        elif command == commands.DISCONNECT:
            self.on_disconnect(frames[at])
        elif command == commands.STATUS or command == commands.SHOW_WORKERS or command == commands.SHOW_SCHEDULERS:
            self.tell([commands.REPLY, self.emqp.next_id(), status.answer(command, self.exchange, self.emqp)])
            self.had_enough = True
        elif command == commands.REQUEST:
            self.on_request(frames, at)
        elif command == commands.REPLY:
            self.on_reply(frames, at)
        elif command == commands.READY:
            self.on_ready()
        else:
            self.exchange.note(self, "EMQP_UNKNOWN_COMMAND")

    def on_request(self, frames: list[bytes], at: int) -> None:
        count = len(frames)
        queue = frames[at + 1] if count > at + 1 else b""
        text = frames[at + 2] if count > at + 2 else b""
        body = frames[at + 3] if count > at + 3 else b""
        headers = self.emqp.meanings.of(text)
        m = Message(enums.EMQP, queue if len(queue) > 0 else self.emqp.settings.default_queue, frames[at], body)
        if headers.problem:
            self.refuse(m, enums.BAD_HEADER, headers.problem)
            return
        m.headers = text
        m.flags = one_answer(headers.flags) if self.is_req else headers.flags
        m.retries_left = headers.retries
        m.timeout_ns = headers.timeout_ns
        m.priority = headers.priority
        m.dedupe = headers.dedupe
        if headers.delay_ns:
            m.due_ns = self.exchange.now_ns + headers.delay_ns
        if headers.expires_ns:
            m.expires_ns = self.exchange.now_ns + headers.expires_ns
        m.client = self
        m.address = self.address
        refusal = self.exchange.submit(m)
        if refusal == enums.TAKEN:
            return
        if refusal == enums.DUPLICATE and m.flags & enums.KEPT_WANTED:
            self.kept(m)
        else:
            self.refuse(m, refusal, enums.REFUSAL_TEXTS[refusal])

    def on_reply(self, frames: list[bytes], at: int) -> None:
        """Handle a worker's answer, matched by the request's id: the original may answer with an identity that we have never seen."""
        if len(frames) < at + 3:
            self.exchange.note(self, "EMQP_SHORT_MESSAGE")
            return
        value = frames[at + 1]
        wire_id = frames[at + 2]
        m = self.exchange.find(wire_id)
        if m is None:
            self.exchange.late(self, self.exchange.ids.fact_id(own_digits(wire_id), 0, wire_id))
            return
        self.exchange.reply(self, m, value, commands.is_failure(value))

    def on_ready(self) -> None:
        self.has_sent_ready = True
        if self.is_worker:
            self.exchange.ready(self, 1)
        elif self.is_scheduler:
            self.exchange.note(self, "EMQP_READY_FROM_A_SCHEDULER")  # DISCONNECT would end the scheduler program
        else:
            # A worker that we took for lost, or that is still connected after a restart of ours: make it send INFORM again.
            self.tell_now([commands.DISCONNECT, self.emqp.next_id()])

    def on_inform(self, frames: list[bytes], at: int) -> None:
        """Register a scheduler, or a worker of some queues."""
        count = len(frames)
        role = frames[at + 2] if count > at + 2 else b""
        if role == commands.SCHEDULER:
            self.is_scheduler = True
            self.emqp.schedulers[self.connection_no] = self
        else:
            settings = self.emqp.settings
            text = frames[at + 1] if count > at + 1 else b""
            refusal = enums.TOO_LONG
            if (
                len(text) <= SERVED_TEXT_SIZE_MAX
            ):  # checked before parsing: megabytes of JSON would block all connections
                refusal = self.exchange.join(self, jobs.read_queues(text, settings))
            if refusal != enums.TAKEN:
                self.exchange.note(self, "EMQP_INFORM_REFUSED")
                if count > at + 3:  # it accepts bytes: the original would not understand a REPLY
                    error = jobs.error_value(enums.REFUSAL_CODES[refusal], enums.REFUSAL_TEXTS[refusal])
                    self.tell_now([commands.REPLY, self.emqp.next_id(), error, frames[at]])
                return
            self.is_scheduler = False
            self.emqp.schedulers.pop(self.connection_no, None)
            is_original = count == at + 3
            self.informed = ORIGINAL if is_original else ANYTHING
            self.body_constraint = TAKES_JSON_JOBS if is_original and settings.json_only else TAKES_ANYTHING
            self.lease_grace_ns = settings.timeout_grace_ns if is_original else 0
            self.lease_ns = settings.original_timeout_ns if is_original else 0
        self.tell_now([commands.ACK, self.emqp.next_id(), frames[at]])
        self.send_heartbeat(self.exchange.now_ns)  # the original starts its processes on it

    def on_heartbeat(self) -> None:
        # Only a program that received an ACK sends these; on the worker port it is a job manager, which starts over on DISCONNECT.
        if self.informed == UNKNOWN and not self.is_scheduler and self.listener == "emqp.worker":
            self.tell_now([commands.DISCONNECT, self.emqp.next_id()])

    def on_publish(self, frames: list[bytes], at: int) -> None:
        if len(frames) < at + 3:
            self.exchange.note(self, "EMQP_SHORT_MESSAGE")
            return
        if len(frames[at + 1]) > NAME_SIZE_MAX:
            self.exchange.note(self, "TOPIC_TOO_LONG")
            return
        self.exchange.publish(self, frames[at + 1], frames[at + 2])

    def on_question(self, command: bytes, frames: list[bytes], at: int) -> None:
        """Handle our extensions STATE and CANCEL: `id, the request's id` is answered with `value, id`."""
        request_id = frames[at + 1] if len(frames) > at + 1 else b""
        answer = status.state_of if command == commands.STATE else status.cancel
        self.had_enough = True  # it may search all messages on disk
        self.tell(
            [commands.REPLY, self.emqp.next_id(), b'{"value":%s}' % answer(request_id, self.exchange), frames[at]]
        )

    def on_kbye(self) -> None:
        if self.is_worker:
            self.exchange.leave(self)
        self.emqp.schedulers.pop(self.connection_no, None)

    def on_disconnect(self, message_id: bytes) -> None:
        if self.listener == "emqp.admin":
            self.tell_now(status.stop(message_id, self.outboxes, self.emqp))
        elif self.is_worker:
            self.exchange.leave(self)
        else:
            self.exchange.note(self, "EMQP_ONLY_AN_ADMIN_MAY_STOP_THE_BROKER")

    def deliver(self, message: Message) -> None:
        is_ours = message.dialect == enums.EMQP or message.dialect == enums.INTERNAL
        headers = self.emqp.meanings.of(message.headers if is_ours else jobs.headers_of(message))
        text = headers.to_original if self.informed == ORIGINAL else headers.to_worker
        wire_id = self.exchange.ids.of(message)
        if not self.is_plain:
            self.tell([commands.REQUEST, wire_id, message.queue, text, message.body])
            return
        out = self.held_out
        out.write(commands.REQUEST_OPENING)
        write_frame(out, wire_id, True)
        write_frame(out, message.queue, True)
        write_frame(out, text, True)
        body = message.body
        if len(body) <= INLINE_BODY_SIZE_MAX:
            write_frame(out, body, False)
        else:
            self.hold_frame(body, False)
        self.touch()

    def handed_over(self, message: Message) -> None:
        if self.is_plain:
            out = self.held_out
            out.write(commands.REPLY_OPENING)
            self.emqp.write_next_id(out)
            write_frame(out, message.client_id, False)
            self.touch()
        else:
            self.tell([commands.REPLY, self.emqp.next_id(), message.client_id])

    def answered(self, message: Message, value: bytes) -> None:
        if not message.flags & enums.REPLY_WANTED:
            return
        if self.is_plain:
            out = self.held_out
            out.write(commands.REPLY_OPENING)
            self.emqp.write_next_id(out)
            if len(value) <= INLINE_BODY_SIZE_MAX:
                write_frame(out, value, True)
            else:
                self.hold_frame(value, True)
                out = self.held_out
            write_frame(out, message.client_id, False)
            self.touch()
        else:
            self.tell([commands.REPLY, self.emqp.next_id(), value, message.client_id])

    def kept(self, message: Message) -> None:
        self.tell([commands.ACK, self.emqp.next_id(), message.client_id])

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        """Notify only a client that waits for an answer: for a result it requested, or for any answer if a REQ peer had none yet."""
        if message.flags & enums.REPLY_WANTED or (
            self.is_req and message.flags & enums.HANDOVER_WANTED and message.attempt == 0
        ):
            if not commands.is_failure(value):  # the worker used another dialect's format, or there is no value
                name = enums.REASON_NAMES[reason]
                text = value[:ERROR_TEXT_SIZE_MAX].decode("utf-8", "replace") if value else name.replace("_", " ")
                value = jobs.error_value(name.upper(), text)
            self.tell([commands.REPLY, self.emqp.next_id(), value, message.client_id])

    def refuse(self, message: Message, refusal: int, text: str) -> None:
        """Answer refused work whatever the headers are, because no other answer follows. While the journal cannot store anything this must not
        wait for it; only "duplicate" refers to a message that may not be stored yet."""
        frames = [
            commands.REPLY,
            self.emqp.next_id(),
            jobs.error_value(enums.REFUSAL_CODES[refusal], text),
            message.client_id,
        ]
        if refusal == enums.DUPLICATE:
            self.tell(frames)
        else:
            self.tell_now(frames)

    def withdraw(self, message: Message, reason: int) -> None:
        """Do nothing: eMQP has no command for it; the late answer will be dropped."""

    def accepts(self, message: Message) -> bool:
        if not (message.fit | message.unfit) & TAKES_JSON_JOBS:
            if jobs.is_original_job(message):
                message.fit |= TAKES_JSON_JOBS
            else:
                message.unfit |= TAKES_JSON_JOBS
        return message.fit & TAKES_JSON_JOBS != 0

    def ask_to_inform_again(self) -> None:
        """Handle the loss of its worker role; DISCONNECT makes the original's and our own workers start over."""
        self.informed = UNKNOWN
        if self.has_sent_ready:
            self.tell_now([commands.DISCONNECT, self.emqp.next_id()])

    def beat(self, now_ns: int) -> None:
        settings = self.emqp.settings
        if self.is_unread:
            self.last_sign_ns = self.exchange.now_ns
        if self.is_worker or self.is_scheduler:
            silence_ns = self.exchange.now_ns - self.last_sign_ns
            if self.is_worker and not self.work.is_leaving and silence_ns > settings.worker_lost_ns:
                self.exchange.lose(self, enums.HEARTBEAT_LOST)
                self.ask_to_inform_again()
            elif now_ns >= self.next_beat_ns:
                self.send_heartbeat(now_ns)
        elif (
            not self.has_sent
            and not self.was_released
            and self.listener == "emqp.worker"
            and now_ns - self.opened_ns > settings.worker_lost_ns
        ):
            # The original waits for ever for the ACK of an INFORM that the previous broker received: any ACK releases it.
            self.was_released = True
            self.tell_now([commands.ACK, self.emqp.next_id(), self.emqp.next_id()])

    def send_heartbeat(self, now_ns: int) -> None:
        self.next_beat_ns = now_ns + self.emqp.settings.heartbeat_ns
        stamp = b"%d.%06d" % (now_ns // 1_000_000_000, now_ns % 1_000_000_000 // 1000)
        frames = [commands.HEARTBEAT, self.emqp.next_id(), stamp]
        if self.work.is_dismissed and self.informed == ANYTHING:
            frames.append(commands.DISMISSED)
        self.tell_now(frames)

    def dismissed(self) -> None:
        self.send_heartbeat(self.exchange.now_ns)

    def admitted(self) -> None:
        self.send_heartbeat(self.exchange.now_ns)

    def say_goodbye(self) -> None:
        if self.is_worker or self.is_scheduler:
            self.tell_now([commands.KBYE, self.emqp.next_id()])

    def tell(self, frames: list[bytes]) -> None:
        self.say([b""] * self.envelope + [commands.VERSION, *frames])

    def tell_now(self, frames: list[bytes]) -> None:
        self.say_now([b""] * self.envelope + [commands.VERSION, *frames])


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> EmqpDialect:
    return EmqpDialect(outboxes, EmqpSettings(), id_prefix_of(id_seed))


def new_session(dialect: EmqpDialect, listener: str, listener_no: int) -> Session:
    if listener == "emqp.subscribe":
        return TopicSubscriber(enums.EMQP, listener, listener_no, dialect.outboxes, b"PUB")
    return EmqpSession(listener, listener_no, dialect.outboxes, dialect)
