"""The client side of rq: endpoints for clients, workers, publishers and subscribers. No sockets, no clock.

client      REQUEST            ─► DELIVERED … REPLY, or UNDELIVERED      a consumer has it; its answer, or there will be none
            REQUEST NOREPLY    ─► DELIVERED                              it is stored, and nothing more is sent
worker      CONSUME per queue ─► CONSUMING ─► REQUEST … DELIVERED at once, REPLY when it is done
                                              REQUEST NOREPLY … DELIVERED when it is done: that settles it
            CLOSING either way: no new requests, pending ones are still answered
subscriber  CONSUME with priority NONE: it gets broadcasts and no requests
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects import endpoint as sdk
from dragoman.dialects.rq.ids import FreeIds
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp import writer
from dragoman.wire.risp.commands import ABSENT, PRIORITY_NONE, PRIORITY_NORMAL, U16
from dragoman.wire.risp.reader import RispHandler, RispReader

# After this long without a byte from the controller: PING; after as long again it counts as silent. The protocol's own number.
SILENCE_S: Final = 15.0
CLOSING_TEXT: Final = "the broker is closing"
FULL_TEXT: Final = "the broker has as many connections as it takes"
SILENT_TEXT: Final = "the broker does not answer PING"

RETRIES_MAX: Final = 255
TIMEOUT_S_MAX: Final = 65535
LEAST_MAX: Final = 1
UNDELIVERED_TEXT: Final = b"UNDELIVERED"


class NodeHandler(RispHandler):
    """The common part of every node: PING and PONG, and detecting a controller that is closing, full or silent. It marks `endpoint` when
    the connection is closing or over, and writes to its output."""

    def __init__(self, endpoint: sdk.Endpoint, message_size_max: int) -> None:
        self.endpoint = endpoint
        self.reader = RispReader(self, message_size_max)
        self.is_full: bool = False
        self.is_silent: bool = False
        self.has_received: bool = True
        self.is_pinged: bool = False
        self.last_received_s: float = 0.0

    def receive(self, data: bytes) -> None:
        self.has_received = True
        self.reader.feed(data)
        self.check()

    def beat(self, now_s: float) -> None:
        if self.has_received:
            self.has_received = False
            self.is_pinged = False
            self.last_received_s = now_s
        elif now_s - self.last_received_s >= SILENCE_S:
            if not self.is_pinged:
                self.is_pinged = True
                self.endpoint.unsent.write(writer.PING_BYTES)
            elif now_s - self.last_received_s >= 2 * SILENCE_S:
                self.is_silent = True
        self.check()

    def check(self) -> None:
        """End the connection if it is unusable; after CLOSING, once no answer is pending."""
        endpoint = self.endpoint
        if self.is_full or self.is_silent or (endpoint.is_closing and not self.has_pending()):
            endpoint.is_over = True
            endpoint.problem = FULL_TEXT if self.is_full else SILENT_TEXT if self.is_silent else CLOSING_TEXT

    def has_pending(self) -> bool:
        """Whether answers are still to be sent or received."""
        return False

    def on_ping(self) -> None:
        self.endpoint.unsent.write(writer.PONG_BYTES)

    def on_closing(self) -> None:
        self.endpoint.is_closing = True

    def on_server_full(self) -> None:
        self.is_full = True


def check_name(queue: bytes) -> None:
    """Raise ValueError unless the name has 1 to 255 bytes: its length on the wire is one byte, and an empty name does not exist."""
    if not 1 <= len(queue) <= 255:
        raise ValueError(f"the name of an rq queue has 1 to 255 bytes, not {len(queue)}")


@final
class Call:
    """A request that is not settled yet."""

    def __init__(self, call_id: bytes, wants_reply: bool) -> None:
        self.call_id = call_id
        self.wants_reply = wants_reply
        self.is_delivered: bool = False


@final
class ClientHandler(NodeHandler):
    """Receives the outcomes of requests."""

    def __init__(self, endpoint: sdk.Endpoint, message_size_max: int) -> None:
        super().__init__(endpoint, message_size_max)
        self.ids = FreeIds()
        self.calls: dict[int, Call] = {}
        self.outcomes: list[tuple[int, bytes, bytes]] = []

    def has_pending(self) -> bool:
        return len(self.calls) > 0

    def end(self, request_id: i64) -> Call | None:
        call = self.calls.pop(int(request_id), None)
        if call is not None:
            self.ids.give(request_id)
        return call

    def on_delivered(self, request_id: i64) -> None:
        call = self.calls.get(int(request_id))
        if call is None:
            return
        call.is_delivered = True
        if not call.wants_reply:
            self.end(request_id)
            self.outcomes.append((sdk.KEPT, call.call_id, b""))

    def on_reply(self, request_id: i64, body: bytes) -> None:
        call = self.end(request_id)
        if call is not None:
            self.outcomes.append((sdk.ANSWERED, call.call_id, body))

    def on_undelivered(self, request_id: i64) -> None:
        call = self.end(request_id)
        if call is not None:
            # A closing controller accepts nothing new; otherwise it is unknown whether a consumer had it.
            is_refused = self.endpoint.is_closing and not call.is_delivered
            self.outcomes.append((sdk.REFUSED if is_refused else sdk.FAILED, call.call_id, UNDELIVERED_TEXT))


@final
class RqClientEndpoint(sdk.ClientEndpoint):
    """One source's connection. After CLOSING it is over once no answer is pending."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        super().__init__()
        self.is_ready = True  # a node needs no handshake
        self.handler = ClientHandler(self, setup.message_size_max)

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        handler = self.handler
        handler.receive(data)
        outcomes = handler.outcomes
        handler.outcomes = []
        return outcomes

    def request(self, call_id: bytes, options: sdk.CallOptions, body: bytes) -> None:
        check_name(options.queue)
        handler = self.handler
        request_id = int(handler.ids.take())
        handler.calls[request_id] = Call(call_id, options.wants_reply)
        retries = min(options.retries, RETRIES_MAX) if options.retries >= 0 else ABSENT
        timeout_s = ABSENT
        if options.expires_ns != sdk.NOT_GIVEN:
            timeout_s = min(max(1, -(-options.expires_ns // SECOND_NS)), TIMEOUT_S_MAX)
        self.unsent.write(
            writer.encode_request(
                writer.id_bytes(request_id), options.queue, body, not options.wants_reply, retries, timeout_s
            )
        )


@final
class WorkerHandler(NodeHandler):
    """Receives jobs."""

    def __init__(self, endpoint: sdk.Endpoint, message_size_max: int) -> None:
        super().__init__(endpoint, message_size_max)
        self.queues: dict[bytes, bool] = {}  # whether CONSUMING has arrived
        self.unanswered: dict[bytes, bool] = {}  # jobs, and whether their only answer is DELIVERED
        self.jobs: list[tuple[bytes, float, bytes]] = []

    def has_pending(self) -> bool:
        return len(self.unanswered) > 0

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        if queue in self.queues:
            self.queues[queue] = True

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        if not no_reply:
            self.endpoint.unsent.write(writer.encode_delivered(request_id))
        self.unanswered[request_id] = no_reply
        self.jobs.append((request_id, 0.0, body))


@final
class RqWorkerEndpoint(sdk.WorkerEndpoint):
    """One consumer's connection. After CLOSING it is over once all its jobs are answered."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        super().__init__()
        self.handler = WorkerHandler(self, setup.message_size_max)

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Consume the queues. rq has no weights: each queue may fill all the slots."""
        handler = self.handler
        for _, queue in queues:
            check_name(queue)
            handler.queues[queue] = False
            self.unsent.write(writer.encode_consume(queue, max(1, min(slots, U16)), PRIORITY_NORMAL))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        handler = self.handler
        handler.receive(data)
        if not self.is_ready and handler.queues:
            self.is_ready = all(handler.queues.values())
        jobs = handler.jobs
        handler.jobs = []
        return jobs

    def reply(self, request_id: bytes, value: bytes) -> None:
        handler = self.handler
        no_reply = handler.unanswered.pop(request_id, None)
        if no_reply is None:
            return  # already answered
        if no_reply:
            self.unsent.write(writer.encode_delivered(request_id))
        else:
            self.unsent.write(writer.encode_reply(request_id, value))
        handler.check()

    def goodbye(self) -> None:
        self.unsent.write(writer.NODE_CLOSING)


@final
class SubscriberHandler(NodeHandler):
    """Receives broadcasts."""

    def __init__(self, endpoint: sdk.Endpoint, message_size_max: int) -> None:
        super().__init__(endpoint, message_size_max)
        self.queues: dict[int, bytes] = {}  # by the controller's ids
        self.news: list[tuple[bytes, bytes]] = []

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        self.queues[int(queue_id)] = queue

    def on_request(
        self, request_id: bytes, queue: bytes, queue_id: i64, body: bytes, no_reply: bool, retries: i64, timeout_s: i64
    ) -> None:
        # The original stores a priority and ignores it, so requests may arrive here.
        self.endpoint.unsent.write(writer.encode_undelivered(request_id))

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        topic = queue if queue else self.queues.get(int(queue_id), b"")
        if topic:
            self.news.append((topic, body))


@final
class RqSubscriberEndpoint(sdk.SubscriberEndpoint):
    """One subscriber's connection. A topic is one queue's name: rq has no prefixes."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        super().__init__()
        self.is_ready = True  # a node needs no handshake
        self.handler = SubscriberHandler(self, setup.message_size_max)

    def subscribe(self, prefix: bytes) -> None:
        check_name(prefix)
        self.unsent.write(writer.encode_consume(prefix, LEAST_MAX, PRIORITY_NONE))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        handler = self.handler
        handler.receive(data)
        news = handler.news
        handler.news = []
        return news


@final
class RqPublisherEndpoint(sdk.PublisherEndpoint):
    """One connection that broadcasts."""

    def __init__(self, setup: sdk.EndpointSetup) -> None:
        super().__init__()
        self.is_ready = True  # a node needs no handshake
        self.handler = NodeHandler(self, setup.message_size_max)

    def publish(self, topic: bytes, body: bytes) -> None:
        check_name(topic)
        self.unsent.write(writer.encode_broadcast(topic, body))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)

    def receive(self, data: bytes) -> None:
        self.handler.receive(data)


client: Final = RqClientEndpoint
worker: Final = RqWorkerEndpoint  # rq cannot send a program's name, so `setup.program` is ignored
publisher: Final = RqPublisherEndpoint
subscriber: Final = RqSubscriberEndpoint
