"""Counters since the broker started, for dashboards and alarms. They are not durable, and replay does not count.

A message's wait is counted once, at its first lease: since its acceptance, or since the due instant its client asked for if that is
later. Its total time runs from acceptance to settlement. Settlements are counted in a matrix: the client's dialect by the dialect of
the worker that settled the message, or none.

Durations are counted per queue; the broker's are their sum. Beyond QUEUES_TALLIED_MAX queues, the others share one count.
"""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from dragoman.core.state.lines import Lane, Line
from dragoman.core.state.queue import Queue
from dragoman.limits import QUEUES_TALLIED_MAX
from dragoman.model.buckets import Cell, Durations, bucket_of
from dragoman.model.enums import DIALECTS_MAX, NOBODY, ROW_SIZE
from dragoman.model.message import IN_FRESH, Message
from dragoman.model.peer import Peer


@final
class Tallies:
    """The counters of the whole broker."""

    def __init__(self) -> None:
        self.own_spans: list[Durations] = []  # of queues that have their own
        self.other_spans = Durations()  # of all other queues
        self.accepted: list[Cell] = [Cell() for _ in range(DIALECTS_MAX)]
        self.settled: list[Cell] = [Cell() for _ in range(DIALECTS_MAX * ROW_SIZE)]

    def count_accepted(self, m: Message) -> None:
        self.accepted[i64(m.dialect)].count += 1

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
        worker: i64 = by.dialect if by is not None else NOBODY
        self.settled[i64(m.dialect) * ROW_SIZE + worker].count += 1

    def make_spans(self, queue: Queue) -> Durations:
        spans = self.other_spans
        if len(self.own_spans) < QUEUES_TALLIED_MAX:
            spans = Durations()
            self.own_spans.append(spans)
        queue.spans = spans
        return spans

    def forget(self, queue: Queue) -> None:
        """Add the durations of a forgotten queue to the shared count."""
        spans = queue.spans
        if spans is not None and spans is not self.other_spans:
            self.own_spans.remove(spans)
            self.other_spans.wait.take_over(spans.wait)
            self.other_spans.total.take_over(spans.total)


def waits_since(m: Message) -> int:
    """The instant at which a message could first have been leased."""
    return m.asked_due_ns if m.asked_due_ns > m.accepted_ns else m.accepted_ns


def oldest_ns(queue: Queue) -> int:
    """Since when the longest waiting message of a queue waits: its acceptance, or the end of the delay its client asked for; 0: none.
    Only the heads of its lines are checked: they are older than the messages behind them."""
    oldest = 0
    if queue.waiting > 0:
        oldest = oldest_in(queue.lanes, oldest)
        for group in queue.unfit:
            oldest = oldest_in(group.lanes, oldest)
    return oldest


def oldest_in(lanes: list[Lane], oldest: int) -> int:
    for lane in lanes:
        for line in lane.lines.values():
            if line.size > 0:
                found = head_ns(line)
                if found != 0 and (oldest == 0 or found < oldest):
                    oldest = found
    return oldest


def head_ns(line: Line) -> int:
    """Since when the older of a line's returned and fresh heads waits; for one that is on disk only, its acceptance."""
    found = 0
    returned = line.returned_head()
    if returned is not None:
        found = waits_since(returned)
    for m in line.fresh:
        if m.where == IN_FRESH and m.line is line:
            since_ns = waits_since(m)
            return since_ns if found == 0 else min(found, since_ns)
    tail = line.tail
    for at in range(tail.head, len(tail.numbers)):
        if tail.numbers[at] > 0:
            since_ns = tail.accepted[at]
            return since_ns if found == 0 else min(found, since_ns)
    return found
