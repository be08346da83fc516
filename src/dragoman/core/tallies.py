"""What happened since the broker started, counted for dashboards and alarms: nothing here is durable, and replay adds nothing.

A wait is counted once for each message, at its first lease, from its acceptance on, or from the instant its client asked for if that is
later. A total goes from acceptance to settlement. Who settled what is one matrix: a message's client on one side, the worker that
settled it, or nobody, on the other.

Durations are counted once, with their queue; those of the broker are the sum. A broker with very many queues counts those of the later ones
together.
"""

from __future__ import annotations

from typing import final

from dragoman.core.queue import Queue
from dragoman.limits import QUEUES_TALLIED_MAX
from dragoman.model.buckets import bucket_of
from dragoman.model.histogram import Cell, Spans
from dragoman.model.message import Message
from dragoman.model.peer import Peer
from dragoman.model.words import DIALECT_NAMES, DIALECTS, NOBODY, ROW_SIZE


@final
class Tallies:
    """Of the whole broker."""

    def __init__(self) -> None:
        assert len(DIALECT_NAMES) == DIALECTS
        self.own_spans: list[Spans] = []  # of queues that have their own
        self.other_spans = Spans()  # of all other queues
        self.accepted: list[Cell] = [Cell() for _ in range(DIALECTS)]
        self.settled: list[Cell] = [Cell() for _ in range(DIALECTS * ROW_SIZE)]

    def count_accepted(self, m: Message) -> None:
        self.accepted[m.dialect].count += 1

    def count_first_lease(self, m: Message, queue: Queue) -> None:
        spans = queue.spans
        if spans is None:
            spans = self.make_spans(queue)
        spans.wait.add(bucket_of(m.first_leased_ns - waits_since(m)))

    def count_closed(self, m: Message, queue: Queue, by: Peer | None, now_ns: int) -> None:
        spans = queue.spans
        if spans is None:
            spans = self.make_spans(queue)
        spans.total.add(bucket_of(now_ns - m.accepted_ns))
        self.settled[m.dialect * ROW_SIZE + (by.dialect if by is not None else NOBODY)].count += 1

    def make_spans(self, queue: Queue) -> Spans:
        spans = self.other_spans
        if len(self.own_spans) < QUEUES_TALLIED_MAX:
            spans = Spans()
            self.own_spans.append(spans)
        queue.spans = spans
        return spans

    def forget(self, queue: Queue) -> None:
        """What was counted with a queue of its own is counted with all others."""
        spans = queue.spans
        if spans is not None and spans is not self.other_spans:
            self.own_spans.remove(spans)
            self.other_spans.wait.take_over(spans.wait)
            self.other_spans.total.take_over(spans.total)

    def all_spans(self) -> list[Spans]:
        return [*self.own_spans, self.other_spans]


def waits_since(m: Message) -> int:
    """When a message could first have been served."""
    return m.asked_due_ns if m.asked_due_ns > m.accepted_ns else m.accepted_ns
