"""The consumer's end of rq: answers to bytes, the controller's bytes to jobs. No sockets, no clock.

    CONSUME per queue ─► CONSUMING ─► REQUEST … DELIVERED at once, REPLY when it is done
                                      REQUEST NOREPLY … DELIVERED when it is done: that settles it

CLOSING either way: nothing new comes, what is held is still answered.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from dragoman.dialects.rq.node import NodeEar, check_name
from dragoman.dialects.sides import WorkerSide
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.risp.reader import RispReader
from dragoman.wire.risp.words import PRIORITY_NORMAL, U16
from dragoman.wire.risp.writer import NODE_CLOSING, encode_consume, encode_delivered, encode_reply


@final
class WorkerEar(NodeEar):
    """Hears jobs."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: dict[bytes, bool] = {}  # queues, and whether CONSUMING has come
        self.held: dict[bytes, bool] = {}  # jobs, and whether DELIVERED is all that is said of them
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
class RqWorkerSide(WorkerSide):
    """One consumer's connection. After CLOSING it is over once everything it holds is answered."""

    def __init__(self, message_size_max: int = MESSAGE_SIZE_MAX) -> None:
        super().__init__()
        self.ear = WorkerEar()
        self.reader = RispReader(self.ear, message_size_max)

    def opening(self) -> bytes:
        return b""

    def serve(self, queues: list[tuple[int, bytes]], slots: int) -> None:
        """rq knows no weights: each queue may fill all the slots."""
        ear = self.ear
        for _, queue in queues:
            check_name(queue)
            ear.asked[queue] = False
            ear.out.write(encode_consume(queue, max(1, min(slots, U16)), PRIORITY_NORMAL, False))

    def beat(self, now_s: float) -> None:
        self.ear.beat(now_s)
        self.look()

    def receive(self, data: bytes) -> list[tuple[bytes, float, bytes]]:
        ear = self.ear
        ear.has_heard = True
        self.reader.feed(data)
        if not self.is_ready and ear.asked:
            self.is_ready = all(ear.asked.values())
        self.look()
        jobs = ear.jobs
        ear.jobs = []
        return jobs

    def look(self) -> None:
        ear = self.ear
        if ear.is_full or ear.is_silent or (ear.is_closing and not ear.held):
            self.is_over = True
            self.problem = ear.problem()

    def take_out(self) -> bytes:
        return self.ear.take_out()

    def ready(self, slots: int) -> None:
        """An answer frees its slot by itself."""

    def reply(self, request_id: bytes, value: bytes) -> None:
        ear = self.ear
        is_noreply = ear.held.pop(request_id, None)
        if is_noreply is None:
            return  # answered already
        if is_noreply:
            ear.out.write(encode_delivered(request_id))
        else:
            ear.out.write(encode_reply(request_id, value))
        self.look()

    def goodbye(self) -> None:
        self.ear.out.write(NODE_CLOSING)
