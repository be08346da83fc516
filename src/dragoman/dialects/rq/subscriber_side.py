"""A node that only listens: it consumes queues with priority NONE, and so hears their broadcasts and gets no requests."""

from __future__ import annotations

from typing import Final, final

from mypy_extensions import i64

from dragoman.dialects.rq.node import NodeEar, check_name
from dragoman.dialects.sides import SubscriberSide
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import PRIORITY_NONE
from dragoman.wire.risp.writer import encode_consume, encode_undelivered

LEAST_MAX: Final = 1


@final
class SubscriberEar(NodeEar):
    """Hears broadcasts."""

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
        # The original stores a priority and ignores it.
        self.out.write(encode_undelivered(request_id))

    def on_broadcast(self, queue: bytes, queue_id: i64, body: bytes) -> None:
        topic = queue if queue else self.queues.get(int(queue_id), b"")
        if topic:
            self.news.append((topic, body))


@final
class RqSubscriberSide(SubscriberSide):
    """One listener's connection. A topic is one queue's name: rq has no prefixes."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.ear = SubscriberEar()
        self.reader = RispReader(self.ear, message_size_max)

    def opening(self) -> bytes:
        self.is_ready = True
        return b""

    def subscribe(self, prefix: bytes) -> None:
        check_name(prefix)
        self.ear.out.write(encode_consume(prefix, LEAST_MAX, PRIORITY_NONE, False))

    def beat(self, now_s: float) -> None:
        self.ear.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[bytes, bytes]]:
        ear = self.ear
        ear.has_heard = True
        self.reader.feed(data)
        self.look()
        news = ear.news
        ear.news = []
        return news

    def look(self) -> None:
        ear = self.ear
        if ear.is_full or ear.is_silent or ear.is_closing:
            self.is_over = True
            self.problem = ear.problem()

    def take_out(self) -> bytes:
        return self.ear.take_out()
