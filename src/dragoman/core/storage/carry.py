"""Carries live messages out of old journal segments, so that those can be deleted.

A carried record is storage, not a fact: `u32 size, u8 201, i64 accepted_ns`, then the unchanged accepted record. Replay takes only the new
record reference from it, and completes a message whose old record was damaged.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.lifecycle import QUARANTINED
from dragoman.core.quarantine import Quarantine
from dragoman.core.state.state import State
from dragoman.core.state.tail import Tail
from dragoman.core.storage.live_walk import LiveWalk
from dragoman.errors import RecordDamaged
from dragoman.limits import CARRY_STEP_SIZE, LIVE_STEP_COUNT, SEGMENT_SAMPLES_MAX, TAIL_SAMPLES_MAX
from dragoman.model.facts.fields import record_size
from dragoman.model.facts.record_load import RecordLoad
from dragoman.model.facts.records import FactLog, carried_at
from dragoman.model.message import Message

PLACE_SHIFT: Final = 32  # a record reference (`place`) is segment number << 32 | offset
ALL: Final = 1 << 60


@final
class LiveCount(LiveWalk):
    """Counts live messages by the segment of their records, and samples some of their record references to estimate the size of all."""

    def __init__(self, state: State) -> None:
        LiveWalk.__init__(self, state)
        self.counts: dict[int, int] = {}
        self.damaged: dict[
            int, int
        ] = {}  # damaged ones among them: they stay in their segment until an operator ends them
        self.samples: dict[int, list[int]] = {}

    def carriable(self, segment_no: int) -> int:
        return self.counts.get(segment_no, 0) - self.damaged.get(segment_no, 0)

    def meet(self, m: Message) -> None:
        segment_no = m.place >> PLACE_SHIFT
        self.counts[segment_no] = self.counts.get(segment_no, 0) + 1
        if m.damage and m.state == QUARANTINED:
            self.damaged[segment_no] = self.damaged.get(segment_no, 0) + 1
        self.add_sample(m.place)

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        """Record references ascend along a tail, so runs of one segment are long."""
        segment_no = -1
        run = 0
        places = tail.places
        numbers = tail.numbers
        sample_step = (stop - at) // TAIL_SAMPLES_MAX + 1
        next_sample = at
        for index in range(at, stop):
            if numbers[index] < 0:
                continue
            here = places[index] >> PLACE_SHIFT
            if here != segment_no:
                if run:
                    self.counts[segment_no] = self.counts.get(segment_no, 0) + run
                segment_no = here
                run = 0
            run += 1
            if index >= next_sample:
                next_sample = index + sample_step
                self.add_sample(places[index])
        if run:
            self.counts[segment_no] = self.counts.get(segment_no, 0) + run

    def add_sample(self, place: int) -> None:
        found = self.samples.setdefault(place >> PLACE_SHIFT, [])
        if len(found) < SEGMENT_SAMPLES_MAX:
            found.append(place)


def live_count(state: State) -> LiveCount:
    """Count everything in a single step."""
    count = LiveCount(state)
    count.walk(ALL)
    return count


@final
class Carrier(LiveWalk):
    """Carries the live messages of one segment: finds them, then copies a few records per step, a large one in parts."""

    def __init__(self, state: State, log: FactLog, quarantine: Quarantine, segment_no: int) -> None:
        LiveWalk.__init__(self, state)
        self.log = log
        self.quarantine = quarantine
        self.segment_no = segment_no
        self.is_looking: bool = True
        self.found: list[tuple[Tail | None, int]] = []  # the tail it was in (or None) and its number: indexes change
        self.load: RecordLoad | None = None  # of the last one in `found`
        self.load_place: int = 0

    def meet(self, m: Message) -> None:
        if m.place >> PLACE_SHIFT == self.segment_no and not m.damage:
            self.found.append((None, m.number))

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        for index in range(at, stop):
            if tail.places[index] >> PLACE_SHIFT == self.segment_no and tail.numbers[index] > 0:
                self.found.append((tail, tail.numbers[index]))

    def step(self, most: int, size: int = CARRY_STEP_SIZE, rows: int = LIVE_STEP_COUNT) -> bool:
        """Scan up to `rows` messages, or carry up to `most` records and about `size` bytes; False when all are done."""
        if self.is_looking:
            self.is_looking = self.walk(rows)
            if self.is_looking:
                return True
        kept = self.state.kept
        effort_max = kept.effort + size
        while most > 0 and self.found and kept.effort < effort_max:
            tail, number = self.found[-1]
            if self.carry(tail, number, size):
                self.found.pop()
                self.load = None
            most -= 1
        return bool(self.found)

    def carry(self, tail: Tail | None, number: int, size: int) -> bool:
        """Do the next step for one message; True when it is done. A damaged record stays in its segment, as evidence; if its message waits, it is
        quarantined."""
        at = tail.find(number) if tail is not None else -1
        m = self.state.messages.get(number)
        place = 0
        accepted_ns = 0
        if tail is not None and at >= 0:
            place = tail.places[at]
            accepted_ns = tail.accepted[at]
        elif m is not None and not m.damage:
            place = m.place
            accepted_ns = m.accepted_ns
        if place >> PLACE_SHIFT != self.segment_no:  # it has ended, or was carried already
            return True
        try:
            record = self.read(place, number, size)
        except RecordDamaged:
            self.quarantine.check(number)
            return True
        if not record:
            return False
        place = self.log.carried(record, accepted_ns)
        if tail is not None and at >= 0:
            tail.places[at] = place
        elif m is not None:
            m.place = place
        return True

    def read(self, place: int, number: int, size: int) -> bytes:
        """The accepted record at a reference; empty until all of it is read."""
        kept = self.state.kept
        load = self.load
        if load is None or self.load_place != place:
            record = kept.prove(place, number, 0)
            if len(record) == record_size(record, 0):
                return record[carried_at(record) :]
            self.load = kept.begin(place, number, True)
            self.load_place = place
            return b""
        kept.effort += size
        return load.taken() if load.step(size) else b""
