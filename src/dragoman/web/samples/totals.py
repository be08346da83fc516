"""Totals across boots: crossings between dialects, and durations.

The broker's tallies begin at its start and go into /metrics unchanged. The dashboard adds its samples of earlier boots and shows since
when: `since_ns` is the same instant on every page. What a boot did after its last sample is not included.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar

import msgspec

from dragoman.model.buckets import counts_of
from dragoman.web.samples.samples import Counts, CrossingSample, DialectSample, QueueSample, Sample

Key = TypeVar("Key")


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
        since_ns = min(past.since_ns, started_ns)
        return QueueTimes(since_ns, added_counts(past.wait, wait), added_counts(past.total, total))


def added(counts: Iterable[tuple[Key, int]]) -> dict[Key, int]:
    found: dict[Key, int] = {}
    for key, count in counts:
        found[key] = found.get(key, 0) + count
    return found


def added_counts(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    return added([*one.items(), *other.items()])
