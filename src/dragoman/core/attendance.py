"""Which worker serves which queues, and when and why the last one of a queue went: durable, so that after a start people can still be told
who was there before it."""

from __future__ import annotations

from typing import final

from dragoman.core.queue import Queue
from dragoman.model.texts import claims_of
from dragoman.model.words import BROKER_STARTED, SUPERSEDED


@final
class Attendance:
    """Mutators as those of the state. Sessions know more: a worker that drains serves no queue, and is still here."""

    def __init__(self) -> None:
        self.serves: dict[int, list[int]] = {}  # worker → its queues
        self.left: dict[int, tuple[int, int]] = {}  # queue → when a worker left it last, and why

    def on_joined(
        self, worker_no: int, text: bytes, queues: dict[bytes, Queue], queues_by_no: dict[int, Queue], now_ns: int
    ) -> None:
        """A new worker, or one that says anew what it serves: by the text of the fact, also when it is just being written, for a name with tabs
        in it can be read in two ways, and recovery must read the same."""
        queue_nos = {queues[name].number for _, name in claims_of(text) if name in queues}
        for queue_no in self.serves.get(worker_no, []):
            if queue_no not in queue_nos and queue_no in queues_by_no:
                self.left[queue_no] = (now_ns, SUPERSEDED)
        self.serves[worker_no] = sorted(queue_nos)

    def on_left(self, worker_no: int, reason: int, queues: dict[int, Queue], now_ns: int) -> None:
        for queue_no in self.serves.pop(worker_no, []):
            if queue_no in queues:  # one that drained may outlast its queue
                self.left[queue_no] = (now_ns, reason)

    def on_started(self, queues: dict[int, Queue], now_ns: int) -> None:
        """Every session ended with the boot before."""
        for worker_no in list(self.serves):
            self.on_left(worker_no, BROKER_STARTED, queues, now_ns)
        for queue_no, left in self.left.items():
            queues[queue_no].last_worker_left_ns = left[0]
            queues[queue_no].last_worker_left_reason = left[1]
