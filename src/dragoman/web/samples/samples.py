"""One sample of the broker, and totals of samples across boots: the parts of its responses that charts and totals need, in the form that is
saved (web/samples/sample_file).

The broker's tallies begin at its start and go into /metrics unchanged. The dashboard adds its samples of earlier boots and shows since
when: `since_ns` is the same instant on every page. What a boot did after its last sample is not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec

from dragoman.model.buckets import counts_of, quantile_ns

Pairs = list[tuple[int, int]]  # bucket and count (model/buckets)
Counts = Mapping[int, int]  # bucket → count
Key = TypeVar("Key")

QUANTILES: Final = (0.50, 0.95, 0.99)


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


class QueueTimes(msgspec.Struct, frozen=True):
    """One queue's durations since an instant."""

    since_ns: int
    wait: Counts
    total: Counts


class Totals(msgspec.Struct, frozen=True):
    """Totals of all boots from `since_ns` on; 0: none yet."""

    since_ns: int = 0
    dialects: list[DialectSample] = []
    crossings: list[CrossingSample] = []
    queues: dict[int, QueueTimes] = {}  # by number
    is_cut: bool = False  # some queues had no sample: what they did is unknown

    def plus(self, sample: Sample) -> Totals:
        """These totals plus the sample's boot up to that sample."""
        accepted = added((one.dialect, one.accepted) for one in self.dialects + sample.dialects)
        crossings = added(((one.client, one.worker), one.count) for one in self.crossings + sample.crossings)
        return Totals(
            self.since(sample.started_ns),
            [DialectSample(name, count) for name, count in accepted.items()],
            [CrossingSample(client, worker, count) for (client, worker), count in crossings.items()],
            {queue.queue_no: self.times_with(queue, sample.started_ns) for queue in sample.queues},
            sample.queues_total > len(sample.queues),
        )

    def since(self, started_ns: int) -> int:
        """The earlier of the two, because the clock may have been set back between them."""
        return min(self.since_ns, started_ns) if self.since_ns else started_ns

    def times_with(self, queue: QueueSample, started_ns: int) -> QueueTimes:
        """One queue's durations including the boot that began at `started_ns`. A queue that may have had earlier durations, of which none
        are known, counts from that start on."""
        wait, total = counts_of(queue.wait), counts_of(queue.total_time)
        past = self.queues.get(queue.queue_no)
        if past is None:
            return QueueTimes(started_ns if self.is_cut else self.since(started_ns), wait, total)
        wait, total = added([*past.wait.items(), *wait.items()]), added([*past.total.items(), *total.items()])
        return QueueTimes(min(past.since_ns, started_ns), wait, total)


def added(counts: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for key, count in counts:
        found[key] = found.get(key, 0) + count
    return found
