"""The broker's sessions of rq. `RqSession` is one connection: a node that is a source, a consumer, or both. Its operations are handled in inbound.py, its queues in consumer.py.

Idle: the node was silent for so long after a PING that it gets no new work until it sends something; it keeps its connection and its
leased messages. Closing: it sent CLOSING; pending answers are still sent in both directions, then the connection ends.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.dialects.rq.consumer import RqConsumer
from dragoman.dialects.rq.description import LINK
from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.rq.ids import RequestIds
from dragoman.dialects.rq.inbound import RqInbound
from dragoman.dialects.rq.link import RqLink
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.rq.source import RqSource
from dragoman.dialects.session import Outboxes, Session
from dragoman.model.enums import BROKER_STOPPED, CONNECTION_ENDED, WORKER_LEFT
from dragoman.wire import first_bytes
from dragoman.wire.risp.commands import CLOSING, is_of_known_commands
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.writer import CONTROLLER_CLOSING, PING_BYTES

# Queues, and leased messages in them, that one connection releases in one turn: some ms of the event loop.
RELEASED_STEP: Final = 200
PIECE_SIZE: Final = 16 * 1024


@final
class RqSession(RqSource):
    """The controller's session for one connection; to the core it is the source, and its consumers are separate peers."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: RqDialect) -> None:
        super().__init__(listener, listener_no, outboxes, dialect)
        self.request_ids = RequestIds()
        self.consumers: dict[bytes, RqConsumer] = {}
        self.reader = RispReader(RqInbound(self), outboxes.message_size_max)
        self.unchecked: bytes = b""  # bytes not yet known to be RISP
        self.is_idle: bool = False
        self.has_said_closing: bool = False  # we sent CLOSING
        self.leaving: list[RqConsumer] = []  # consumers still to be released, or to be blocked from new work
        self.release_reason: int = WORKER_LEFT

    def start(self) -> None:
        self.enter()
        self.rq.nodes[self.connection_no] = self
        if self.rq.is_draining:
            self.say_closing()

    def receive(self, data: bytes) -> None:
        if not self.is_greeted:
            data = self.checked(data)
            if not data:
                return
        super().receive(data)
        if self.is_idle:
            self.set_idle(False)
        if self.is_closing:
            self.finish_if_done()

    def checked(self, data: bytes) -> bytes:
        """Return all received bytes once they are known to be RISP, until then nothing; raises when they are HTTP or TLS."""
        data = self.unchecked + data
        kind = first_bytes.judge(data)
        # A node that leaves while idle sends only CLOSING, which is the first byte of a TLS hello. In both cases the connection ends.
        is_closing = len(data) == 1 and data[0] == CLOSING
        if kind == first_bytes.UNDECIDED and not is_closing:
            self.unchecked = data
            return b""
        if kind == first_bytes.TLS or not is_of_known_commands(data[: data.find(b" ") + 2]):
            first_bytes.refuse(kind)
        self.unchecked = b""
        self.is_greeted = True
        return data

    def piece_size(self) -> int:
        """Smaller than for other sessions: the shortest operations have nine bytes, and each may join or leave a queue."""
        return max(self.reader.missing_size(), PIECE_SIZE)

    def ended(self) -> None:
        self.rq.nodes.pop(self.connection_no, None)
        self.lost(CONNECTION_ENDED)
        self.exit()

    def lost(self, reason: int) -> None:
        """The node is gone with all its consumers: their leased messages go back to the queue."""
        self.is_connected = False  # nothing more is sent to it
        self.leaving = []
        for consumer in self.consumers.values():
            consumer.is_connected = False
            consumer.is_consuming = False
            consumer.is_blocked = True
            if consumer.is_worker:
                self.leaving.append(consumer)
        self.release_reason = reason
        self.release_leaving()

    def release_leaving(self) -> None:
        if self.catch_up():
            self.fall_behind()

    def catch_up(self) -> bool:
        """Release some of the leaving consumers. The others get no new work in the meantime."""
        count = 0
        work = 0
        while count < len(self.leaving) and work < RELEASED_STEP:
            consumer = self.leaving[count]
            count += 1
            work += 1 + len(consumer.work.leases)
            if not self.is_connected:
                self.release(consumer, self.release_reason)
            elif consumer.is_worker and not consumer.work.is_leaving:
                self.retire(consumer)
        self.leaving = self.leaving[count:]
        if not self.leaving and self.is_closing:
            self.finish_if_done()
        return len(self.leaving) > 0

    def release(self, consumer: RqConsumer, reason: int) -> None:
        """End its role as a worker, until the node consumes its queue again."""
        consumer.is_consuming = False
        self.exchange.topics.unsubscribe_exactly(consumer, consumer.queue)
        self.exchange.lose(consumer, reason)

    def retire(self, consumer: RqConsumer) -> None:
        """Give it no new work; its leased messages may still be answered."""
        consumer.is_consuming = False
        self.exchange.leave(consumer)
        if not consumer.work.leases:
            self.release(consumer, WORKER_LEFT)

    def holds_work(self) -> bool:
        return any(consumer.is_worker for consumer in self.consumers.values())

    def set_blocked(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        self.update_blocked()

    def set_idle(self, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.update_blocked()

    def update_blocked(self) -> None:
        """Block consumers from new work while the node does not read or is silent."""
        if not self.is_connected or self.leaving:  # consumers that are still to be released stay blocked
            return
        for consumer in self.consumers.values():
            # Read anew each time: what one consumer is given may fill the output of all.
            if self.is_blocked or self.is_idle:
                consumer.is_blocked = True
            elif consumer.is_blocked:
                self.exchange.unblock(consumer)

    # -- closing --------------------------------------------------------------------------------------------------------

    def begin_closing(self) -> None:
        """The node sent CLOSING."""
        self.is_closing = True
        self.leaving = list(self.consumers.values())
        for consumer in self.leaving:
            consumer.is_blocked = True
        self.release_leaving()

    def finish_if_done(self) -> None:
        """End the connection of a node that sent CLOSING, once no answer is pending in either direction."""
        if self.pending == 0 and not self.leaving and self.request_ids.count == len(self.request_ids.stale):
            self.finish()

    def say_closing(self) -> None:
        """Send our own CLOSING: no new requests; the node may still answer those it has."""
        if not self.has_said_closing:
            self.has_said_closing = True
            self.say_now(CONTROLLER_CLOSING)

    def say_goodbye(self) -> None:
        """The broker stops: cancel all pending requests of the node."""
        self.say_closing()
        if self.pending > 0:  # else the search through all messages is unnecessary
            self.exchange.cancel_all(self, BROKER_STOPPED)
        self.finish()

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        settings = self.rq.settings
        if self.is_closing:
            self.finish_if_done()
        silence_ns = self.silence_ns()
        # A node that has sent nothing yet must send something within `greeting_ns`; a source may have no requests, but it answers a PING.
        if silence_ns < (settings.ping_ns if self.is_greeted else min(settings.ping_ns, settings.greeting_ns // 2)):
            return
        if not self.is_pinged:
            self.is_pinged = True
            self.say_now(PING_BYTES)
        elif not self.is_idle and silence_ns >= settings.ping_ns + settings.pong_ns:
            self.set_idle(True)


def new_dialect(outboxes: Outboxes, id_seed: bytes) -> RqDialect:
    return RqDialect(outboxes, RqSettings())


def new_session(dialect: RqDialect, listener: str, listener_no: int) -> Session:
    if listener == LINK:
        return RqLink(listener, listener_no, dialect.outboxes, dialect)
    return RqSession(listener, listener_no, dialect.outboxes, dialect)
