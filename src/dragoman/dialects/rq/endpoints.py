"""The client side of rq: endpoints for clients, workers, publishers and subscribers. No sockets, no clock.

client      REQUEST            ─► DELIVERED … REPLY, or UNDELIVERED      a consumer has it; its answer, or there will be none
            REQUEST NOREPLY    ─► DELIVERED                              it is stored, and nothing more is sent
worker      CONSUME per queue ─► CONSUMING ─► REQUEST … DELIVERED at once, REPLY when it is done
                                              REQUEST NOREPLY … DELIVERED when it is done: that settles it
            CLOSING either way: no new requests, held ones are still answered
subscriber  CONSUME with priority NONE: it gets broadcasts and no requests
"""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.endpoint import (
    ANSWERED,
    FAILED,
    KEPT,
    NOT_GIVEN,
    REFUSED,
    CallOptions,
    ClientEndpoint,
    EndpointSetup,
    PublisherEndpoint,
    SubscriberEndpoint,
    WorkerEndpoint,
)
from dragoman.dialects.rq.ids import FreeIds
from dragoman.dialects.rq.node import NodeHandler, check_name
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import PRIORITY_NONE, PRIORITY_NORMAL, U16, UNSAID
from dragoman.wire.risp.writer import (
    NODE_CLOSING,
    encode_broadcast,
    encode_consume,
    encode_delivered,
    encode_reply,
    encode_request,
    encode_undelivered,
    id_bytes,
)

RETRIES_MAX: Final = 255
TIMEOUT_S_MAX: Final = 65535
UNDELIVERED_TEXT: Final = b"UNDELIVERED"


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

    def __init__(self) -> None:
        super().__init__()
        self.ids = FreeIds()
        self.calls: dict[int, Call] = {}
        self.outcomes: list[tuple[int, bytes, bytes]] = []

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
            self.outcomes.append((KEPT, call.call_id, b""))

    def on_reply(self, request_id: i64, body: bytes) -> None:
        call = self.end(request_id)
        if call is not None:
            self.outcomes.append((ANSWERED, call.call_id, body))

    def on_undelivered(self, request_id: i64) -> None:
        call = self.end(request_id)
        if call is not None:
            # A closing controller accepts nothing new; otherwise it is unknown whether a consumer had it.
            is_refused = self.is_closing and not call.is_delivered
            self.outcomes.append((REFUSED if is_refused else FAILED, call.call_id, UNDELIVERED_TEXT))


@final
class RqClientEndpoint(ClientEndpoint):
    """One source's connection. After CLOSING it is over once no answer is pending."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.handler = ClientHandler()
        self.reader = RispReader(self.handler, message_size_max)

    def opening(self) -> bytes:
        self.is_ready = True  # a node needs no handshake
        return b""

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[int, bytes, bytes]]:
        handler = self.handler
        handler.has_received = True
        self.reader.feed(data)
        self.look()
        outcomes = handler.outcomes
        handler.outcomes = []
        return outcomes

    def look(self) -> None:
        handler = self.handler
        self.is_closing = handler.is_closing
        if handler.is_full or handler.is_silent or (handler.is_closing and not handler.calls):
            self.is_over = True
            self.problem = handler.problem()

    def data_to_send(self) -> bytes:
        return self.handler.data_to_send()

    def request(self, call_id: bytes, options: CallOptions, body: bytes) -> None:
        check_name(options.queue)
        handler = self.handler
        request_id = int(handler.ids.take())
        handler.calls[request_id] = Call(call_id, options.wants_reply)
        retries = min(options.retries, RETRIES_MAX) if options.retries >= 0 else UNSAID
        timeout_s = UNSAID
        if options.expires_ns != NOT_GIVEN:
            timeout_s = min(max(1, -(-options.expires_ns // SECOND_NS)), TIMEOUT_S_MAX)
        handler.out.write(
            encode_request(id_bytes(request_id), options.queue, body, not options.wants_reply, retries, timeout_s)
        )


@final
class WorkerHandler(NodeHandler):
    """Receives jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[bytes, bool] = {}  # queues, and whether CONSUMING has arrived
        self.held: dict[bytes, bool] = {}  # jobs, and whether their only answer is DELIVERED
        self.jobs: list[tuple[bytes, float, bytes]] = []

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        if queue in self.asked:
            self.asked[queue] = True

    def on_request(
        self,
        request_id: bytes,
        queue: bytes,
        queue_id: i64,
        body: bytes,
        is_noreply: bool,
        retries: i64,
        timeout_s: i64,
    ) -> None:
        if not is_noreply:
            self.out.write(encode_delivered(request_id))
        self.held[request_id] = is_noreply
        self.jobs.append((request_id, 0.0, body))


