"""Histograms of durations, counted by bucket (model/buckets). Empty buckets have no cell: the durations of one queue are close together, and
there are many queues."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from dragoman.model.buckets import BUCKETS


@final
class Cell:
    """A count that is incremented without allocating an int object."""

    def __init__(self) -> None:
        self.count: i64 = 0


@final
class Histogram:
    """Counts by bucket. They never decrease: the difference of two samples is what happened between them."""

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
class Spans:
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
