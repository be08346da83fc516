"""The last hour from the journal's facts, for a page that has just begun: read in short slices, so that it answers meanwhile.

Rates and durations are counted; levels (what waits, what is leased) are counted backwards from what the broker says now.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Final

from dragoman.errors import DragomanError
from dragoman.journal import JournalReader
from dragoman.model.census import Census
from dragoman.web.history import SLOT_NS, SLOT_S, SLOTS_KEPT, History, Look, Point
from dragoman.web.spans import quantiles

SLICE_S: Final = 0.02
REST_S: Final = 0.02
# A journal that grew by more in an hour is not read whole: the newest part of the hour is shown.
SIZE_MAX: Final = 2 * 2**30


async def refill(history: History, journal: Path, now: Look) -> int:
    """Fill the slots that nobody saw; how many were found."""
    first_slot = now.at_ns // SLOT_NS - SLOTS_KEPT
    try:
        slots = await count_slots(journal, first_slot)
    except (DragomanError, OSError):
        return 0  # the journal's own tools tell what is wrong with it; a page without its past is still a page
    points = points_of(slots, now)
    for point in points:
        history.put(point.at_ns // SLOT_NS, point)
    return len(points)


async def count_slots(journal: Path, first_slot: int) -> dict[int, Census]:
    reader = JournalReader(str(journal))
    slots: dict[int, Census] = {}
    pause_s = time.monotonic() + SLICE_S
    for block in reader.read(first_lsn(reader, first_slot * SLOT_NS)):
        slot = block.time_ns // SLOT_NS
        if slot >= first_slot:
            slots.setdefault(slot, Census()).add(block.records, block.time_ns)
        if time.monotonic() >= pause_s:
            await asyncio.sleep(REST_S)
            pause_s = time.monotonic() + SLICE_S
    return slots


def first_lsn(reader: JournalReader, from_ns: int) -> int:
    """Where the hour begins, to the segment; or later, where that is too much to read."""
    lsn = 0
    size = 0
    for segment in reversed(reader.segments()):
        size += segment.size
        if size > SIZE_MAX and lsn:
            break
        lsn = segment.first_lsn
        if segment.created_ns < from_ns:
            break
    return lsn


def points_of(slots: dict[int, Census], now: Look) -> list[Point]:
    """From the newest back: a slot's level at its end is the next one's at its beginning. The one that goes on now only counts: its point is
    made when it is over, by who looks."""
    waiting, leased = now.waiting, now.leased
    points: list[Point] = []
    if not slots:
        return points
    for slot in range(max(slots), min(slots) - 1, -1):
        census = slots.get(slot)
        if census is None:
            points.append(Point((slot + 1) * SLOT_NS - 1, 0.0, 0.0, waiting, leased))
            continue
        points.append(
            Point(
                (slot + 1) * SLOT_NS - 1,
                census.accepted / SLOT_S,
                census.settled / SLOT_S,
                waiting,
                leased,
                quantiles({bucket: count for bucket, count in enumerate(census.wait) if count}),
                quantiles({bucket: count for bucket, count in enumerate(census.total) if count}),
            )
        )
        waiting = max(waiting - census.waiting, 0)
        leased = max(leased - census.leased, 0)
    return [point for point in reversed(points) if point.at_ns < now.at_ns]
