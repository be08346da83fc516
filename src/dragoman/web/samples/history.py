"""Metrics over time: a point each second for five minutes, one each ten seconds for an hour.

Points per second exist only while someone watches; ten-second points always. Points are missing for times in which this process did not run.
"""

from __future__ import annotations

from collections import deque
from typing import Final

import msgspec

from dragoman.model.buckets import between, counts_of
from dragoman.model.units import SECOND_NS
from dragoman.web.samples.samples import NONE, Counts, Quantiles, QueueSample, Sample, quantiles

SECONDS_KEPT: Final = 300
SLOT_S: Final = 10
SLOT_NS: Final = SLOT_S * SECOND_NS
SLOTS_KEPT: Final = 360
SECONDS_SHOWN: Final = 60  # drawn at least, known or not
SLOTS_SHOWN: Final = 30
WINDOW_S: Final = 60  # the window for current quantiles: a minute has enough messages even at low rates
CLOSE_NS: Final = SECOND_NS // 2  # two samples this close count as one: a rate over some milliseconds is noise
TRAIL_NS: Final = 120 * SECOND_NS


class ChartSample(msgspec.Struct, frozen=True):
    """The part of a sample that points are computed from."""

    at_ns: int
    boot_no: int
    accepted: int
    settled: int
    waiting: int
    leased: int
    wait: Counts
    total: Counts


class Point(msgspec.Struct, frozen=True, array_like=True):
    """One interval: the rates during it, the levels at its end."""

    at_ns: int
    accepted_rate: float
    settled_rate: float
    waiting: int
    leased: int
    wait: Quantiles = NONE
    total: Quantiles = NONE


def chart_sample(sample: Sample) -> ChartSample:
    levels = sample.accepted, sample.settled, sample.waiting, sample.leased
    return ChartSample(sample.now_ns, sample.boot_no, *levels, counts_of(sample.wait), counts_of(sample.total))


def point_between(before: ChartSample, after: ChartSample) -> Point | None:
    """The point of the interval between two samples; None if the broker restarted in between or no time passed."""
    span_s = (after.at_ns - before.at_ns) / SECOND_NS
    if before.boot_no != after.boot_no or span_s <= 0:
        return None
    return Point(
        after.at_ns,
        max(after.accepted - before.accepted, 0) / span_s,
        max(after.settled - before.settled, 0) / span_s,
        after.waiting,
        after.leased,
        quantiles(between(before.wait, after.wait)),
        quantiles(between(before.total, after.total)),
    )


def begun(points: list[Point | None], least: int) -> list[Point | None]:
    """Drop the slots before the first known point but keep at least `least` slots, so that a chart fills its width for old and new brokers
    alike."""
    first = next((at for at, point in enumerate(points) if point is not None), len(points))
    return points[min(first, max(len(points) - least, 0)) :]


class History:
    """The recent points, added from samples; both series are oldest first."""

    def __init__(self) -> None:
        self.seconds: deque[Point] = deque(maxlen=SECONDS_KEPT)
        self.slots: dict[int, Point] = {}  # by the number of ten-second intervals since 1970
        self.slot_begin: ChartSample | None = None  # the first sample of the current ten seconds
        self._samples: deque[ChartSample] = deque(maxlen=WINDOW_S + 1)

    @property
    def last(self) -> ChartSample | None:
        return self._samples[-1] if self._samples else None

    def add(self, sample: ChartSample) -> None:
        before = self.last
        if before is not None and 0 <= sample.at_ns - before.at_ns < CLOSE_NS and before.boot_no == sample.boot_no:
            return
        if before is not None and before.boot_no != sample.boot_no:
            self._end_slot(before)
            self._samples.clear()
        elif before is not None:
            point = point_between(before, sample)
            if point is not None:
                self.seconds.append(point)
        self._samples.append(sample)
        self._add_slot(sample)

    def _add_slot(self, sample: ChartSample) -> None:
        begin = self.slot_begin
        if begin is not None and begin.boot_no == sample.boot_no and sample.at_ns // SLOT_NS == begin.at_ns // SLOT_NS:
            return
        self._end_slot(sample)
        self.slot_begin = sample

    def _end_slot(self, sample: ChartSample) -> None:
        """Add the ten-second point that this sample ends; if a restart makes two, the first stays. Later slots date from before the clock
        was set back and are dropped."""
        begin = self.slot_begin
        point = point_between(begin, sample) if begin is not None else None
        if begin is not None and point is not None:
            slot = begin.at_ns // SLOT_NS
            self.slots.setdefault(slot, point)
            self.slots = {at: one for at, one in self.slots.items() if slot - SLOTS_KEPT <= at <= slot}

    def recent(self) -> list[Point | None]:
        """Up to five minutes, one slot per second; seconds without a sample use their ten-second point."""
        last = self.last
        if last is None:
            return []
        seen = {point.at_ns // SECOND_NS: point for point in self.seconds}
        newest = last.at_ns // SECOND_NS
        # Samples are never exactly a second apart: now and then a second has none of its own.
        found = [
            seen.get(second) or seen.get(second - 1) or self.slots.get(second // SLOT_S)
            for second in range(newest - SECONDS_KEPT + 1, newest + 1)
        ]
        return begun(found, SECONDS_SHOWN)

    def hour(self) -> list[Point | None]:
        """Up to an hour, one slot per ten seconds; None where nothing is known."""
        last = self.last
        if last is None:
            return []
        newest = last.at_ns // SLOT_NS
        return begun([self.slots.get(slot) for slot in range(newest - SLOTS_KEPT, newest)], SLOTS_SHOWN)

    def latest(self) -> Point | None:
        """The point between the last two samples; None right after a start."""
        return self.seconds[-1] if len(self._samples) > 1 and self.seconds else None

    def window(self) -> Point | None:
        """The last minute as one point."""
        if len(self._samples) < 2:
            return None
        newest = self._samples[-1]
        from_ns = newest.at_ns - WINDOW_S * SECOND_NS
        begin = next((sample for sample in self._samples if sample.at_ns >= from_ns), newest)
        return point_between(begin, newest)


class Trail(msgspec.Struct, array_like=True):
    """Rates and depths, updated from samples; saved as is."""

    at_ns: int = 0
    accepted: int = 0
    settled: int = 0
    in_rate: float | None = None
    out_rate: float | None = None
    depths: list[tuple[int, int]] = []  # instant, messages waiting

    @property
    def waiting(self) -> list[int]:
        return [waiting for _, waiting in self.depths]

    def add(self, at_ns: int, queue: QueueSample) -> None:
        if 0 <= at_ns - self.at_ns < CLOSE_NS:
            return
        accepted, settled = queue.accepted, queue.settled
        span_s = (at_ns - self.at_ns) / SECOND_NS
        if self.at_ns and span_s > 0 and accepted >= self.accepted and settled >= self.settled:
            self.in_rate = (accepted - self.accepted) / span_s
            self.out_rate = (settled - self.settled) / span_s
        self.at_ns, self.accepted, self.settled = at_ns, accepted, settled
        self.depths.append((at_ns, queue.waiting))
        while not 0 <= at_ns - self.depths[0][0] < TRAIL_NS:
            self.depths.pop(0)
