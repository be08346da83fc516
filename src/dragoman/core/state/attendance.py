"""Which worker serves which queues, and when and why a worker last left each queue. Durable, so that after a restart an explanation can still
name it."""

from __future__ import annotations

from typing import final

from dragoman.core.state.queue import Queue
from dragoman.model.facts.records import claims_of
from dragoman.model.words import BROKER_STARTED, SUPERSEDED


@final
class Attendance:
    """Mutators like those of `State`. Only facts change it: a worker that has left its queues but is still connected remains listed."""

    def __init__(self) -> None:
        self.serves: dict[int, list[int]] = {}  # worker_no → queue numbers
        self.left: dict[int, tuple[int, int]] = {}  # queue_no → when a worker last left it, and why

    def on_joined(
        self, worker_no: int, text: bytes, queues: dict[bytes, Queue], queues_by_no: dict[int, Queue], now_ns: int
    ) -> None:
        """A new worker, or one that declares its queues again. Parses the text of the fact even when that is just being written: a name with tabs
        is ambiguous there, and recovery must get the same result."""
        queue_nos = {queues[name].number for _, name in claims_of(text) if name in queues}
        for queue_no in self.serves.get(worker_no, []):
            if queue_no not in queue_nos and queue_no in queues_by_no:
                self.left[queue_no] = (now_ns, SUPERSEDED)
        self.serves[worker_no] = sorted(queue_nos)

    def on_left(self, worker_no: int, reason: int, queues: dict[int, Queue], now_ns: int) -> None:
        for queue_no in self.serves.pop(worker_no, []):
            if queue_no in queues:  # a worker that has left its queues may outlast one of them
                self.left[queue_no] = (now_ns, reason)

    def on_started(self, queues: dict[int, Queue], now_ns: int) -> None:
        """All sessions ended with the previous boot."""
        for worker_no in list(self.serves):
            self.on_left(worker_no, BROKER_STARTED, queues, now_ns)
        for queue_no, left in self.left.items():
            queues[queue_no].last_worker_left_ns = left[0]
            queues[queue_no].last_worker_left_reason = left[1]
