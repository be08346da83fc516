"""Recovery: the journal's facts, read in order, through the same mutators that wrote them.

A salvaged journal lacks facts. Then a fact may not fit the state its message is in, and the moves that must have come between are
made up: a message is never lost for the loss of one of its leases. The name of a queue may be lost with its fact; what waits in that queue
is kept under a name made of its number.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.core.checkpoint_reader import CheckpointReader, read_schedule, schedule_queue_no
from dragoman.core.core import Core
from dragoman.core.forgetting import on_queue_forgotten
from dragoman.core.kept import complete
from dragoman.core.lifecycle import LEASED as IS_LEASED
from dragoman.core.lifecycle import QUARANTINED as IS_QUARANTINED
from dragoman.core.lifecycle import WAITING as IS_WAITING
from dragoman.core.queue import Queue
from dragoman.model.message import Message
from dragoman.model.records import (
    ACCEPTED,
    CARRIED,
    CARRIED_FIXED,
    CHECKPOINT,
    CLOSED,
    DELIVERED,
    FIRED,
    KEYED,
    LEASED,
    PAUSED,
    QUARANTINED,
    QUEUE_FORGOTTEN,
    QUEUE_NAMED,
    RELEASED,
    REQUEUED,
    RESUMED,
    SCHEDULED,
    STARTED,
    UNSCHEDULED,
    WORKER_JOINED,
    WORKER_LEFT,
    read_accepted,
)
from dragoman.model.words import BROKER_STARTED, DAMAGED, DRAINS


@final
class Replay:
    """Feed it every block from the newest complete checkpoint on."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.state = core.state
        self.checkpoint = CheckpointReader(core.state)
        self.facts: int = 0
        self.nameless: set[int] = set()  # queues whose names a salvage lost

    def block(self, records: bytes, place: int, time_ns: int) -> None:
        """Apply one block; `place` is where its first record lies."""
        self.core.set_time(time_ns)
        at: i64 = 0
        end: i64 = len(records)
        while at < end:
            size = i64(read_i32_le(records, at))
            kind: i64 = records[at + 4]
            if kind == ACCEPTED:
                self.accepted(records, at, place)
            elif kind == LEASED:
                self.leased(records, at)
            elif kind == CLOSED:
                self.closed(records, at)
            elif kind == RELEASED:
                self.released(records, at)
            elif kind == CHECKPOINT:
                self.checkpoint.chunk(records[at + 5 : at + size])
            elif kind == CARRIED:
                self.carried(records, at, place)
            elif kind == KEYED:
                self.state.ids.set_key(records[at + 13 : at + size], read_i64_le(records, at + 5))
            else:
                self.rare(records, at, size, kind)
            if kind < CHECKPOINT:
                self.facts += 1
            at += size

    def accepted(self, records: bytes, at: i64, place: int) -> None:
        state = self.state
        queue = self.queue_of(read_i32_le(records, at + 16))
        m = read_accepted(records, at, queue.name, False)
        m.place = place + at
        state.on_accepted(m, queue)
        state.enqueue(m, queue)

    def carried(self, records: bytes, at: i64, place: int) -> None:
        """A waiting message was copied out of an old segment: it lives here now, also if nothing was left of it there."""
        number: int = read_i64_le(records, at + CARRIED_FIXED + 8)
        self.state.move(number, place + at)
        m = self.state.messages.get(number)
        if m is not None and m.is_bare:
            complete(m, read_accepted(records, at + CARRIED_FIXED, m.queue, False))
            m.damage = b""
            self.state.index(m)

    def leased(self, records: bytes, at: i64) -> None:
        m = self.state.take(read_i64_le(records, at + 5))
        if m is not None:
            queue = self.state.queues_by_no[m.queue_no]
            if m.state != IS_WAITING:
                self.bring_back(m, queue)
            self.state.on_leased(m, queue, read_i64_le(records, at + 13))

    def released(self, records: bytes, at: i64) -> None:
        if records[at + 37] == BROKER_STARTED:
            return  # part of the `started` fact before it
        m = self.state.take(read_i64_le(records, at + 5))
        if m is not None:
            worker_no = read_i64_le(records, at + 13) if records[at + 38] else 0
            queue = self.state.queues_by_no[m.queue_no]
            if m.state != IS_LEASED:
                self.lease_unseen(m, queue)
            self.state.on_released(
                m, queue, read_i32_le(records, at + 25), read_i64_le(records, at + 29), records[at + 37], worker_no
            )

    def closed(self, records: bytes, at: i64) -> None:
        m = self.state.take(read_i64_le(records, at + 5))
        if m is not None:
            self.state.on_closed(m, self.state.queues_by_no[m.queue_no], records[at + 69])

    def rare(self, records: bytes, at: i64, size: i64, kind: i64) -> None:
        """Facts of the one shape `i64 number, i64 small, text`."""
        state = self.state
        number: int = read_i64_le(records, at + 5)
        small: int = read_i64_le(records, at + 13)
        text = records[at + 21 : at + size]
        if kind == STARTED:
            state.on_started(number)
        elif kind == QUEUE_NAMED:
            self.queue_named(number, text)
        elif kind == QUEUE_FORGOTTEN:
            queue = state.queues_by_no.get(number)
            if queue is not None:
                on_queue_forgotten(state, queue)
        elif kind == WORKER_JOINED:
            if number >= state.next_number:
                state.next_number = number + 1
            state.attendance.on_joined(number, text, state.queues, state.queues_by_no, state.now_ns)
        elif kind == WORKER_LEFT:
            state.attendance.on_left(number, small, state.queues_by_no, state.now_ns)
        elif kind == DELIVERED:
            m = state.take(number)
            if m is not None:
                state.on_delivered(m)
        elif kind == QUARANTINED or kind == REQUEUED:
            m = state.take_bare(number) if kind == QUARANTINED and small == DAMAGED else state.take(number)
            if m is not None:
                self.isolated(m, kind, small, text)
        elif kind == PAUSED or kind == RESUMED:
            state.on_paused(self.queue_of(number), kind == PAUSED, kind == RESUMED and small == DRAINS)
        elif kind == SCHEDULED:
            self.scheduled(number, small, text)
        elif kind == UNSCHEDULED:
            schedule = state.schedules.get(number)
            if schedule is not None:
                state.on_unscheduled(schedule)
        elif kind == FIRED:
            schedule = state.schedules.get(number)
            if schedule is not None:
                state.on_fired(schedule, small, read_i64_le(text, 8), read_i64_le(text, 16))

    def isolated(self, m: Message, kind: i64, reason: int, text: bytes) -> None:
        queue = self.state.queues_by_no[m.queue_no]
        if kind == QUARANTINED:
            if m.state != IS_LEASED and reason != DAMAGED:
                self.lease_unseen(m, queue)
            damage = text.split(b" ", 7)[7] if reason == DAMAGED else b""
            self.state.on_quarantined(m, queue, reason, int(text.split()[0]), damage)
        elif m.state == IS_LEASED:
            self.bring_back(m, queue)
        else:
            self.state.on_requeued(m, queue)

    def scheduled(self, number: int, next_due_ns: int, text: bytes) -> None:
        self.queue_of(schedule_queue_no(text))
        schedule = read_schedule(self.state, number, text)
        schedule.next_due_ns = next_due_ns
        self.state.on_scheduled(schedule)

    # -- where a salvage left holes -------------------------------------------------------------------------------------

    def queue_of(self, number: int) -> Queue:
        """The queue of this number, under a name of its own where its name is lost."""
        queue = self.state.queues_by_no.get(number)
        if queue is None:
            queue = self.state.on_queue_named(number, b"name-lost-%d" % number)
            self.nameless.add(number)
        return queue

    def queue_named(self, number: int, name: bytes) -> None:
        state = self.state
        queue = state.on_queue_named(number, name)
        if number not in self.nameless or name in state.queues:
            return
        self.nameless.discard(number)  # a later boot names it
        del state.queues[queue.name]
        queue.name = name
        state.queues[name] = queue
        for m in state.messages.values():
            if m.queue_no == number:
                m.queue = name

    def bring_back(self, m: Message, queue: Queue) -> None:
        """The fact that ended a lease, or a quarantine, is lost: the message waits."""
        if m.state == IS_QUARANTINED:
            self.state.on_requeued(m, queue)
        else:
            self.state.on_released(m, queue, m.retries_left, 0, BROKER_STARTED, 0)

    def lease_unseen(self, m: Message, queue: Queue) -> None:
        """The fact that began a lease is lost: the message is leased, to a worker that nobody knows."""
        if m.state == IS_QUARANTINED:
            self.state.on_requeued(m, queue)
        self.state.on_leased(m, queue, 0)
