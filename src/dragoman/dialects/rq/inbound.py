"""Handles the operations of one node, which may be source and consumer at once, on one connection."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from mypy_extensions import i64

from dragoman.dialects.rq.consumer import RqConsumer, is_noreply
from dragoman.errors import TooManyConsumers
from dragoman.limits import RQ_QUEUES_MAX
from dragoman.model.enums import EXPIRES_HELD, FAILURE_FINAL, HANDOVER_WANTED, KEPT_WANTED, REPLY_WANTED, RQ, TAKEN
from dragoman.model.message import Message, fact_id
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.commands import ABSENT, PRIORITY_LOW, PRIORITY_NONE, PRIORITY_NORMAL, U16
from dragoman.wire.risp.reader import RispHandler
from dragoman.wire.risp.writer import PONG_BYTES, encode_consuming, encode_undelivered

if TYPE_CHECKING:
    from dragoman.dialects.rq.sessions import RqSession

# RETRIES are for consumers that died or returned a message; any answer is final.
WITH_REPLY: Final = REPLY_WANTED | HANDOVER_WANTED | FAILURE_FINAL
WITHOUT_REPLY: Final = KEPT_WANTED | FAILURE_FINAL


@final
class RqInbound(RispHandler):
    """The controller's handler for one node."""

    def __init__(self, session: RqSession) -> None:
        self.session = session
        self.exchange = session.exchange
        self.settings = session.rq.settings
        self.request_ids = session.request_ids
        self.rq = session.rq
        self.queues: dict[int, bytes] = {}  # by the ids assigned to this node
        self.queue_ids: dict[bytes, int] = {}
        self.own_id: int = U16  # where the search for an id of this connection alone begins

    def queue_of(self, queue: bytes, queue_id: i64) -> bytes:
        """The queue: by its name, by an id assigned to this node, or by one assigned to any other; empty when there is none."""
        if queue or queue_id < 0:
            return queue
        own = self.queues.get(int(queue_id))
        if own is not None:
            return own
        queues = self.rq.queues
        return queues[queue_id] if queue_id < len(queues) else b""

    # -- a source -------------------------------------------------------------------------------------------------------

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        session = self.session
        if len(queue) == 0:
            queue = self.queue_of(queue, queue_id)
            if not queue:
                self.exchange.note(session, "RQ_NO_QUEUE")
                session.say_now(encode_undelivered(request_id))
                return
        m = Message(RQ, queue, request_id, body)
        m.flags = WITHOUT_REPLY if no_reply else WITH_REPLY
        m.retries_left = self.settings.retries if retries == ABSENT else int(retries)
        if timeout_s > 0:
            m.expires_ns = self.exchange.now_ns + int(timeout_s) * SECOND_NS
            if not no_reply:
                m.flags |= EXPIRES_HELD
        m.client = session
        m.address = session.address
        if self.exchange.submit(m) != TAKEN:
            session.say_now(encode_undelivered(request_id))
        elif not no_reply:
            session.pending += 1

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        queue = self.queue_of(queue, queue_id)
        if queue:
            self.exchange.publish(self.session, queue, body)
        else:
            self.exchange.note(self.session, "RQ_NO_QUEUE")

    # -- a consumer -----------------------------------------------------------------------------------------------------

    def on_consume(self, queue: bytes, queue_id: i64, messages_max: i64, priority: i64, is_exclusive: bool) -> None:
        session = self.session
        queue = self.queue_of(queue, queue_id)
        if not queue:
            self.exchange.note(session, "RQ_NO_QUEUE")
            return
        if session.is_closing or session.rq.is_draining:
            self.exchange.note(session, "RQ_CONSUME_WHILE_CLOSING")
            return
        consumer = session.consumers.get(queue)
        if consumer is None:
            consumer = RqConsumer(session, queue, self.id_of(queue))
        rank = PRIORITY_NORMAL if priority == ABSENT else int(priority)
        if self.exchange.consume(consumer, queue, rank, is_exclusive) != TAKEN:
            self.exchange.note(session, "RQ_CONSUME_REFUSED")
            return
        session.consumers[queue] = consumer
        most = self.settings.consumer_messages_max
        consumer.messages_max = min(int(messages_max), most) if messages_max > 0 else most
        if rank == PRIORITY_NONE:
            consumer.messages_max = 0
        consumer.is_relay = rank == PRIORITY_LOW and consumer.messages_max == 1
        consumer.is_blocked = session.is_blocked or session.is_idle
        self.exchange.topics.subscribe_exactly(consumer, queue)
        consumer.is_consuming = consumer.work.is_dismissed or not consumer.work.serves[0].is_waiting
        if consumer.is_consuming:
            session.say_now(encode_consuming(consumer.queue_id, queue))
        room = consumer.messages_max - consumer.unanswered
        if room > 0:
            self.exchange.ready(consumer, room)

    def id_of(self, queue: bytes) -> int:
        """A queue's id for this node, the same whenever it consumes the queue. If the controller has no id left, or this node already has the id
        for another queue, the id is valid on this connection only."""
        known = self.queue_ids.get(queue)
        if known is not None:
            return known
        if len(self.queues) >= RQ_QUEUES_MAX:
            raise TooManyConsumers(RQ_QUEUES_MAX)
        queue_id = self.rq.id_of(queue)
        if queue_id == 0 or queue_id in self.queues:
            while self.own_id in self.queues:
                self.own_id -= 1
            queue_id = self.own_id
        self.queues[queue_id] = queue
        self.queue_ids[queue] = queue_id
        return queue_id

    def on_cancel_queue(self, queue: bytes, queue_id: i64) -> None:
        session = self.session
        consumer = session.consumers.get(self.queue_of(queue, queue_id))
        if consumer is None or not consumer.is_worker or consumer.work.is_leaving:
            self.exchange.note(session, "RQ_NOT_CONSUMED")
            return
        session.retire(consumer)

    def on_delivered(self, request_id: i64) -> None:
        request_ids = self.request_ids
        m = request_ids.get(request_id)
        if m is None:
            stale = request_ids.get_stale(request_id)
            if stale is None:
                self.on_unknown_id()
            elif stale.is_noreply:
                self.answer_late(request_id, b"")
            return
        consumer = m.worker
        assert isinstance(consumer, RqConsumer)
        if is_noreply(m):
            request_ids.free(request_id)
            self.exchange.reply(consumer, m, b"", False)
            consumer.has_answered()
        else:
            self.exchange.delivered(consumer, m)

    def on_reply(self, request_id: i64, body: bytes) -> None:
        request_ids = self.request_ids
        m = request_ids.get(request_id)
        if m is None:
            self.answer_late(request_id, body)
            return
        consumer = m.worker
        assert isinstance(consumer, RqConsumer)
        request_ids.free(request_id)
        self.exchange.reply(consumer, m, body, False)
        consumer.has_answered()

    def on_undelivered(self, request_id: i64) -> None:
        """The node returns a message."""
        request_ids = self.request_ids
        m = request_ids.get(request_id)
        if m is None:
            stale = request_ids.get_stale(request_id)
            if stale is None:
                self.on_unknown_id()
                return
            request_ids.free_stale(request_id)
            stale.consumer.has_answered()
            return
        consumer = m.worker
        assert isinstance(consumer, RqConsumer)
        request_ids.free(request_id)
        self.exchange.give_back(consumer, m)
        consumer.has_answered()

    def answer_late(self, request_id: i64, body: bytes) -> None:
        """Handle an answer to a withdrawn message: it counts if that message is still open, and never for another message."""
        stale = self.request_ids.get_stale(request_id)
        if stale is None:
            self.on_unknown_id()
            return
        self.request_ids.free_stale(request_id)
        m = self.exchange.by_number(stale.number)
        if m is not None:
            if m.worker is stale.consumer:  # the same consumer has it again, with another id
                self.request_ids.mark_stale(m, stale.consumer, is_noreply(m))
            self.exchange.reply(stale.consumer, m, body, False)
        else:
            self.exchange.late(stale.consumer, fact_id(stale.number))
        stale.consumer.has_answered()

    def on_unknown_id(self) -> None:
        self.exchange.note(self.session, "RQ_UNKNOWN_ID")

    # -- either ---------------------------------------------------------------------------------------------------------

    def on_ping(self) -> None:
        self.session.say_now(PONG_BYTES)

    def on_closing(self) -> None:
        self.session.begin_closing()

    def on_stray(self, command: i64) -> None:
        self.exchange.note(self.session, "RQ_UNKNOWN_COMMAND")
