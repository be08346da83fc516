"""The lake's numbers and their words, as the contenders say them. No Spark here: theirs must not pay for importing it."""

from __future__ import annotations

import math
from typing import Final

from dragoman.lake.schema import DIALECTS, KINDS, OUTCOMES, REASONS

KIND: Final = {word: number for number, word in KINDS.items()}
REASON: Final = {word: number for number, word in REASONS.items()}
OUTCOME: Final = {word: number for number, word in OUTCOMES.items()}
ENDS: Final = ("done", "rejected", "expired", "cancelled")
LIFE: Final = ("accepted", "leased", "delivered", "released", "closed", "quarantined", "requeued")
ATTEMPT_ENDS: Final = ("released", "closed", "quarantined")
FAILURES: Final = ("failed", "timed_out", "returned", "retries_used_up", "refused_by_worker")

# Every table of the pipeline, by how its folders are found.
SILVER: Final = ("events", "queues", "peers", "messages", "attempts", "open", "orphans", "quality")
GOLD: Final = (
    "latency", "throughput", "funnel", "crossings", "workers", "slo", "stuck", "capacity", "anomalies",
)  # fmt: skip
TABLES: Final = SILVER + GOLD

LN_2: Final = math.log(2)
BUCKETS_PER_OCTAVE: Final = 32
WINDOWS: Final = (("1h", 1), ("6h", 6), ("3d", 72))
STUCK_MAX: Final = 100
COUNT_BITS: Final = 40
DAY_HOURS: Final = 24
WEEK_HOURS: Final = 168

__all__ = ["DIALECTS", "KINDS", "OUTCOMES", "REASONS"]


def numbers(*words: str) -> list[int]:
    """The numbers of kinds of fact."""
    return [KIND[word] for word in words]
