"""What a page that has just begun did not see, from the journal's facts: read in short slices, so that it answers meanwhile.

Three things are counted in one pass: the last hour in slots of ten seconds, the last two minutes of the busiest queues by the second, and all
that happened in the stretch before the broker's start (model/past). Rates and durations are counted; levels (what waits, what is
leased) are counted backwards from what the broker says now. A broker that runs for long is not read whole: what lies between its start and
the last hour it has counted itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from dragoman.errors import DragomanError
from dragoman.journal import JournalReader
from dragoman.journal.format import Block
from dragoman.journal.segments import SegmentInfo
from dragoman.model.census import Census, Delays
from dragoman.model.past import Past
from dragoman.model.steps import Steps
from dragoman.model.units import SECOND_NS
from dragoman.web import trails
from dragoman.web.before import NOTHING, Before, before_of
from dragoman.web.history import SLOT_NS, SLOT_S, SLOTS_KEPT, Look, Point
from dragoman.web.link import ANSWER_S
from dragoman.web.spans import quantiles
from dragoman.web.trails import TRAIL_S

SLICE_S: Final = 0.02
REST_S: Final = 0.02
# Where the journal grew by more in an hour, or before the start, the newest part is read.
SIZE_MAX: Final = 2 * 2**30
# What comes later was not there when the broker was asked: a busy one's journal has no end.
ANSWER_NS: Final = int(ANSWER_S * SECOND_NS)

Answer = dict[str, Any]


class Now(msgspec.Struct, frozen=True):
    """What the broker says, from which levels are counted backwards."""

    look: Look
    started_ns: int
    queues: list[Answer] = []  # those whose last two minutes are wanted
    held: list[Answer] = []  # what workers have in hand; asked for before the journal is read


class Found(msgspec.Struct, frozen=True):
    """What the journal tells."""

    points: list[Point] = []  # oldest first
    before: Before = NOTHING
    trails: dict[int, trails.Past] = {}  # by the queue's number


async def read_past(journal: Path, now: Now, past_s: float) -> Found:
    """`past_s`: how far before the start; nothing is read at 0."""
    if past_s <= 0:
        return Found()
    reading = Reading(now, past_s)
    try:
        await reading.read(JournalReader(str(journal)))
    except (DragomanError, OSError):
        return Found()  # the journal's own tools tell what is wrong with it; a page without its past is still a page
    return reading.found()


class Reading:
    """One pass."""

    def __init__(self, now: Now, past_s: float) -> None:
        self._now = now
        at_ns = now.look.at_ns
        self._first_slot = at_ns // SLOT_NS - SLOTS_KEPT
        self._past_ns = now.started_ns - int(past_s * SECOND_NS)
        self._begin_ns = (at_ns // SECOND_NS - TRAIL_S + 1) * SECOND_NS  # of the trails
        self._aside: set[int] = set()
        self._delays = Delays(SLOT_NS, at_ns)
        self._slots: dict[int, Census] = {}
        self._past = Past(now.look.boot_no)
        self._steps = steps_of(now, self._begin_ns)
        self._since_ns = now.started_ns
        self._hour_lsn = 0
        self._known_ns = at_ns  # from then on all facts up to now are read, also where there are none

    async def read(self, reader: JournalReader) -> None:
        pause_s = time.monotonic() + SLICE_S
        for block in self._blocks(reader):
            if block.time_ns > self._now.look.at_ns + ANSWER_NS:
                return
            self._add(block)
            if time.monotonic() >= pause_s:
                await asyncio.sleep(REST_S)
                pause_s = time.monotonic() + SLICE_S

    def found(self) -> Found:
        self._steps.end()
        queues = self._steps.queues
        found = {
            queue["queue_no"]: trails.past_of(
                queues[queue["queue_no"]], self._begin_ns, self._known_ns, queue["waiting"]
            )
            for queue in self._now.queues
        }
        first_slot = max(self._known_ns // SLOT_NS, self._first_slot)
        points = points_of(self._slots, self._delays.due, first_slot, self._now.look)
        return Found(points, before_of(self._past, self._since_ns), found)

    def _blocks(self, reader: JournalReader) -> Iterator[Block]:
        """Those before the start, then those of the last hour; what lies between is not read."""
        segments = reader.segments()
        self._hour_lsn = first_lsn(segments, self._first_slot * SLOT_NS)
        begun = [segment.created_ns for segment in segments if segment.first_lsn == self._hour_lsn]
        self._known_ns = min([self._known_ns, *begun])
        before = [segment for segment in segments if segment.created_ns <= self._now.started_ns]
        lsn = min(first_lsn(before, self._past_ns), self._hour_lsn) if before else self._hour_lsn
        for block in reader.read(lsn):
            is_later = self._past.is_over or block.time_ns > self._now.started_ns
            if is_later and block.last_lsn < self._hour_lsn:
                break
            yield block
            lsn = block.last_lsn + 1
        if lsn < self._hour_lsn:
            yield from reader.read(self._hour_lsn)

    def _add(self, block: Block) -> None:
        at_ns, records = block.time_ns, block.records
        if not self._past.is_over:
            self._since_ns = min(self._since_ns, max(at_ns, self._past_ns))
            if at_ns >= self._past_ns:
                self._past.add(records, at_ns)
        if block.first_lsn < self._hour_lsn:
            return
        self._steps.add(records, at_ns)  # all of the hour: what it delayed may come due in the last minutes
        if at_ns <= self._now.look.at_ns:
            slot = max(at_ns // SLOT_NS, self._first_slot - 1)  # that one is not drawn, but knows what it delayed
            self._slots.setdefault(slot, Census(self._aside, self._delays)).add(records, at_ns)


def steps_of(now: Now, begin_ns: int) -> Steps:
    steps = Steps([queue["queue_no"] for queue in now.queues], begin_ns, SECOND_NS, TRAIL_S, now.look.at_ns)
    numbers = {queue["queue"]: queue["queue_no"] for queue in now.queues}
    for message in now.held:
        if message["queue"] in numbers:
            steps.hold(message["number"], numbers[message["queue"]], message["leased_ns"])
    return steps


def first_lsn(segments: Iterable[SegmentInfo], from_ns: int) -> int:
    """Where to begin so that the newest of these segments are read from an instant on; or later, where that is too much to read, or where
    segments are gone in between."""
    lsn = 0
    size = 0
    for segment in reversed(list(segments)):
        size += segment.size
        if lsn and (size > SIZE_MAX or segment.last_lsn + 1 < lsn):
            break
        lsn = segment.first_lsn
        if segment.created_ns < from_ns:
            break
    return lsn


def points_of(slots: dict[int, Census], due: dict[int, int], first_slot: int, now: Look) -> list[Point]:
    """From the newest back: a slot's level at its end is the next one's at its beginning. The one that goes on now only counts: its point is
    made when it is over, by who looks. `due`: how many began to wait in a slot because their time had come."""
    waiting, leased = now.waiting, now.leased
    points: list[Point] = []
    nothing = Census(set())
    for slot in range(now.at_ns // SLOT_NS, first_slot - 1, -1):
        census = slots.get(slot, nothing)
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
        waiting = max(waiting - census.waiting + census.delayed - due.get(slot, 0), 0)
        leased = max(leased - census.leased, 0)
    return [point for point in reversed(points) if point.at_ns < now.at_ns]
