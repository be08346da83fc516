"""The numbers over time, in memory: a point each second for five minutes, one each ten seconds for an hour.

Seconds are kept while somebody looks, tens always. What this process has not seen itself is filled in from the journal's facts.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from dragoman.model.units import SECOND_NS
from dragoman.web.spans import NONE, Counts, Quantiles, between, counts_of, quantiles

SECONDS_KEPT: Final = 300
SLOT_S: Final = 10
SLOT_NS: Final = SLOT_S * SECOND_NS
SLOTS_KEPT: Final = 360
SECONDS_SHOWN: Final = 60  # drawn at least, known or not
SLOTS_SHOWN: Final = 30
WINDOW_S: Final = 60  # what "now" means for quantiles: a minute has enough messages even where few come


CLOSE_NS: Final = SECOND_NS // 2  # two looks this close are one: a rate over some milliseconds is noise


class Look(msgspec.Struct, frozen=True):
    """One answer of `tallies`, as far as its past matters."""

    at_ns: int
    boot_no: int
    accepted: int
    settled: int
    waiting: int
    leased: int
    wait: Counts
    total: Counts


class Point(msgspec.Struct, frozen=True):
    """What one interval was like: rates in it, levels at its end."""

    at_ns: int
    accepted_rate: float
    settled_rate: float
    waiting: int
    leased: int
    wait: Quantiles = NONE
    total: Quantiles = NONE


def look_of(tallies: Mapping[str, Any]) -> Look:
    return Look(
        tallies["now_ns"],
        tallies["boot_no"],
        tallies["accepted"],
        tallies["settled"],
        tallies["waiting"],
        tallies["leased"],
        counts_of(tallies["wait"]),
        counts_of(tallies["total"]),
    )


def point_between(before: Look, after: Look) -> Point | None:
    """None where the two cannot be compared: the broker started in between, or no time passed."""
    span_s = (after.at_ns - before.at_ns) / SECOND_NS
    if before.boot_no != after.boot_no or span_s <= 0:
        return None
    return Point(
        after.at_ns,
        max(after.accepted - before.accepted, 0) / span_s,
        max(after.settled - before.settled, 0) / span_s,
        after.waiting,
        after.leased,
        quantiles(between(before.wait, after.wait)),
        quantiles(between(before.total, after.total)),
    )


def begun(points: list[Point | None], least: int) -> list[Point | None]:
    """Without what was before the first known point, but for so many places at least: a broker an hour old fills the width, and so does
    one that has just begun."""
    first = next((at for at, point in enumerate(points) if point is not None), len(points))
    return points[min(first, max(len(points) - least, 0)) :]


class History:
    """Fed with looks; both rings are oldest first."""

    def __init__(self) -> None:
        self.seconds: deque[Point] = deque(maxlen=SECONDS_KEPT)
        self._slots: dict[int, Point] = {}
        self._slot_begin: Look | None = None
        self._looks: deque[Look] = deque(maxlen=WINDOW_S + 1)

    @property
    def last(self) -> Look | None:
        return self._looks[-1] if self._looks else None

    def add(self, look: Look) -> None:
        before = self.last
        if before is not None and 0 <= look.at_ns - before.at_ns < CLOSE_NS and before.boot_no == look.boot_no:
            return
        if before is not None and before.boot_no != look.boot_no:
            self._looks.clear()
        elif before is not None:
            point = point_between(before, look)
            if point is not None:
                self.seconds.append(point)
        self._looks.append(look)
        self._add_slot(look)

    def _add_slot(self, look: Look) -> None:
        begin = self._slot_begin
        if begin is not None and begin.boot_no == look.boot_no and look.at_ns // SLOT_NS == begin.at_ns // SLOT_NS:
            return
        point = point_between(begin, look) if begin is not None else None
        if begin is not None and point is not None:
            self.put(begin.at_ns // SLOT_NS, point)
        self._slot_begin = look

    def put(self, slot: int, point: Point) -> None:
        """A ten seconds' point; one that is there already was seen with our own eyes and stays."""
        self._slots.setdefault(slot, point)
        newest = max(self._slots)
        for slot in [slot for slot in self._slots if slot < newest - SLOTS_KEPT]:
            del self._slots[slot]

    def recent(self) -> list[Point | None]:
        """Up to five minutes, a place for each second; where nobody looked, the ten seconds it lies in stand for it."""
        last = self.last
        if last is None:
            return []
        seen = {point.at_ns // SECOND_NS: point for point in self.seconds}
        newest = last.at_ns // SECOND_NS
        # A look is never exactly a second after the one before: now and then a second has none of its own.
        found = [
            seen.get(second) or seen.get(second - 1) or self._slots.get(second // SLOT_S)
            for second in range(newest - SECONDS_KEPT + 1, newest + 1)
        ]
        return begun(found, SECONDS_SHOWN)

    def hour(self) -> list[Point | None]:
        """Up to an hour, a place for each ten seconds; None where nothing is known."""
        last = self.last
        if last is None:
            return []
        newest = last.at_ns // SLOT_NS
        return begun([self._slots.get(slot) for slot in range(newest - SLOTS_KEPT, newest)], SLOTS_SHOWN)

    def slots(self) -> list[Point]:
        """All that is known of the ten seconds, oldest first."""
        return [self._slots[slot] for slot in sorted(self._slots)]

    def window(self) -> Point | None:
        """The last minute in one point."""
        if len(self._looks) < 2:
            return None
        newest = self._looks[-1]
        from_ns = newest.at_ns - WINDOW_S * SECOND_NS
        begin = next((look for look in self._looks if look.at_ns >= from_ns), newest)
        return point_between(begin, newest)
