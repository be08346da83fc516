"""Which queues have series of their own: names come from peers, and a label that they can fill without bound would be theirs to abuse.

The busiest ones are chosen, up to a limit, and stay chosen while this process lives and the broker has them: a queue that came and went
would look like a counter that jumps. All others are added up under one name, as what the broker counted in all without the chosen ones; these sums never fall
while the broker runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from dragoman.model.buckets import counts_of
from dragoman.web.durations import Counts

OTHER: Final = "(other)"
SUMMED_STATES: Final = ("waiting", "delayed", "leased", "quarantined")
SUMMED_COUNTS: Final = ("accepted", "done", "failed", "released")

View = Mapping[str, Any]


@dataclass(slots=True)
class Rest:
    """All queues without a name of their own."""

    queues: int = 0
    states: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    wait: Counts = field(default_factory=dict)
    total: Counts = field(default_factory=dict)


class Crowd:
    """Remembers who was chosen."""

    def __init__(self, chosen_max: int) -> None:
        self._chosen_max = chosen_max
        self._chosen: dict[int, str] = {}  # names by number
        self._names = {OTHER}  # no two series may have one name; a queue that is really called so stays with the rest
        self._boot_no = 0
        self._floor = Rest()

    def choose(self, queues: list[View]) -> list[View]:
        """Those of them that are shown, in the order they were named."""
        there = {view["queue_no"] for view in queues}
        for number in [number for number in self._chosen if number not in there]:
            self._names.discard(self._chosen.pop(number))  # forgotten, all of those that are there were asked for
        for view in sorted(queues, key=lambda view: -view["accepted"]):
            if len(self._chosen) >= self._chosen_max:
                break
            if view["queue_no"] not in self._chosen and view["queue"] not in self._names:
                self._chosen[view["queue_no"]] = view["queue"]
                self._names.add(view["queue"])
        shown = [view for view in queues if view["queue_no"] in self._chosen]
        return sorted(shown, key=lambda view: view["queue_no"])

    def missing(self, queues: list[View]) -> list[str]:
        """The names of chosen ones that are not among these."""
        there = {view["queue_no"] for view in queues}
        return [name for number, name in self._chosen.items() if number not in there]

    def rest(self, tallies: View, shown: list[View]) -> Rest:
        """The whole without what is shown."""
        if tallies["boot_no"] != self._boot_no:
            self._boot_no, self._floor = tallies["boot_no"], Rest()
        floor = self._floor
        waits, totals = counts_of(tallies["wait"]), counts_of(tallies["total"])
        for view in shown:
            _take_away(waits, counts_of(view["wait"]))
            _take_away(totals, counts_of(view["total_time"]))
        counts = {key: tallies[key] - sum(view[key] for view in shown) for key in SUMMED_COUNTS}
        self._floor = Rest(
            max(tallies["queues"] - len(shown), 0),
            {key: max(tallies[key] - sum(view[key] for view in shown), 0) for key in SUMMED_STATES},
            _at_least(floor.counts, counts),
            _at_least(floor.wait, waits),
            _at_least(floor.total, totals),
        )
        return self._floor


def _take_away(counts: Counts, part: Counts) -> None:
    for bucket, count in part.items():
        counts[bucket] = counts.get(bucket, 0) - count


def _at_least(floor: dict[Any, int], counts: dict[Any, int]) -> dict[Any, int]:
    """Questions are asked one after the other: the sum of the parts may be a little ahead of the whole."""
    return {key: max(floor.get(key, 0), counts.get(key, 0), 0) for key in floor.keys() | counts.keys()}
