"""A link to another controller: this broker consumes there the queues that its own workers serve, and returns the answers.

To the other controller we are a node like any other; the link consumes with MAX 1 and LOW priority, so that the other controller's own
workers come first. Here the link is a source: DELIVERED, REPLY and UNDELIVERED go back with the ids of the requests.

Two controllers may be linked to each other. To prevent loops, a queue is consumed there only while a worker of more than LOW priority
serves it here, and a broadcast that came over a link is not sent to consumers of LOW priority. A request may go back and forth while the
workers of both are busy, but each controller has it until the other has settled it, and accepts no second one: MAX is 1. For the same
reason a request without a reply is settled there when it is done here, not when it is stored.

The original controller aborts, with all its connections, on CANCEL_QUEUE, and on CLOSING while it has any message, and an UNDELIVERED of
ours would leave the slot in use there for ever. A link sends none of the three; it is *wound down* instead: open requests may still be
answered for a while; then the connection ends, which every controller handles, and the runtime makes another.
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.rq.consumer import is_noreply
from dragoman.dialects.rq.dialect import RqDialect
from dragoman.dialects.rq.source import RqSource
from dragoman.dialects.session import Outboxes
from dragoman.limits import RQ_LINK_LINGER_NS
from dragoman.model.enums import BROKER_STOPPED, CONNECTION_ENDED, HANDOVER_WANTED, REPLY_WANTED, RQ, TAKEN
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.commands import DELIVERED, NOREPLY, PRIORITY_LOW
from dragoman.wire.risp.reader import RispHandler, RispReader
from dragoman.wire.risp.writer import PING_BYTES, PONG_BYTES, encode_consume

MESSAGES_MAX: Final = 1
LOOK_NS: Final = SECOND_NS // 2  # how often the queues that our workers serve are checked
NOREPLY_MARK: Final = bytes([NOREPLY])

UNDELIVERED_TEXT: Final = "a request of the other controller could not be delivered here"
UNSERVED_TEXT: Final = "a queue consumed there has no worker here any more"


@final
class LinkHandler(RispHandler):
    """Receives the requests and broadcasts of the other controller."""

    def __init__(self, link: RqLink) -> None:
        self.link = link
        self.queues: dict[int, bytes] = {}  # by the other controller's ids

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        self.queues[int(queue_id)] = queue

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        self.link.take(request_id, queue or self.queues.get(int(queue_id), b""), body, no_reply)

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        self.link.relay(queue or self.queues.get(int(queue_id), b""), body)

    def on_ping(self) -> None:
        self.link.say_now(PONG_BYTES)

    def on_closing(self) -> None:
        self.link.is_closing = True

    def on_server_full(self) -> None:
        self.link.finish()


@final
class RqLink(RqSource):
    """One connection of ours to another controller."""

    def __init__(self, listener: str, listener_no: int, outboxes: Outboxes, dialect: RqDialect) -> None:
        super().__init__(listener, listener_no, outboxes, dialect)
        self.reader = RispReader(LinkHandler(self), outboxes.message_size_max)
        self.consumed: dict[bytes, bool] = {}
        self.next_look_ns: int = 0
        self.is_winding_down: bool = False  # it ends once no request that came over it is open here
        self.wound_down_ns: int = 0
        self.problem: str = ""  # why it is wound down
        self.is_replaced_at_once: bool = False  # not a failure: the next connection need not wait

    def start(self) -> None:
        self.enter()
        self.is_greeted = True  # the connection is ours, so its first bytes need no check
        self.rq.links[self.connection_no] = self

    def ended(self) -> None:
        """Cancel the other controller's requests: it gives them to other consumers now."""
        self.is_connected = False
        self.rq.links.pop(self.connection_no, None)
        self.exchange.cancel_all(self, CONNECTION_ENDED)
        self.exit()

    def receive(self, data: bytes) -> None:
        super().receive(data)
        if self.is_closing:
            self.finish_if_done()

    def take(self, request_id: bytes, queue: bytes, body: bytes, wants_no_reply: bool) -> None:
        m = Message(RQ, queue, request_id, body)
        m.flags = REPLY_WANTED | HANDOVER_WANTED
        if wants_no_reply:
            m.headers = NOREPLY_MARK
        m.retries_left = self.rq.settings.retries
        m.client = self
        m.address = self.address
        # Due now: such a message stays in memory, also across restarts, where `RqDialect.listening` finds it.
        m.due_ns = self.exchange.now_ns
        if queue and self.exchange.submit(m) == TAKEN:
            self.pending += 1
        else:
            self.wind_down(UNDELIVERED_TEXT)

    def relay(self, queue: bytes, body: bytes) -> None:
        if queue:
            self.rq.is_relaying = True
            self.exchange.publish(self, queue, body)
            self.rq.is_relaying = False

    def handed_over(self, message: Message) -> None:
        if not is_noreply(message):
            self.say_of(message, DELIVERED)

    def answered(self, message: Message, value: bytes) -> None:
        if not is_noreply(message):
            super().answered(message, value)
        else:
            self.pending -= 1
            self.say_of(message, DELIVERED)
        if self.is_closing or self.is_winding_down:
            self.finish_if_done()

    def say_undelivered(self, message: Message) -> None:
        """Wind the link down: the end of the connection tells the other controller."""
        if self.is_connected:
            self.wind_down(UNDELIVERED_TEXT)

    def wind_down(self, problem: str) -> None:
        """End the connection once the requests that came over it are answered, or after RQ_LINK_LINGER_NS."""
        if not self.is_winding_down:
            self.is_winding_down = True
            self.wound_down_ns = self.exchange.now_ns
            self.problem = problem
        self.finish_if_done()

    def finish_if_done(self) -> None:
        if self.pending <= 0:
            self.finish()

    # -- time -----------------------------------------------------------------------------------------------------------

    def beat(self, now_ns: int) -> None:
        settings = self.rq.settings
        if now_ns >= self.next_look_ns:
            self.next_look_ns = now_ns + LOOK_NS
            self.look()
        if self.is_winding_down and self.exchange.now_ns - self.wound_down_ns >= RQ_LINK_LINGER_NS:
            self.finish()
        silence_ns = self.silence_ns()
        if silence_ns < settings.ping_ns:
            return
        if not self.is_pinged:
            self.is_pinged = True
            self.say_now(PING_BYTES)
        elif silence_ns >= settings.ping_ns + settings.pong_ns:
            self.finish()  # silent: the next connection may work again

    def look(self) -> None:
        """Consume there the queues that are served here. A queue that is no longer served can only be given up with the connection."""
        if self.is_closing or self.is_winding_down:
            return
        wanted: dict[bytes, bool] = {}
        for worker in self.exchange.all_workers():
            for serving in worker.work.serves:
                if serving.rank > PRIORITY_LOW and not serving.is_waiting and 0 < len(serving.queue) <= 255:
                    wanted[serving.queue] = True
        for queue in self.consumed:
            if queue not in wanted:
                self.is_replaced_at_once = True
                self.wind_down(UNSERVED_TEXT)
                return
        for queue in wanted:
            if queue not in self.consumed:
                self.consumed[queue] = True
                self.say_now(encode_consume(queue, MESSAGES_MAX, PRIORITY_LOW))

    # -- closing --------------------------------------------------------------------------------------------------------

    def say_goodbye(self) -> None:
        """The broker stops: requests that cannot finish here go back to the other controller when the connection ends."""
        self.exchange.cancel_all(self, BROKER_STOPPED)
        self.finish()
