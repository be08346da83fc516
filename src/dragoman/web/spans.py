"""How long things took between two looks: differences of counts by bucket (model/buckets), read at the usual quantiles."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec

from dragoman.model.buckets import BUCKETS, bucket_begin_ns

QUANTILES: Final = (0.50, 0.95, 0.99)

Counts = Mapping[int, int]  # bucket → count


class Quantiles(msgspec.Struct, frozen=True):
    """In nanoseconds; None where nothing happened."""

    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None


NONE: Final = Quantiles()


def counts_of(pairs: Iterable[Sequence[int]]) -> dict[int, int]:
    """As the admin socket tells them: `[[bucket, count], …]`."""
    return {pair[0]: pair[1] for pair in pairs}


def between(before: Counts, after: Counts) -> dict[int, int]:
    """What came in between. Counts only grow: less than before means that another broker has begun, and all of it is new."""
    if any(count > after.get(bucket, 0) for bucket, count in before.items()):
        return dict(after)
    return {bucket: count - before.get(bucket, 0) for bucket, count in after.items() if count > before.get(bucket, 0)}


def quantiles(counts: Counts) -> Quantiles:
    total = sum(counts.values())
    if total == 0:
        return NONE
    return Quantiles(*(quantile(counts, total, part) for part in QUANTILES))


def quantile(counts: Counts, total: int, part: float) -> int:
    """The middle of the bucket that the value lies in: at most a sixteenth off."""
    wanted = part * total
    seen = 0
    bucket = 0
    for bucket in sorted(counts):
        seen += counts[bucket]
        if seen >= wanted:
            break
    begin_ns = bucket_begin_ns(bucket)
    end_ns = bucket_begin_ns(min(bucket + 1, BUCKETS - 1))
    return (begin_ns + end_ns) // 2
