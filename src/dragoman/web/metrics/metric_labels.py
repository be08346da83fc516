"""Selection of the queues that get their own metric series. Peers choose queue names, so the number of label values must be bounded.

The busiest queues are chosen, up to a limit, and stay chosen while this process runs and the broker has them: a queue that comes and goes
would look like a counter that jumps. All others are summed under one name, as the broker's totals minus the chosen queues; these sums never
fall while the broker runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.model.buckets import counts_of
from dragoman.web.metrics.exposition import Counts

OTHER: Final = "(other)"
SUMMED_STATES: Final = ("waiting", "delayed", "leased", "quarantined")
SUMMED_COUNTS: Final = ("accepted", "done", "failed", "released")

View = Mapping[str, Any]


@dataclass(slots=True)
class Rest:
    """The sum of all queues without a series of their own."""

    queues: int = 0
    states: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    wait: Counts = field(default_factory=dict)
    total: Counts = field(default_factory=dict)


class LabelledQueues:
    """The chosen queues, remembered between scrapes."""

    def __init__(self, chosen_max: int) -> None:
        self._chosen_max = chosen_max
        self._chosen: dict[int, str] = {}  # queue numbers to names
        self._names = {OTHER}  # series names are unique; a queue that is really named like OTHER is counted in the rest
        self._boot_no = 0
        self._floor = Rest()

    def choose(self, queues: list[View]) -> list[View]:
        """The views of the chosen queues, by queue number; chooses more queues up to the limit."""
        there = {view["queue_no"] for view in queues}
        for number in [number for number in self._chosen if number not in there]:
            self._names.discard(self._chosen.pop(number))  # the broker no longer has it
        for view in sorted(queues, key=lambda view: -view["accepted"]):
            if len(self._chosen) >= self._chosen_max:
                break
            if view["queue_no"] not in self._chosen and view["queue"] not in self._names:
                self._chosen[view["queue_no"]] = view["queue"]
                self._names.add(view["queue"])
        shown = [view for view in queues if view["queue_no"] in self._chosen]
        return sorted(shown, key=lambda view: view["queue_no"])

    def missing(self, queues: list[View]) -> list[str]:
        """Names of the chosen queues that are not in `queues`."""
        there = {view["queue_no"] for view in queues}
        return [name for number, name in self._chosen.items() if number not in there]

    def rest(self, tallies: View, shown: list[View]) -> Rest:
        """The broker's totals minus the shown queues."""
        if tallies["boot_no"] != self._boot_no:
            self._boot_no, self._floor = tallies["boot_no"], Rest()
        floor = self._floor
        waits, totals = counts_of(tallies["wait"]), counts_of(tallies["total"])
        for view in shown:
            _subtract(waits, counts_of(view["wait"]))
            _subtract(totals, counts_of(view["total_time"]))
        counts = {key: tallies[key] - sum(view[key] for view in shown) for key in SUMMED_COUNTS}
        self._floor = Rest(
            max(tallies["queues"] - len(shown), 0),
            {key: max(tallies[key] - sum(view[key] for view in shown), 0) for key in SUMMED_STATES},
            _not_below(floor.counts, counts),
            _not_below(floor.wait, waits),
            _not_below(floor.total, totals),
        )
        return self._floor


def _subtract(counts: Counts, part: Counts) -> None:
    for bucket, count in part.items():
        counts[bucket] = counts.get(bucket, 0) - count


def _not_below(floor: dict[Any, int], counts: dict[Any, int]) -> dict[Any, int]:
    """The counts, never lower than before: the requests are sent one after the other, so the parts may be slightly ahead of the total."""
    return {key: max(floor.get(key, 0), counts.get(key, 0), 0) for key in floor.keys() | counts.keys()}
