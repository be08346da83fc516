"""Walks over all open messages, in bounded steps, while messages are accepted, moved and settled: to count and carry them by segment, and to
check their records.

A walk misses no message that is open from its beginning to its end. It visits the tails (on disk only) first, and lists the messages in
memory after that. A message may move from a tail into memory meanwhile (to be leased, or because it was looked up), but only a newly
accepted message moves into a tail. So every message is visited in the tail, or later in memory, or both.

A walk may visit messages that have ended since, and miss those accepted since. To find the segments in use, that is safe: a message that has
ended makes a segment count as used for a while longer; a record written since is in a segment that was not full when the walk began, or in a
later one, and those always count as used (runtime/upkeep). No record moves to another segment during a walk: runtime/upkeep also does the
carrying, before or after.
"""

from __future__ import annotations

from typing import Final, final

from dragoman.core.lifecycle import QUARANTINED
from dragoman.core.quarantine import Quarantine
from dragoman.core.state.queue import lines_with_tails
from dragoman.core.state.state import State
from dragoman.core.state.tail import Tail
from dragoman.errors import RecordDamaged
from dragoman.limits import CARRY_STEP_SIZE, LIVE_STEP_COUNT, SEGMENT_SAMPLES_MAX, TAIL_SAMPLES_MAX
from dragoman.model.facts.fields import record_size
from dragoman.model.facts.record_load import RecordLoad
from dragoman.model.facts.records import FactLog, carried_at
from dragoman.model.message import POSITION_SHIFT, Message

ALL: Final = 1 << 60
LISTED_PER_ROW: Final = 50  # listing this many message numbers takes as long as visiting one row