@final
class RqWorkerEndpoint(WorkerEndpoint):
    """One consumer's connection. After CLOSING it is over once all its jobs are answered."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.handler = WorkerHandler()
        self.reader = RispReader(self.handler, message_size_max)

    def opening(self) -> bytes:
        return b""

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """Consume the queues. rq has no weights: each queue may fill all the slots."""
        handler = self.handler
        for _, queue in queues:
            check_name(queue)
            handler.asked[queue] = False
            handler.out.write(encode_consume(queue, max(1, min(slots, U16)), PRIORITY_NORMAL, False))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        handler = self.handler
        handler.has_received = True
        self.reader.feed(data)
        if not self.is_ready and handler.asked:
            self.is_ready = all(handler.asked.values())
        self.look()
        jobs = handler.jobs
        handler.jobs = []
        return jobs

    def look(self) -> None:
        handler = self.handler
        self.is_closing = handler.is_closing
        if handler.is_full or handler.is_silent or (handler.is_closing and not handler.held):
            self.is_over = True
            self.problem = handler.problem()

    def data_to_send(self) -> bytes:
        return self.handler.data_to_send()

    def reply(self, request_id: bytes, value: bytes) -> None:
        handler = self.handler
        is_noreply = handler.held.pop(request_id, None)
        if is_noreply is None:
            return  # already answered
        if is_noreply:
            handler.out.write(encode_delivered(request_id))
        else:
            handler.out.write(encode_reply(request_id, value))
        self.look()

    def goodbye(self) -> None:
        self.handler.out.write(NODE_CLOSING)


LEAST_MAX: Final = 1


@final
class SubscriberHandler(NodeHandler):
    """Receives broadcasts."""

    def __init__(self) -> None:
        super().__init__()
        self.queues: dict[int, bytes] = {}  # by the controller's ids
        self.news: list[tuple[bytes, bytes]] = []

    def on_consuming(self, queue: bytes, queue_id: i64) -> None:
        self.queues[int(queue_id)] = queue

    def on_request(
        self,
        request_id: bytes,
        queue: bytes,
        queue_id: i64,
        body: bytes,
        is_noreply: bool,
        retries: i64,
        timeout_s: i64,
    ) -> None:
        # The original stores a priority and ignores it, so requests may arrive here.
        self.out.write(encode_undelivered(request_id))

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        topic = queue if queue else self.queues.get(int(queue_id), b"")
        if topic:
            self.news.append((topic, body))


@final
class RqSubscriberEndpoint(SubscriberEndpoint):
    """One subscriber's connection. A topic is one queue's name: rq has no prefixes."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.handler = SubscriberHandler()
        self.reader = RispReader(self.handler, message_size_max)

    def opening(self) -> bytes:
        self.is_ready = True
        return b""

    def subscribe(self, prefix: bytes) -> None:
        check_name(prefix)
        self.handler.out.write(encode_consume(prefix, LEAST_MAX, PRIORITY_NONE, False))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        handler = self.handler
        handler.has_received = True
        self.reader.feed(data)
        self.look()
        news = handler.news
        handler.news = []
        return news

    def look(self) -> None:
        handler = self.handler
        if handler.is_full or handler.is_silent or handler.is_closing:
            self.is_over = True
            self.problem = handler.problem()

    def data_to_send(self) -> bytes:
        return self.handler.data_to_send()


@final
class RqPublisherEndpoint(PublisherEndpoint):
    """One connection that broadcasts."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.handler = NodeHandler()
        self.reader = RispReader(self.handler, message_size_max)

    def opening(self) -> bytes:
        self.is_ready = True
        return b""

    def publish(self, topic: bytes, body: bytes) -> None:
        check_name(topic)
        self.handler.out.write(encode_broadcast(topic, body))

    def beat(self, now_s: float) -> None:
        self.handler.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> None:
        self.handler.has_received = True
        self.reader.feed(data)
        self.look()

    def look(self) -> None:
        handler = self.handler
        if handler.is_full or handler.is_silent or handler.is_closing:
            self.is_over = True
            self.problem = handler.problem()

    def data_to_send(self) -> bytes:
        return self.handler.data_to_send()


def client(setup: EndpointSetup) -> ClientEndpoint:
    return RqClientEndpoint(setup.message_size_max)


def worker(setup: EndpointSetup) -> WorkerEndpoint:
    """rq cannot send a program's name, so `setup.program` is ignored."""
    return RqWorkerEndpoint(setup.message_size_max)


def publisher(setup: EndpointSetup) -> PublisherEndpoint:
    return RqPublisherEndpoint(setup.message_size_max)


def subscriber(setup: EndpointSetup) -> SubscriberEndpoint:
    return RqSubscriberEndpoint(setup.message_size_max)
