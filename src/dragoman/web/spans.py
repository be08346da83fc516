"""How long things took between two looks: differences of counts by bucket (model/buckets), read at the usual quantiles."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from dragoman.model.buckets import between, counts_of, quantile_ns

__all__ = ["NONE", "QUANTILES", "Counts", "Quantiles", "between", "counts_of", "quantiles"]

QUANTILES: Final = (0.50, 0.95, 0.99)

Counts = Mapping[int, int]  # bucket → count


class Quantiles(msgspec.Struct, frozen=True):
    """In nanoseconds; None where nothing happened."""

    p50_ns: int | None = None
    p95_ns: int | None = None
    p99_ns: int | None = None


NONE: Final = Quantiles()


def quantiles(counts: Counts) -> Quantiles:
    total = sum(counts.values())
    if total == 0:
        return NONE
    return Quantiles(*(quantile_ns(counts, total, part) for part in QUANTILES))