class LiveWalk:
    """The walk; subclasses decide what to do with each message."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.tails: list[Tail] = [line.tail for _, _, line in lines_with_tails(state.queues.values())]
        self.passed: int = 0  # last number visited in the current tail: indexes change between steps
        self.is_listed: bool = False
        self.listed: list[int] = []  # numbers of messages in memory
        self.listed_at: int = 0

    def meet(self, m: Message) -> None:
        """Visit an open message in memory."""
        raise NotImplementedError

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        """Visit rows of a tail. Removed ones, with negative numbers, are among them."""
        raise NotImplementedError

    def walk(self, most: int) -> bool:
        """Visit up to `most` more messages; False when all were visited."""
        while self.tails and most > 0:
            tail = self.tails[-1]
            at = tail.after(self.passed)
            stop = min(at + most, len(tail.numbers))
            most -= max(stop - at, 1)
            if at < stop:
                self.passed = abs(tail.numbers[stop - 1])
                self.meet_rows(tail, at, stop)
            if stop == len(tail.numbers):
                self.tails.pop()
                self.passed = 0
        if self.tails or most <= 0:
            return True
        if not self.is_listed:
            self.is_listed = True
            self.listed = list(self.state.messages)
            most = max(most - len(self.listed) // LISTED_PER_ROW, 1)
        stop = min(self.listed_at + most, len(self.listed))
        while self.listed_at < stop:
            m = self.state.messages.get(self.listed[self.listed_at])
            if m is not None:
                self.meet(m)
            self.listed_at += 1
        return stop < len(self.listed)


@final
class LiveCount(LiveWalk):
    """Counts live messages by the segment of their records, and samples some of their positions to estimate the size of all."""

    def __init__(self, state: State) -> None:
        LiveWalk.__init__(self, state)
        self.counts: dict[int, int] = {}
        # Damaged ones among them: they stay in their segment until an operator ends them.
        self.damaged: dict[int, int] = {}
        self.samples: dict[int, list[int]] = {}

    def carriable(self, segment_no: int) -> int:
        return self.counts.get(segment_no, 0) - self.damaged.get(segment_no, 0)

    def meet(self, m: Message) -> None:
        segment_no = m.position >> POSITION_SHIFT
        self.counts[segment_no] = self.counts.get(segment_no, 0) + 1
        if m.damage and m.state == QUARANTINED:
            self.damaged[segment_no] = self.damaged.get(segment_no, 0) + 1
        self.add_sample(m.position)

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        """Positions ascend along a tail, so runs of one segment are long."""
        segment_no = -1
        run = 0
        positions = tail.positions
        numbers = tail.numbers
        sample_step = (stop - at) // TAIL_SAMPLES_MAX + 1
        next_sample = at
        for index in range(at, stop):
            if numbers[index] < 0:
                continue
            here = positions[index] >> POSITION_SHIFT
            if here != segment_no:
                if run:
                    self.counts[segment_no] = self.counts.get(segment_no, 0) + run
                segment_no = here
                run = 0
            run += 1
            if index >= next_sample:
                next_sample = index + sample_step
                self.add_sample(positions[index])
        if run:
            self.counts[segment_no] = self.counts.get(segment_no, 0) + run

    def add_sample(self, position: int) -> None:
        found = self.samples.setdefault(position >> POSITION_SHIFT, [])
        if len(found) < SEGMENT_SAMPLES_MAX:
            found.append(position)


def live_count(state: State) -> LiveCount:
    """Count everything in a single step."""
    count = LiveCount(state)
    count.walk(ALL)
    return count


@final
class Carrier(LiveWalk):
    """Carries the live messages of one segment, so that it can be deleted: finds them, then copies a few records per step, a large one in parts.

    A carried record is storage, not a fact: `u32 size, u8 201, i64 accepted_ns`, then the unchanged accepted record. Replay takes only the
    new position from it, and completes a message whose old record was damaged.
    """

    def __init__(self, state: State, log: FactLog, quarantine: Quarantine, segment_no: int) -> None:
        LiveWalk.__init__(self, state)
        self.log = log
        self.quarantine = quarantine
        self.segment_no = segment_no
        self.is_looking: bool = True
        self.found: list[tuple[Tail | None, int]] = []  # the tail it was in (or None) and its number: indexes change
        self.load: RecordLoad | None = None  # of the last one in `found`
        self.load_position: int = 0

    def meet(self, m: Message) -> None:
        if m.position >> POSITION_SHIFT == self.segment_no and not m.damage:
            self.found.append((None, m.number))

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        for index in range(at, stop):
            if tail.positions[index] >> POSITION_SHIFT == self.segment_no and tail.numbers[index] > 0:
                self.found.append((tail, tail.numbers[index]))

    def step(self, most: int, size: int = CARRY_STEP_SIZE, rows: int = LIVE_STEP_COUNT) -> bool:
        """Scan up to `rows` messages, or carry up to `most` records and about `size` bytes; False when all are done."""
        if self.is_looking:
            self.is_looking = self.walk(rows)
            if self.is_looking:
                return True
        stored = self.state.stored
        cost_max = stored.read_cost + size
        while most > 0 and self.found and stored.read_cost < cost_max:
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
        position = 0
        accepted_ns = 0
        if tail is not None and at >= 0:
            position = tail.positions[at]
            accepted_ns = tail.accepted[at]
        elif m is not None and not m.damage:
            position = m.position
            accepted_ns = m.accepted_ns
        if position >> POSITION_SHIFT != self.segment_no:  # it has ended, or was carried already
            return True
        try:
            record = self.read(position, number, size)
        except RecordDamaged:
            self.quarantine.check(number)
            return True
        if not record:
            return False
        position = self.log.carried(record, accepted_ns)
        if tail is not None and at >= 0:
            tail.positions[at] = position
        elif m is not None:
            m.position = position
        return True

    def read(self, position: int, number: int, size: int) -> bytes:
        """The accepted record at a position; empty until all of it is read."""
        stored = self.state.stored
        load = self.load
        if load is None or self.load_position != position:
            record = stored.verify(position, number, 0)
            if len(record) == record_size(record, 0):
                return record[carried_at(record) :]
            self.load = stored.begin(position, number, True)
            self.load_position = position
            return b""
        stored.read_cost += size
        return load.taken() if load.step(size) else b""


@final
class DamageCheck(LiveWalk):
    """Reads the records in a damaged range of a segment and quarantines the messages whose records are damaged.

    It checks messages whose bodies are on disk only, in bounded steps. A message whose body is in memory is skipped: it can be delivered.
    """

    def __init__(self, state: State, quarantine: Quarantine, begin: int, end: int) -> None:
        """`begin` and `end`: positions (segment << 32 | offset)."""
        LiveWalk.__init__(self, state)
        self.quarantine = quarantine
        self.begin = begin
        self.end = end
        self.count: int = 0  # quarantined so far
        self.numbers: list[int] = []  # of messages whose records are to be read
        self.is_looking: bool = True

    def meet(self, m: Message) -> None:
        if self.begin <= m.position < self.end and not m.is_loaded:
            self.numbers.append(m.number)

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        for index in range(at, stop):
            if self.begin <= tail.positions[index] < self.end and tail.numbers[index] > 0:
                self.numbers.append(tail.numbers[index])

    def step(self, most: int, rows_most: int) -> bool:
        """Scan up to `rows_most` messages, then read up to `most` of the records found; False when all is done."""
        if self.is_looking and not self.numbers:
            self.is_looking = self.walk(rows_most)
        stored = self.state.stored
        cost_max = stored.read_cost + self.state.settings.load_step_size
        while self.numbers and most > 0 and stored.read_cost < cost_max:
            most -= 1
            if self.quarantine.check(self.numbers.pop()):
                self.count += 1
        return self.is_looking or bool(self.numbers)
