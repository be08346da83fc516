"""Moving live messages out of old journal segments, so that those can go.

A carried record is storage: `u32 size, u8 201, i64 accepted_ns`, then the accepted record as it was. Replay only learns the new place.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.quarantine import Quarantine
from dragoman.core.state import State
from dragoman.core.tail import Tail
from dragoman.errors import RecordDamaged
from dragoman.limits import TAIL_SAMPLES_MAX
from dragoman.model.message import Message
from dragoman.model.records import FactLog, carried_at

PLACE_SHIFT: Final = 32  # a place is segment number << 32 | offset


def live_counts(state: State) -> dict[int, int]:
    """Live messages by the segment that keeps them."""
    counts: dict[int, int] = {}
    for m in state.messages.values():
        segment = m.place >> PLACE_SHIFT
        counts[segment] = counts.get(segment, 0) + 1
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                if line.tail.live > 0:
                    count_tail(line.tail, counts)
    return counts


def live_samples(state: State, most: int) -> dict[int, list[int]]:
    """Places of some live messages by the segment that keeps them, at most `most` of each: what these are like, the others are."""
    samples: dict[int, list[int]] = {}
    for m in state.messages.values():
        add_sample(samples, m.place, most)
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                tail = line.tail
                step = (len(tail.places) - tail.head) // TAIL_SAMPLES_MAX + 1
                for at in range(tail.head, len(tail.places), step):
                    if tail.numbers[at] > 0:
                        add_sample(samples, tail.places[at], most)
    return samples


def add_sample(samples: dict[int, list[int]], place: int, most: int) -> None:
    found = samples.setdefault(place >> PLACE_SHIFT, [])
    if len(found) < most:
        found.append(place)


def carriable_counts(state: State, counts: dict[int, int]) -> dict[int, int]:
    """The same without those whose records are damaged: they stay where they are until an operator ends them."""
    left = counts.copy()
    for m in state.quarantine.values():
        if m.damage:
            left[m.place >> PLACE_SHIFT] -= 1
    return left


def count_tail(tail: Tail, counts: dict[int, int]) -> None:
    """Places rise along a tail, so runs of one segment are long."""
    segment = -1
    run = 0
    places = tail.places
    numbers = tail.numbers
    for at in range(tail.head, len(places)):
        if numbers[at] < 0:
            continue
        here = places[at] >> PLACE_SHIFT
        if here != segment:
            if run:
                counts[segment] = counts.get(segment, 0) + run
            segment = here
            run = 0
        run += 1
    if run:
        counts[segment] = counts.get(segment, 0) + run


@final
class Carrier:
    """Carries the live messages of one segment, some at a time."""

    def __init__(self, state: State, log: FactLog, quarantine: Quarantine, segment_no: int) -> None:
        self.state = state
        self.log = log
        self.quarantine = quarantine
        self.segment_no = segment_no
        self.messages: list[Message] = [
            m for m in state.messages.values() if m.place >> PLACE_SHIFT == segment_no and not m.damage
        ]
        self.rows: list[tuple[Tail, int]] = []  # tail and message number: indexes move
        for queue in state.queues.values():
            for lane in queue.lanes:
                for line in lane.lines.values():
                    tail = line.tail
                    for at in range(tail.head, len(tail.places)):
                        if tail.places[at] >> PLACE_SHIFT == segment_no and tail.numbers[at] > 0:
                            self.rows.append((tail, tail.numbers[at]))

    def step(self, most: int) -> bool:
        """Carry up to `most`; False when all are done."""
        while most > 0 and self.messages:
            m = self.messages.pop()
            if m.number in self.state.messages:
                self.carry_message(m)
            most -= 1
        while most > 0 and self.rows:
            tail, number = self.rows.pop()
            at = tail.find(number)
            revived = self.state.messages.get(number)
            if at >= 0:
                tail.places[at] = self.carry(tail.places[at], number, tail.accepted[at])
            elif revived is not None:
                self.carry_message(revived)
            most -= 1
        return bool(self.messages) or bool(self.rows)

    def carry_message(self, m: Message) -> None:
        if m.place >> PLACE_SHIFT == self.segment_no and not m.damage:
            m.place = self.carry(m.place, m.number, m.accepted_ns)

    def carry(self, place: int, number: int, accepted_ns: int) -> int:
        """The new place of a record. One that is damaged stays where it is, as evidence; a waiting message of it is set aside."""
        try:
            record = self.state.kept.load(place, number)
        except RecordDamaged:
            self.quarantine.check(number)
            return place
        return self.log.carried(record[carried_at(record) :], accepted_ns)
