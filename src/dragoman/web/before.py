"""What was before the broker started, added to what it counts itself: who settled whose messages, and how long that took.

The broker's tallies begin at its start and go into /metrics as they are; people want to know about the time before, too. So everything
that a page shows "since" an instant is the sum of both, and the instant is the same everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

import msgspec

from dragoman.model.histogram import Histogram
from dragoman.model.past import Past
from dragoman.model.words import DIALECT_NAMES, DIALECTS, ROW_SIZE
from dragoman.web.spans import Counts, counts_of

Answer = Mapping[str, Any]
Pair = tuple[str, str]
Key = TypeVar("Key")


class Times(msgspec.Struct, frozen=True):
    """One queue's durations."""

    wait: Counts
    total: Counts


class Before(msgspec.Struct, frozen=True):
    """Of one boot: from `since_ns` until it began."""

    boot_no: int = 0
    since_ns: int = 0
    accepted: dict[str, int] = {}  # by the client's dialect
    settled: dict[str, int] = {}
    crossings: dict[Pair, int] = {}  # by the client's and the worker's dialect
    queues: dict[int, Times] = {}  # by number
    is_cut: bool = False  # of queues that are not there nothing is known

    def dialects_with(self, tallies: Answer) -> list[dict[str, Any]]:
        return [
            {
                "dialect": one["dialect"],
                "accepted": one["accepted"] + self.accepted.get(one["dialect"], 0),
                "settled": one["settled"] + self.settled.get(one["dialect"], 0),
            }
            for one in tallies["dialects"]
        ]

    def crossings_with(self, tallies: Answer) -> dict[Pair, int]:
        return added(self.crossings, {(one["client"], one["worker"]): one["count"] for one in tallies["crossings"]})

    def times_with(self, queue: Answer) -> Times:
        now = Times(counts_of(queue["wait"]), counts_of(queue["total_time"]))
        past = self.queues.get(queue["queue_no"])
        return Times(added(past.wait, now.wait), added(past.total, now.total)) if past is not None else now

    def since_of(self, tallies: Answer) -> int:
        """From when on everything is counted."""
        return self.since_ns or int(tallies["started_ns"])

    def since_of_queue(self, tallies: Answer, queue: Answer) -> int:
        is_known = queue["queue_no"] in self.queues or not self.is_cut
        return self.since_of(tallies) if is_known else int(tallies["started_ns"])


NOTHING: Final = Before()


def before_of(past: Past, since_ns: int) -> Before:
    """In words. Nothing, unless the start was among the facts: without it nobody can tell what the broker has counted itself."""
    if not past.is_over:
        return NOTHING
    accepted, settled, crossings = {}, {}, {}
    for client in range(DIALECTS):
        row = [past.settled[client * ROW_SIZE + worker].count for worker in range(ROW_SIZE)]
        accepted[DIALECT_NAMES[client]] = past.accepted[client].count
        settled[DIALECT_NAMES[client]] = sum(row)
        for worker in range(DIALECTS):
            if row[worker]:
                crossings[DIALECT_NAMES[client], DIALECT_NAMES[worker]] = row[worker]
    queues = {number: Times(counts(spans.wait), counts(spans.total)) for number, spans in past.queues.items()}
    return Before(past.boot_no, since_ns, accepted, settled, crossings, queues, past.is_cut)


def counts(histogram: Histogram) -> Counts:
    return counts_of(histogram.pairs())


def added(one: Mapping[Key, int], other: Mapping[Key, int]) -> dict[Key, int]:
    return {key: one.get(key, 0) + other.get(key, 0) for key in one.keys() | other.keys()}
