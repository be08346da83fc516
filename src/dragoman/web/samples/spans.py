"""Quantiles of durations between two samples, from differences of bucket counts (model/buckets)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.model.buckets import between, counts_of, quantile_ns

__all__ = ["NONE", "QUANTILES", "Counts", "Quantiles", "between", "counts_of", "quantiles"]

QUANTILES: Final = (0.50, 0.95, 0.99)

Counts = Mapping[int, int]  # bucket → count


class Quantiles(msgspec.Struct, frozen=True, array_like=True):
    """Quantiles in nanoseconds; None if nothing happened."""

    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None


NONE: Final = Quantiles()


def quantiles(counts: Counts) -> Quantiles:
    total = sum(counts.values())
    if total == 0:
        return NONE
    return Quantiles(*(quantile_ns(counts, total, part) for part in QUANTILES))
