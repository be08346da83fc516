"""Recent activity of a broker: the difference between the newest and the oldest of its recent samples.

The broker's counts only rise after its start (docs/reference/admin.md), so two samples are enough for rates and for the quantiles of what
happened between them. After a restart the broker counts anew, and the window starts anew.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Final

from dragoman.cli.admin_client import AdminClient
from dragoman.model.buckets import between, counts_of, quantile_ns
from dragoman.model.units import SECOND_NS

QUANTILES: Final = (0.5, 0.95, 0.99)
WINDOW_S: Final = 10.0
PAGE: Final = 1000
QUEUES_MAX: Final = 10_000  # the maximum sampled; of a broker with more, those named first

Counts = dict[int, int]


@dataclass(frozen=True)
class Look:
    """One sample of the broker."""

    tallies: dict[str, Any]
    queues: dict[str, dict[str, Any]]
    workers: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    queues_total: int
    workers_total: int

    @property
    def now_ns(self) -> int:
        return int(self.tallies["now_ns"])

    @property
    def started_ns(self) -> int:
        return int(self.tallies["started_ns"])


def look(client: AdminClient) -> Look:
    queues: dict[str, dict[str, Any]] = {}
    total = 1
    offset = 0
    while offset < min(total, QUEUES_MAX):
        page = client.ask("queue_tallies", offset=offset, limit=PAGE)
        total = page["total"]
        offset += PAGE
        queues |= {queue["queue"]: queue for queue in page["queues"]}
    workers = client.ask("workers", limit=PAGE)
    findings = client.ask("stuck")["findings"]
    return Look(client.ask("tallies"), queues, workers["workers"], findings, total, workers["total"])


class Window:
    """The samples of the last `WINDOW_S`, and at least the last two."""

    def __init__(self) -> None:
        self._looks: deque[Look] = deque()

    def add(self, newest: Look) -> None:
        looks = self._looks
        if looks and looks[-1].started_ns != newest.started_ns:
            looks.clear()
        looks.append(newest)
        while len(looks) > 2 and newest.now_ns - looks[1].now_ns >= WINDOW_S * SECOND_NS:
            looks.popleft()

    def clear(self) -> None:
        self._looks.clear()

    @property
    def newest(self) -> Look:
        return self._looks[-1]

    @property
    def oldest(self) -> Look:
        return self._looks[0]

    @property
    def span_s(self) -> float:
        return (self.newest.now_ns - self.oldest.now_ns) / SECOND_NS


def rate(now: int, before: int, span_s: float) -> float:
    """Rate per second; 0 if no time lies between the two samples."""
    return max(now - before, 0) / span_s if span_s > 0 else 0.0


def lately(now: list[list[int]], before: list[list[int]]) -> Counts:
    """What was added to each bucket between two samples."""
    return between(counts_of(before), counts_of(now))


def quantiles_ns(counts: Counts) -> tuple[int, ...]:
    """p50, p95 and p99; empty if nothing was counted."""
    total = sum(counts.values())
    return tuple(quantile_ns(counts, total, part) for part in QUANTILES) if total else ()
