"""One sample of the broker: the part of its responses that charts and totals need, in the form that is saved (web/samples/sample_file)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.model.buckets import quantile_ns

Pairs = list[tuple[int, int]]  # bucket and count (model/buckets)

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


class DialectSample(msgspec.Struct, frozen=True):
    """Messages of one client dialect that the broker accepted since its start."""

    dialect: str
    accepted: int


class CrossingSample(msgspec.Struct, frozen=True):
    """Messages of one client dialect that workers of one dialect settled since the broker's start."""

    client: str
    worker: str
    count: int


class QueueSample(msgspec.Struct, frozen=True, omit_defaults=True):
    """One queue: its all-time accepted count, its current depth, and its durations since the broker's start."""

    queue_no: int
    accepted: int = 0
    waiting: int = 0
    delayed: int = 0
    leased: int = 0
    quarantined: int = 0
    wait: Pairs = []
    total_time: Pairs = []

    @property
    def settled(self) -> int:
        """Messages that have left the queue: all ever accepted minus those still in it."""
        return self.accepted - self.waiting - self.delayed - self.leased - self.quarantined


class Sample(msgspec.Struct, frozen=True):
    """The whole broker at one instant. `accepted` and `settled` count across boots; durations, dialects and crossings since `started_ns`."""

    now_ns: int
    boot_no: int
    started_ns: int
    accepted: int
    settled: int
    waiting: int
    leased: int
    wait: Pairs
    total: Pairs
    dialects: list[DialectSample]
    crossings: list[CrossingSample]
    queues_total: int
    queues: list[QueueSample]  # the busiest ones

    def is_same_boot(self, other: Sample) -> bool:
        return self.boot_no == other.boot_no and self.started_ns == other.started_ns

    def at_start(self) -> Sample:
        """The broker's state when this boot began, computed from what it counted since then."""
        return msgspec.structs.replace(
            self,
            now_ns=self.started_ns,
            accepted=self.accepted - sum(one.accepted for one in self.dialects),
            settled=self.settled - sum(count for _, count in self.total),
            leased=0,
            wait=[],
            total=[],
            dialects=[],
            crossings=[],
            queues=[],
        )


def sample_of(tallies: Mapping[str, Any], queue_tallies: Mapping[str, Any]) -> Sample:
    """Build a sample from the broker's responses to `tallies` and `queue_tallies`."""
    queues = {"queues": queue_tallies["queues"], "queues_total": queue_tallies["total"]}
    return msgspec.convert({**tallies, **queues}, Sample)
