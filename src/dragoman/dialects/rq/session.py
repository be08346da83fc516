"""One rq connection: a node that asks, consumes, or both. What it says is in inbound, what it consumes in consumer.

Idle: it has been silent for so long after a PING that it gets no new work until it speaks; it keeps its connection and what it
holds. Closing: it said so; what is owed either way is still said, then the connection ends.
"""

from __future__ import annotations

from typing import final

from dragoman.dialects.rq.consumer import RqConsumer
from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.rq.hands import Hands
from dragoman.dialects.rq.inbound import RqInbound
from dragoman.dialects.rq.source import RqSource
from dragoman.dialects.session import Hub
from dragoman.errors import PeerError
from dragoman.model.words import BROKER_STOPPED, CONNECTION_ENDED, WORKER_LEFT
from dragoman.wire import first_bytes
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import CLOSING, is_of_known_commands
from dragoman.wire.risp.writer import CONTROLLER_CLOSING, PING_BYTES


@final
class RqSession(RqSource):
    """The controller's end of one connection; as a peer of the core it is the source, its consumers are peers of their own."""

    def __init__(self, listener: str, listener_no: int, hub: Hub, dialect: RqDialect) -> None:
        super().__init__(listener, listener_no, hub, dialect)
        self.hands = Hands()
        self.consumers: dict[bytes, RqConsumer] = {}
        self.inbound = RqInbound(self)
        self.reader = RispReader(self.inbound, hub.message_size_max)
        self.unjudged: bytes = b""  # until they are known to be RISP
        self.is_pinged: bool = False  # and has said nothing since
        self.is_idle: bool = False
        self.has_said_closing: bool = False  # we did

    def start(self) -> None:
        self.enter()
        self.rq.nodes[self.connection_no] = self
        if self.rq.is_draining:
            self.say_closing()

    def receive(self, data: bytes) -> None:
        if not self.is_greeted:
            data = self.judged(data)
            if not data:
                return
        self.last_sign_ns = self.exchange.now_ns
        self.is_pinged = False
        tap = self.tap
        if tap is not None:
            tap(False, [data])
        self.received_size += len(data)
        self.hub.traffic_size += len(data)
        try:
            self.reader.feed(data)
        finally:
            self.note_operation(self.reader)
        if self.is_idle:
            self.set_idle(False)
        if self.is_closing:
            self.finish_if_done()

    def judged(self, data: bytes) -> bytes:
        """All that has come once it is known to be RISP, until then nothing; raises when it is HTTP or TLS."""
        data = self.unjudged + data
        kind = first_bytes.judge(data)
        # An idle node that leaves says CLOSING and nothing else: the first byte of a TLS hello. Either has ended then.
        is_closing = len(data) == 1 and data[0] == CLOSING
        if kind == first_bytes.UNDECIDED and not is_closing:
            self.unjudged = data
            return b""
        if kind == first_bytes.TLS or not is_of_known_commands(data[: data.find(b" ") + 2]):
            first_bytes.refuse(kind)
        self.unjudged = b""
        self.is_greeted = True
        return data

    def abandon(self, fault: PeerError) -> None:
        self.reader = RispReader(self.inbound, 0)
        self.note_unfinished(0, True, False)

    def ended(self) -> None:
        self.rq.nodes.pop(self.connection_no, None)
        self.lost(CONNECTION_ENDED)
        self.exit()

    def lost(self, reason: int) -> None:
        """Gone with all its consumers: what they hold goes back to the line."""
        self.is_connected = False  # nothing more is said to it
        for consumer in self.consumers.values():
            consumer.is_connected = False
            self.release(consumer, reason)

    def release(self, consumer: RqConsumer, reason: int) -> None:
        """It is no worker any more, until the node consumes its queue again."""
        consumer.is_consuming = False
        self.exchange.unsubscribe_exactly(consumer, consumer.queue)
        self.exchange.lose(consumer, reason)

    def let_go(self, consumer: RqConsumer) -> None:
        """Nothing new for it; what it holds may still be answered."""
        consumer.is_consuming = False
        self.exchange.leave(consumer)
        if not consumer.held:
            self.release(consumer, WORKER_LEFT)

    def holds_work(self) -> bool:
        return any(consumer.is_worker for consumer in self.consumers.values())

    def set_blocked(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        self.balance()

    def set_idle(self, is_idle: bool) -> None:
        self.is_idle = is_idle
        self.balance()

    def balance(self) -> None:
        """One that does not read, or does not speak, gets no new work."""
        is_blocked = self.is_blocked or self.is_idle
        for consumer in self.consumers.values():
            if is_blocked:
                consumer.is_blocked = True
            elif consumer.is_blocked:
                self.exchange.unblock(consumer)

    # -- closing --------------------------------------------------------------------------------------------------------

    def begin_closing(self) -> None:
        """The node is about to go."""
        self.is_closing = True
        for consumer in self.consumers.values():
            if consumer.is_worker and not consumer.is_leaving:
                self.let_go(consumer)

    def finish_if_done(self) -> None:
        """End the connection of a node that said CLOSING, once nothing is owed either way."""
        if self.asked > 0:
            return
        for consumer in self.consumers.values():
            if consumer.held:
                return
        self.finish()

    def say_closing(self) -> None:
        """CLOSING of our own: nothing new is sent, what it holds it may still answer."""
        if not self.has_said_closing:
            self.has_said_closing = True
            self.say_now(CONTROLLER_CLOSING)

    def say_goodbye(self) -> None:
        """The broker stops: whatever the node still waits for cannot finish."""
        self.say_closing()
        if self.asked > 0:  # else there is nothing to look for among all the messages
            self.exchange.cancel_all(self, BROKER_STOPPED)
        self.finish()

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        settings = self.rq.settings
        if self.is_closing:
            self.finish_if_done()
        if self.is_unread:
            self.last_sign_ns = self.exchange.now_ns
        for consumer in self.consumers.values():
            consumer.last_sign_ns = self.last_sign_ns
        silence_ns = self.exchange.now_ns - self.last_sign_ns
        # One that has not said anything yet must do so in time; a source may have nothing to ask, but it answers.
        if silence_ns < (settings.ping_ns if self.is_greeted else min(settings.ping_ns, settings.greeting_ns // 2)):
            return
        if not self.is_pinged:
            self.is_pinged = True
            self.say_now(PING_BYTES)
        elif not self.is_idle and silence_ns >= settings.ping_ns + settings.pong_ns:
            self.set_idle(True)
