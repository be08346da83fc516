"""Histograms of durations, and their buckets: 8 per doubling, from 1 µs to 2**40 µs (12.7 days). A quantile read from them is at most an eighth
off, and two histograms are added bucket by bucket.

    bucket   0 … 7    from 1 µs on, each 125 ns wide; bucket 0 includes shorter durations
             8 … 15   from 2 µs on, each 250 ns wide
             …
             319      includes longer durations

With the duration in units of 125 ns (an eighth of a microsecond), the bucket follows from its highest bit and the three bits below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, final

from mypy_extensions import i64

OCTAVE_SIZE: Final = 8
OCTAVES: Final = 40
BUCKETS: Final = OCTAVES * OCTAVE_SIZE
EIGHTH_NS: Final = 125


def bucket_of(duration_ns: i64) -> i64:
    """The bucket of a duration; a negative one (the clock stepped between two boots) counts as zero."""
    eighths: i64 = duration_ns // EIGHTH_NS
    if eighths < 16:
        return eighths - 8 if eighths > 8 else 0
    octave: i64 = 0
    if eighths >= 1 << 35:  # binary search for the highest bit: equally fast for any duration
        eighths >>= 32
        octave = 32
    if eighths >= 1 << 19:
        eighths >>= 16
        octave += 16
    if eighths >= 1 << 11:
        eighths >>= 8
        octave += 8
    if eighths >= 1 << 7:
        eighths >>= 4
        octave += 4
    if eighths >= 1 << 5:
        eighths >>= 2
        octave += 2
    if eighths >= 1 << 4:
        eighths >>= 1
        octave += 1
    if octave >= OCTAVES:
        return BUCKETS - 1
    return octave * OCTAVE_SIZE + eighths - OCTAVE_SIZE


def bucket_begin_ns(bucket: int) -> int:
    """The shortest duration of a bucket; bucket 0 includes shorter ones."""
    return EIGHTH_NS * (OCTAVE_SIZE + bucket % OCTAVE_SIZE) << bucket // OCTAVE_SIZE


def bucket_middle_ns(bucket: int) -> int:
    """The middle of a bucket, at most a sixteenth off any duration in it. The last bucket has no end: its beginning is used."""
    end = bucket + 1 if bucket + 1 < BUCKETS else bucket
    return (bucket_begin_ns(bucket) + bucket_begin_ns(end)) // 2


def counts_of(pairs: Iterable[Sequence[int]]) -> dict[int, int]:
    """Counts by bucket, from the admin socket's `[[bucket, count], …]`."""
    return {pair[0]: pair[1] for pair in pairs}


def between(before: Mapping[int, int], after: Mapping[int, int]) -> dict[int, int]:
    """The counts added between two samples. Counts only grow: if one is lower than before, the broker restarted, and all of `after` is new."""
    for bucket, count in before.items():
        if count > after.get(bucket, 0):
            return dict(after)
    return {bucket: count - before.get(bucket, 0) for bucket, count in after.items() if count > before.get(bucket, 0)}


def quantile_ns(counts: Mapping[int, int], total: int, part: float) -> int:
    """The quantile `part` (0 to 1) of `total` counted durations."""
    wanted = part * total
    passed = 0
    found = 0
    for bucket in sorted(counts):
        passed += counts[bucket]
        found = bucket
        if passed >= wanted:
            break
    return bucket_middle_ns(found)


@final
class Cell:
    """A count that is incremented without allocating an int object."""

    def __init__(self) -> None:
        self.count: i64 = 0


@final
class Histogram:
    """Counts by bucket; an empty bucket has no cell: the durations of one queue are close together, and there are many queues. Counts never decrease: the difference of two samples is what happened between them."""

    def __init__(self) -> None:
        self.cells: list[Cell | None] = [None] * BUCKETS
        self.used: list[int] = []  # buckets that have a cell

    def add(self, bucket: i64) -> None:
        cell = self.cells[bucket]
        if cell is None:
            cell = Cell()
            self.cells[bucket] = cell
            self.used.append(bucket)
        cell.count += 1

    def take_over(self, other: Histogram) -> None:
        for bucket in other.used:
            cell = other.cells[bucket]
            if cell is not None:
                mine = self.cells[bucket]
                if mine is None:
                    mine = Cell()
                    self.cells[bucket] = mine
                    self.used.append(bucket)
                mine.count += cell.count

    def add_to(self, counts: list[int]) -> None:
        """Add the counts to `counts`, which has one element per bucket."""
        for bucket in self.used:
            cell = self.cells[bucket]
            if cell is not None:
                counts[bucket] += cell.count

    def pairs(self) -> list[list[int]]:
        """`[bucket, count]` of each non-empty bucket, the shortest durations first."""
        found: list[list[int]] = []
        for bucket in sorted(self.used):
            cell = self.cells[bucket]
            if cell is not None:
                found.append([bucket, cell.count])
        return found


@final
class Durations:
    """The two durations of messages: until the first lease, and until settlement."""

    def __init__(self) -> None:
        self.wait = Histogram()
        self.total = Histogram()


def summed(histograms: list[Histogram]) -> list[list[int]]:
    """The sum of several histograms, as `pairs`."""
    counts = [0] * BUCKETS
    for histogram in histograms:
        histogram.add_to(counts)
    return [[bucket, counts[bucket]] for bucket in range(BUCKETS) if counts[bucket] > 0]
