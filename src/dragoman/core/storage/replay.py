"""Recovery: applies the journal's facts in order, through the mutators that the live broker uses.

A salvaged journal lacks facts. A fact may then not fit the state of its message, and replay makes up the missing moves: a message is never
lost because one of its lease facts is. The name of a queue may be lost with its fact; its messages are then kept under a name made of its
number.
"""

from __future__ import annotations

from typing import final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.core.core import Core
from dragoman.core.lifecycle import LEASED as IS_LEASED
from dragoman.core.lifecycle import QUARANTINED as IS_QUARANTINED
from dragoman.core.lifecycle import WAITING as IS_WAITING
from dragoman.core.state.forgetting import on_queue_forgotten
from dragoman.core.state.queue import Queue
from dragoman.core.storage.checkpoint import CheckpointReader, read_schedule
from dragoman.core.storage.stored import complete
from dragoman.model.enums import BROKER_STARTED, DAMAGED, DRAINS
from dragoman.model.facts import fields, layout
from dragoman.model.facts.records import read_accepted
from dragoman.model.message import Message


@final
class Replay:
    """Rebuilds the state of a core from every block since the newest complete checkpoint."""

    def __init__(self, core: Core) -> None:
        self.core = core
        self.state = core.state
        self.checkpoint = CheckpointReader(core.state)
        self.facts: int = 0
        self.nameless: set[int] = set()  # queues whose names were lost in a salvage

    def block(self, records: bytes, position: int, time_ns: int) -> None:
        """Apply one block; `position`: of its first record."""
        self.core.set_time(time_ns)
        walk = fields.RecordWalk(records)
        while walk.step():
            at = walk.at
            kind = walk.kind
            if kind == layout.ACCEPTED:
                self.accepted(records, at, position)
            elif kind == layout.LEASED:
                self.leased(records, at)
            elif kind == layout.CLOSED:
                self.closed(records, at)
            elif kind == layout.RELEASED:
                self.released(records, at)
            elif kind == layout.CHECKPOINT:
                self.checkpoint.chunk(fields.checkpoint_chunk(records, at))
            elif kind == layout.CARRIED:
                self.carried(records, at, position)
            elif kind == layout.KEYED:
                self.state.ids.set_key(fields.keyed_key(records, at), fields.record_number(records, at))
            else:
                self.rare(records, at, kind)
        self.facts += walk.facts

    def accepted(self, records: bytes, at: i64, position: int) -> None:
        state = self.state
        queue = self.queue_of(fields.accepted_queue_no(records, at))
        m = read_accepted(records, at, queue.name, False)
        m.position = position + at
        state.on_accepted(m, queue)
        state.enqueue(m, queue)

    def carried(self, records: bytes, at: i64, position: int) -> None:
        """A message's record was copied out of an old segment: refer to the copy, and complete a message whose old record could not be read."""
        number: int = fields.accepted_message_no(records, at + layout.CARRIED_RECORD)
        self.state.move(number, position + at)
        m = self.state.messages.get(number)
        if m is not None and m.is_unreadable:
            complete(m, read_accepted(records, at + layout.CARRIED_RECORD, m.queue, False))
            m.damage = b""
            self.state.index(m)

    def leased(self, records: bytes, at: i64) -> None:
        m = self.state.take(fields.record_number(records, at))
        if m is not None:
            queue = self.state.queues_by_no[m.queue_no]
            if m.state != IS_WAITING:
                self.bring_back(m, queue)
            self.state.on_leased(m, queue, fields.leased_worker_no(records, at))

    def released(self, records: bytes, at: i64) -> None:
        reason = records[at + layout.RELEASED_REASON]
        if reason == BROKER_STARTED:
            return  # already applied with the `started` fact before it
        m = self.state.take(fields.record_number(records, at))
        if m is not None:
            is_death = records[at + layout.RELEASED_IS_DEATH] == 1
            worker_no: int = read_i64_le(records, at + layout.RELEASED_WORKER_NO) if is_death else 0
            queue = self.state.queues_by_no[m.queue_no]
            if m.state != IS_LEASED:
                self.lease_unseen(m, queue)
            retries_left: int = read_i32_le(records, at + layout.RELEASED_RETRIES_LEFT)
            due_ns: int = read_i64_le(records, at + layout.RELEASED_DUE_NS)
            self.state.on_released(m, queue, retries_left, due_ns, reason, worker_no)

    def closed(self, records: bytes, at: i64) -> None:
        m = self.state.take(fields.record_number(records, at))
        if m is not None:
            self.state.on_closed(m, self.state.queues_by_no[m.queue_no], fields.closed_outcome(records, at))

    def rare(self, records: bytes, at: i64, kind: i64) -> None:
        """Facts of the one shape `i64 number, i64 small, text`."""
        state = self.state
        number: int = fields.record_number(records, at)
        small: int = fields.record_small(records, at)
        text = fields.record_text(records, at)
        if kind == layout.STARTED:
            state.on_started(number)
        elif kind == layout.QUEUE_NAMED:
            self.queue_named(number, text)
        elif kind == layout.QUEUE_FORGOTTEN:
            queue = state.queues_by_no.get(number)
            if queue is not None:
                on_queue_forgotten(state, queue)
        elif kind == layout.WORKER_JOINED:
            if number >= state.next_number:
                state.next_number = number + 1
            state.serving_history.on_joined(number, text, state.queues, state.queues_by_no, state.now_ns)
        elif kind == layout.WORKER_LEFT:
            state.serving_history.on_left(number, small, state.queues_by_no, state.now_ns)
        elif kind == layout.DELIVERED:
            m = state.take(number)
            if m is not None:
                state.on_delivered(m)
        elif kind == layout.QUARANTINED or kind == layout.REQUEUED:
            m = state.take_unreadable(number) if kind == layout.QUARANTINED and small == DAMAGED else state.take(number)
            if m is not None:
                self.isolated(m, kind, small, text)
        elif kind == layout.PAUSED or kind == layout.RESUMED:
            state.on_paused(self.queue_of(number), kind == layout.PAUSED, kind == layout.RESUMED and small == DRAINS)
        elif kind == layout.SCHEDULED:
            self.scheduled(number, small, text)
        elif kind == layout.UNSCHEDULED:
            schedule = state.schedules.get(number)
            if schedule is not None:
                state.on_unscheduled(schedule)
        elif kind == layout.FIRED:
            schedule = state.schedules.get(number)
            if schedule is not None:
                next_due_ns: int = read_i64_le(records, at + layout.FIRED_NEXT_DUE_NS)
                state.on_fired(schedule, small, next_due_ns, fields.fired_runs_left(records, at))

    def isolated(self, m: Message, kind: i64, reason: int, text: bytes) -> None:
        queue = self.state.queues_by_no[m.queue_no]
        if kind == layout.QUARANTINED:
            if m.state != IS_LEASED and reason != DAMAGED:
                self.lease_unseen(m, queue)
            damage = fields.quarantined_damage(text) if reason == DAMAGED else b""
            self.state.on_quarantined(
                m, queue, reason, fields.quarantined_numbers(text)[layout.QUARANTINED_DIED_WITH], damage
            )
        elif m.state == IS_LEASED:
            self.bring_back(m, queue)
        else:
            self.state.on_requeued(m, queue)

    def scheduled(self, number: int, next_due_ns: int, text: bytes) -> None:
        self.queue_of(fields.accepted_queue_no(text, fields.template_at(text)))
        schedule = read_schedule(self.state, number, text)
        schedule.next_due_ns = next_due_ns
        self.state.on_scheduled(schedule)

    def queue_of(self, number: int) -> Queue:
        """The queue of this number; created under a made-up name if its name was lost."""
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
        self.nameless.discard(number)  # a later boot repeated its name
        del state.queues[queue.name]
        queue.name = name
        state.queues[name] = queue
        for m in state.messages.values():
            if m.queue_no == number:
                m.queue = name

    def bring_back(self, m: Message, queue: Queue) -> None:
        """Return a message to waiting: the fact that ended its lease or quarantine was lost."""
        if m.state == IS_QUARANTINED:
            self.state.on_requeued(m, queue)
        else:
            self.state.on_released(m, queue, m.retries_left, 0, BROKER_STARTED, 0)

    def lease_unseen(self, m: Message, queue: Queue) -> None:
        """Lease a message to an unknown worker: the fact that began its lease was lost."""
        if m.state == IS_QUARANTINED:
            self.state.on_requeued(m, queue)
        self.state.on_leased(m, queue, 0)
