"""Converts the broker's duration histograms (model/buckets: 8 buckets per doubling) to Prometheus's form: cumulative, in seconds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Final

from dragoman.model.buckets import OCTAVE_SIZE, bucket_begin_ns, bucket_middle_ns
from dragoman.model.units import SECOND_NS

# Upper bounds are powers of two of a microsecond, from 256 µs to 72 minutes: precision beyond these ends is not needed.
FIRST_OCTAVE, LAST_OCTAVE = 8, 32
# Every bound for the broker, every other one for each queue: a queue has two histograms, and there may be hundreds of queues.
FINE: Final = range(FIRST_OCTAVE, LAST_OCTAVE + 1)
COARSE: Final = range(FIRST_OCTAVE, LAST_OCTAVE + 1, 2)

Counts = dict[int, int]


def cumulative(counts: Counts, octaves: Iterable[int]) -> Iterator[tuple[float, int]]:
    """Upper bounds in seconds, each with the count of all shorter durations."""
    for octave in octaves:
        end = octave * OCTAVE_SIZE
        yield bucket_begin_ns(end) / SECOND_NS, sum(count for bucket, count in counts.items() if bucket < end)
    yield math.inf, sum(counts.values())


def sum_s(counts: Counts) -> float:
    """The sum of all durations, each taken as the middle of its bucket: at most a sixteenth off."""
    return sum(count * bucket_middle_ns(bucket) for bucket, count in counts.items()) / SECOND_NS
