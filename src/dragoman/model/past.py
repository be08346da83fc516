"""What happened before the broker started, in the shape of its tallies (core/tallies), which begin anew at each start: both added up
count everything once.

The border is the `started` fact of the boot that runs, not an instant: a clock that was set back makes the last blocks of one boot and
the first of the next share one. A wait is counted with its message's settlement, for only that fact has all it needs; the broker counts
it at the first lease. So the wait of a message that was leased before the start and settled after it is in neither.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.limits import PAST_QUEUES_MAX
from dragoman.model.buckets import bucket_of
from dragoman.model.census import waited_from
from dragoman.model.histogram import Cell, Spans
from dragoman.model.records import ACCEPTED, CLOSED, STARTED
from dragoman.model.words import DIALECTS, NOBODY, ROW_SIZE


@final
class Past:
    """The counts of the blocks before the boot numbered `boot_no`."""

    def __init__(self, boot_no: int) -> None:
        self.boot_no: i64 = boot_no
        self.is_over: bool = False  # the boot has begun: what follows is the broker's to count
        self.accepted: list[Cell] = [Cell() for _ in range(DIALECTS)]
        self.settled: list[Cell] = [Cell() for _ in range(DIALECTS * ROW_SIZE)]
        self.queues: dict[int, Spans] = {}  # by number
        self.is_cut: bool = False  # there were more queues than are counted one by one
        self._last_no: i64 = -1
        self._last: Spans | None = None

    def add(self, records: bytes, time_ns: int) -> None:
        at_ns: i64 = time_ns
        at: i64 = 0
        end: i64 = len(records)
        while at < end and not self.is_over:
            kind: i64 = records[at + 4]
            if kind == ACCEPTED:
                dialect: i64 = records[at + 5]
                if dialect < DIALECTS:
                    self.accepted[dialect].count += 1
            elif kind == CLOSED:
                self._add_closed(records, at, at_ns)
            elif kind == STARTED:
                self.is_over = read_i64_le(records, at + 5) >= self.boot_no
            at += i64(read_i32_le(records, at))

    def _add_closed(self, records: bytes, at: i64, at_ns: i64) -> None:
        client: i64 = records[at + 71]
        worker: i64 = records[at + 72]
        if read_i64_le(records, at + 13) == 0:
            worker = NOBODY
        if client < DIALECTS and worker < ROW_SIZE:
            self.settled[client * ROW_SIZE + worker].count += 1
        accepted_ns: i64 = read_i64_le(records, at + 29)
        first_leased_ns: i64 = read_i64_le(records, at + 37)
        spans = self._spans(i64(read_i32_le(records, at + 25)))
        if spans is None or accepted_ns == 0:
            return
        spans.total.add(bucket_of(at_ns - accepted_ns))
        if first_leased_ns != 0:
            spans.wait.add(bucket_of(first_leased_ns - waited_from(records, at)))

    def _spans(self, queue_no: i64) -> Spans | None:
        """None: one queue too many."""
        if queue_no == self._last_no:
            return self._last
        spans = self.queues.get(queue_no)
        if spans is None:
            if len(self.queues) >= PAST_QUEUES_MAX:
                self.is_cut = True
            else:
                spans = Spans()
                self.queues[queue_no] = spans
        self._last_no = queue_no
        self._last = spans
        return spans
