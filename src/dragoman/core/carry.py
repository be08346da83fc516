"""Moving live messages out of old journal segments, so that those can go.

A carried record is storage: `u32 size, u8 201, i64 accepted_ns`, then the accepted record as it was. Replay only learns the new place.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.state import State
from dragoman.core.tail import Tail
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

    def __init__(self, state: State, log: FactLog, segment_no: int) -> None:
        self.state = state
        self.log = log
        self.segment_no = segment_no
        self.messages: list[Message] = [m for m in state.messages.values() if m.place >> PLACE_SHIFT == segment_no]
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
            if m.number in self.state.messages and m.place >> PLACE_SHIFT == self.segment_no:
                m.place = self.carry(m.place, m.accepted_ns)
            most -= 1
        while most > 0 and self.rows:
            tail, number = self.rows.pop()
            at = tail.find(number)
            if at >= 0:
                tail.places[at] = self.carry(tail.places[at], tail.accepted[at])
            else:
                revived = self.state.messages.get(number)
                if revived is not None and revived.place >> PLACE_SHIFT == self.segment_no:
                    revived.place = self.carry(revived.place, revived.accepted_ns)
            most -= 1
        return bool(self.messages) or bool(self.rows)

    def carry(self, place: int, accepted_ns: int) -> int:
        record = self.state.load(place)
        return self.log.carried(record[carried_at(record) :], accepted_ns)
