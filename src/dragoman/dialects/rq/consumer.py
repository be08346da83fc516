"""One queue that a node consumes, which is a worker to the core. A node has one of these per queue; they share its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from librt.strings import write_i32_be
from mypy_extensions import i32, i64

from dragoman.limits import INLINE_BODY_SIZE_MAX
from dragoman.model.enums import REPLY_WANTED, RQ, WORKER_LEFT
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_ANYTHING, TAKES_NO_EMPTY_BODY, Peer
from dragoman.wire.risp.commands import ID, NOREPLY, PRIORITY_LOW, REQUEST
from dragoman.wire.risp.writer import encode_broadcast_to_consumer, encode_consuming, request_head

if TYPE_CHECKING:
    from dragoman.dialects.rq.sessions import RqSession


@final
class RqConsumer(Peer):
    """A worker of one queue. Its slots are MAX minus the ids that are not answered yet."""

    def __init__(self, session: RqSession, queue: bytes, queue_id: int) -> None:
        super().__init__(RQ, session.listener)
        self.session = session
        self.queue = queue
        self.queue_id = queue_id
        self.head = request_head(queue_id)
        self.remote = session.remote
        self.says_delivered = True
        self.messages_max: int = 0
        self.unanswered: int = 0  # ids without an answer, including those of withdrawn messages
        self.is_consuming: bool = False  # CONSUMING was sent: it is served
        self.set_safe(session.rq.settings.librq_safe)

    def connection_peer(self) -> Peer:
        return self.session

    def set_safe(self, is_safe: bool) -> None:
        """Whether to avoid empty payloads, on which the original's library aborts."""
        self.body_constraint = TAKES_NO_EMPTY_BODY if is_safe else TAKES_ANYTHING
        self.is_strict = is_safe

    def has_answered(self) -> None:
        """Free an id, and with it a slot, unless a later CONSUME lowered MAX."""
        self.unanswered -= 1
        if not self.work.is_leaving:
            if self.unanswered + self.work.slots < self.messages_max:
                self.session.exchange.ready(self, 1)
        elif not self.work.leases:
            self.session.release(self, WORKER_LEFT)

    # -- callbacks of the core ------------------------------------------------------------------------------------------

    def deliver(self, message: Message) -> None:
        session = self.session
        request_id: i64 = session.request_ids.take(message)
        self.unanswered += 1
        out = session.held_out
        out.write(self.head)
        body = message.body
        size = len(body)
        write_i32_be(out, i32(size))
        if size <= INLINE_BODY_SIZE_MAX:
            out.write(body)
        else:
            session.hold_part(body)
            out = session.held_out
        if is_noreply(message):
            out.append(NOREPLY)
        out.append(ID)
        write_i32_be(out, i32(request_id))
        out.append(REQUEST)
        session.touch()

    def withdraw(self, message: Message, reason: int) -> None:
        """rq has no command for it: the id stays in use until the node answers it."""
        self.session.request_ids.mark_stale(message, self, is_noreply(message))

    def accepts(self, message: Message) -> bool:
        if not (message.fit | message.unfit) & TAKES_NO_EMPTY_BODY:
            if message.body_size > 0:
                message.fit |= TAKES_NO_EMPTY_BODY
            else:
                message.unfit |= TAKES_NO_EMPTY_BODY
                self.session.exchange.note(self, "RQ_EMPTY_BODY_REFUSED")
        return message.fit & TAKES_NO_EMPTY_BODY != 0

    def admitted(self) -> None:
        """Update `is_consuming` after the operator admitted it: it is served immediately, after a first CONSUMING if needed, or waits again."""
        if self.work.serves and not self.work.serves[0].is_waiting:
            if not self.is_consuming:
                self.promoted(self.queue)
        else:
            self.is_consuming = False

    def promoted(self, queue: bytes) -> None:
        self.is_consuming = True
        self.session.say_now(encode_consuming(self.queue_id, queue))

    def published(self, topic: bytes, body: bytes) -> None:
        if not self.is_consuming or self.work.is_dismissed:
            return
        session = self.session
        if session.rq.is_relaying and self.work.serves[0].rank <= PRIORITY_LOW:
            return  # perhaps the link that it came from
        if session.rq.settings.librq_safe:
            session.exchange.note(self, "RQ_BROADCAST_SKIPPED")
        elif session.is_socket_full or session.is_idle:
            session.exchange.note(self, "SLOW_SUBSCRIBER_DROPPED")
        else:
            session.say_now(encode_broadcast_to_consumer(self.queue_id, body))


def is_noreply(message: Message) -> bool:
    """Whether the consumer's DELIVERED settles it: only if an rq source requested that, or one beyond a link, which marks it in the headers."""
    return message.dialect == RQ and (not message.flags & REPLY_WANTED or len(message.headers) > 0)
