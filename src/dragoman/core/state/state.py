"""The broker's state, and the mutators that change it.

Durable state (messages, schedules, dedupe keys, quarantine, pauses, counters) changes only in mutators named `on_<fact>`: below, in
`ServingHistory` (core/state/queue) and core/state/forgetting. A command decides, writes the fact and calls the mutator; recovery reads the fact
and calls the same mutator. Storage records have two more: `State.move` (carried) and `WireIds.set_key` (keyed). Session state
(peers, slots, routes) is not durable; it is in core/roster, core/routes and the peers.

`CoreSettings.bodies_max` and its neighbours limit the memory of open messages. Below the limits a message is entirely in memory. Above them,
large bodies are unloaded first, then all bodies that are not needed now; and fresh waiting messages become 40 bytes each in the tail of their
line (core/state/tail). Only what has a record in the journal is unloaded.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any, final

from mypy_extensions import i64

from dragoman import limits
from dragoman.core import lifecycle
from dragoman.core.retries import count_death
from dragoman.core.settings import CoreSettings
from dragoman.core.state.expiries import Expiries
from dragoman.core.state.lines import Lane, Line, line_code
from dragoman.core.state.queue import Queue, ServingHistory
from dragoman.core.state.schedule import Schedule
from dragoman.core.storage.stored import StoredRecords, TailRow, find_row
from dragoman.model.enums import HANDOVER_WANTED, NAMED_BY_CLIENT
from dragoman.model.facts.layout import BOOT_SHIFT
from dragoman.model.message import IN_DELAYED, NOWHERE, Message, is_own_id, own_digits
from dragoman.model.wire_ids import WireIds

if TYPE_CHECKING:
    from dragoman.core.storage.snapshot import Snapshot


@final
class State:
    """All durable state, and the in-memory index of it."""

    def __init__(self, settings: CoreSettings, stored: StoredRecords) -> None:
        self.settings = settings
        self.stored = stored
        self.now_ns: int = 0
        self.boot_no: int = 0
        self.started_ns: int = 0  # when this boot began: schedules due before were missed
        self.next_number: int = 1  # one counter for messages, workers and schedules
        self.queues: dict[bytes, Queue] = {}
        self.queues_by_no: dict[int, Queue] = {}
        # The queues found last by number and by name: one message is mostly followed by another of the same queue.
        self.recent: Queue | None = None
        self.recent_named: Queue | None = None
        self.recent_name: bytes = b""
        self.ids = WireIds()
        self.messages: dict[int, Message] = {}  # open messages in memory
        self.by_wire_id: dict[bytes, Message] = {}
        self.quarantine: dict[int, Message] = {}
        self.schedules: dict[int, Schedule] = {}
        self.schedules_by_key: dict[bytes, Schedule] = {}
        self.delayed: list[tuple[int, int]] = []  # heap of (due_ns, number)
        self.delayed_stale: int = 0  # entries of `delayed` whose message is no longer delayed
        self.expiries = Expiries()
        self.serving_history = ServingHistory()
        self.settled: int = 0
        self.accepted: int = 0
        self.next_queue_no: int = 1  # queue numbers are never reused
        self.forgotten = Queue(0, b"")  # the counts of forgotten queues: the broker's totals never decrease
        self.bodies_size: int = 0  # bytes of the bodies that open messages have in memory
        self.snapshot: Snapshot | None = None  # a checkpoint in progress: mutators notify it before a change

    def take_number(self) -> int:
        self.next_number += 1
        return self.next_number - 1

    def queue_of(self, number: int) -> Queue:
        queue = self.recent
        if queue is None or queue.number != number:
            queue = self.queues_by_no[number]
            self.recent = queue
        return queue

    def queue_named(self, name: bytes) -> Queue | None:
        queue = self.recent_named
        if queue is not None and (name is self.recent_name or name == self.recent_name):
            return queue
        queue = self.queues.get(name)
        if queue is not None:
            self.recent_named = queue
            self.recent_name = name
        return queue

    def on_started(self, boot_no: int) -> None:
        """All sessions ended with the previous boot: leased messages wait again, without using up a retry."""
        self.boot_no = boot_no
        self.started_ns = self.now_ns
        self.next_number = (boot_no << BOOT_SHIFT) + 1
        for m in self.messages.values():
            if m.attempt > 0 and m.flags & HANDOVER_WANTED:
                m.is_handed_over = True  # its client may have been notified, and must not be notified twice
        for m in lifecycle.leased_messages(self.messages):
            queue = self.queues_by_no[m.queue_no]
            m.state = lifecycle.moved(m.state, lifecycle.RELEASE)
            queue.leased -= 1
            self.enqueue_returned(m, queue)
        self.serving_history.on_started(self.queues_by_no, self.now_ns)

    def on_queue_named(self, number: int, name: bytes) -> Queue:
        if number in self.queues_by_no:
            return self.queues_by_no[number]  # each boot repeats the facts of all queues
        queue = Queue(number, name)
        queue.used_ns = self.now_ns
        self.next_queue_no = max(self.next_queue_no, number + 1)
        self.queues[name] = queue
        self.queues_by_no[number] = queue
        return queue

    def on_accepted(self, m: Message, queue: Queue) -> None:
        if self.snapshot is not None:
            self.snapshot.before_accepted(m, queue)
        m.state = lifecycle.WAITING
        m.accepted_ns = self.now_ns
        m.asked_due_ns = m.due_ns
        if m.number >= self.next_number:
            self.next_number = m.number + 1
        self.index(m)
        self.accepted += 1
        queue.accepted += 1
        queue.used_ns = self.now_ns
        if len(m.dedupe) > 0:
            until_ns = self.now_ns + self.settings.dedupe_window_ns
            queue.remember_key(m.dedupe, m.number, until_ns, self.settings.dedupe_keys_max)
        if m.expires_ns != 0:
            self.expiries.watch(m.number, m.expires_ns)

    def on_leased(self, m: Message, queue: Queue, worker_no: int) -> None:
        """Live, the message has left its line already; in a replay it leaves it here."""
        self.before_moved(m, queue)
        if m.where != NOWHERE:
            self.unline(m, queue)
        m.state = lifecycle.moved(m.state, lifecycle.LEASE)
        m.attempt += 1
        m.worker_no = worker_no
        m.leased_ns = self.now_ns
        m.delivered_ns = 0
        if m.first_leased_ns == 0:
            m.first_leased_ns = self.now_ns
            queue.count_wait(m)
        queue.leased += 1

    def before_moved(self, m: Message, queue: Queue) -> None:
        if self.snapshot is not None:
            self.snapshot.before_moved(m, queue)

    def on_delivered(self, m: Message) -> None:
        m.delivered_ns = self.now_ns

    def on_released(
        self, m: Message, queue: Queue, retries_left: int, due_ns: int, reason: int, died_with: int
    ) -> None:
        self.before_moved(m, queue)
        m.state = lifecycle.moved(m.state, lifecycle.RELEASE)
        m.retries_left = retries_left
        m.due_ns = due_ns
        m.last_reason = reason
        queue.leased -= 1
        queue.released += 1
        if died_with != 0:
            count_death(m, died_with)
        if due_ns > self.now_ns:
            self.delay(m, queue)
        else:
            self.enqueue_returned(m, queue)

    def on_closed(self, m: Message, queue: Queue, outcome: int) -> None:
        self.before_moved(m, queue)
        if m.state == lifecycle.LEASED:
            queue.leased -= 1
        elif m.state == lifecycle.QUARANTINED:
            del self.quarantine[m.number]
            queue.quarantined -= 1
        elif m.where != NOWHERE:
            self.unline(m, queue)
        assert outcome >= lifecycle.FIRST_END
        m.state = outcome
        queue.used_ns = self.now_ns
        self.unindex(m)
        self.settled += 1
        if m.expires_ns != 0 and self.expiries.settled(self.accepted - self.settled):
            self.expiries.watch_again(self.messages, self.queues)
        if outcome == lifecycle.FIRST_END:
            queue.done += 1
        else:
            queue.failed += 1

    def on_quarantined(self, m: Message, queue: Queue, reason: int, died_with: int, damage: bytes) -> None:
        """`damage`: why its record cannot be read; empty if that is not the reason."""
        self.before_moved(m, queue)
        if m.state == lifecycle.LEASED:
            queue.leased -= 1
        elif m.where != NOWHERE:
            self.unline(m, queue)
        m.state = lifecycle.moved(m.state, lifecycle.QUARANTINE)
        m.last_reason = reason
        m.damage = damage
        if died_with != 0:
            count_death(m, died_with)
        m.is_answerable = False
        queue.quarantined += 1
        self.quarantine[m.number] = m
        self.unload(m)

    def on_requeued(self, m: Message, queue: Queue) -> None:
        """Leave the quarantine, or a backoff that the operator ended early."""
        self.before_moved(m, queue)
        if m.state == lifecycle.QUARANTINED:
            m.state = lifecycle.moved(m.state, lifecycle.REQUEUE)
            m.died_with = None
            del self.quarantine[m.number]
            queue.quarantined -= 1
            if m.damage:
                self.is_sound(m)  # try the record again: it may be readable now
        else:
            self.unline(m, queue)
            m.due_ns = 0
        self.enqueue_returned(m, queue)

    def on_paused(self, queue: Queue, is_paused: bool, is_draining: bool) -> None:
        if self.snapshot is not None:
            self.snapshot.before_queue(queue)
        queue.is_paused = is_paused
        queue.is_draining = is_draining

    def on_scheduled(self, schedule: Schedule) -> None:
        earlier = self.schedules_by_key.get(schedule.template.dedupe)
        if earlier is not None:
            self.on_unscheduled(earlier)
        if schedule.number >= self.next_number:
            self.next_number = schedule.number + 1
        self.add_schedule(schedule)

    def add_schedule(self, schedule: Schedule) -> None:
        self.schedules[schedule.number] = schedule
        self.schedules_by_key[schedule.template.dedupe] = schedule
        self.queues_by_no[schedule.template.queue_no].schedules += 1

    def on_unscheduled(self, schedule: Schedule) -> None:
        del self.schedules[schedule.number]
        self.queues_by_no[schedule.template.queue_no].schedules -= 1
        if self.schedules_by_key.get(schedule.template.dedupe) is schedule:
            del self.schedules_by_key[schedule.template.dedupe]

    def on_fired(self, schedule: Schedule, due_ns: int, next_due_ns: int, runs_left: int) -> None:
        if self.snapshot is not None:
            self.snapshot.before_fired(schedule)
        schedule.had_its_turn(due_ns, next_due_ns, runs_left)

    def enqueue(self, m: Message, queue: Queue) -> None:
        """Put a fresh message into its line; beyond the head of the line only 40 bytes of it stay in memory."""
        if m.due_ns > self.now_ns:
            self.delay(m, queue)
            return
        if m.unfit != 0:
            self.enqueue_returned(m, queue)
            return
        queue.waiting += 1
        lane = queue.lane(m.priority)
        line = lane.line_of(m.address)
        if m.due_ns != 0:  # its delay is over: newer messages may be in the tail, whose numbers must ascend
            line.push_head(m)
        elif not line.push(m, 0 if self.is_crowded() else lane.head_max(self.settings.head_max)):
            self.unindex(m)
            queue.has_tails = True
            if m.expires_ns != 0:
                self.expiries.watch_far(m.number, line_code(queue.number, lane, line), m.expires_ns)
            return
        self.unload_if_short(m)

    def enqueue_returned(self, m: Message, queue: Queue) -> None:
        queue.waiting += 1
        lane = queue.unfit_lane(m.unfit, m.priority) if m.unfit != 0 else queue.lane(m.priority)
        lane.line_of(m.address).push_returned(m)
        self.unload_if_short(m)

    def delay(self, m: Message, queue: Queue) -> None:
        m.where = IN_DELAYED
        queue.delayed += 1
        heapq.heappush(self.delayed, (m.due_ns, m.number))
        if len(self.delayed) > self.settings.head_max:
            self.unload(m)
        else:
            self.unload_if_short(m)

    def undelay(self, m: Message, queue: Queue) -> None:
        m.where = NOWHERE
        queue.delayed -= 1

    def unline(self, m: Message, queue: Queue) -> None:
        """Remove a message from its line, or from the delayed ones."""
        if m.where == IN_DELAYED:
            self.undelay(m, queue)
            self.delayed_stale += 1
            if self.delayed_stale > limits.STALE_ENTRIES_MAX and self.delayed_stale * 2 > len(self.delayed):
                self.delayed_stale = 0
                self.delayed[:] = [entry for entry in self.delayed if self.is_delayed(entry)]
                heapq.heapify(self.delayed)
            return
        queue.waiting -= 1
        line = m.line
        assert isinstance(line, Line), "a message that waits stands in a line"
        line.remove(m)

    def is_delayed(self, entry: tuple[int, int]) -> bool:
        """Whether an entry of the `delayed` heap is still valid."""
        m = self.messages.get(entry[1])
        return m is not None and m.where == IN_DELAYED and m.due_ns == entry[0]

    def take(self, number: int) -> Message | None:
        """The open message of this number; one in a tail is loaded into memory, at the returned end of its line."""
        m = self.messages.get(number)
        if m is not None:
            return m
        row = find_row(self.queues, number)
        return self.take_row(row) if row is not None else None

    def take_unreadable(self, number: int) -> Message | None:
        """The open message of this number, whose record was found damaged: the record is not read, even if it is readable now."""
        m = self.messages.get(number)
        if m is not None:
            return m
        row = find_row(self.queues, number)
        return self.take_out(row.line, row.at, self.stored.unreadable_row(row)) if row is not None else None

    def move(self, number: int, position: int) -> None:
        """Set the new position of the record of a message that was carried."""
        m = self.messages.get(number)
        if m is not None:
            m.position = position
            return
        row = find_row(self.queues, number)
        if row is not None:
            row.line.tail.positions[row.at] = position

    def take_row(self, row: TailRow) -> Message:
        return self.take_out(row.line, row.at, self.stored.read_row(row.queue, row.lane, row.line, row.at, False))

    def take_out(self, line: Line, at: int, m: Message) -> Message:
        """Move a message from a tail to the returned end of its line, in memory."""
        self.index(m)
        line.tail.remove(at)
        line.size -= 1
        line.push_returned(m)
        return m

    def index(self, m: Message) -> None:
        """Index an open message. In a dialect whose clients name their messages, that id is also its id towards workers, unless it is in use or
        looks like one of ours."""
        key: Any = m.number
        m.key = key
        self.messages[key] = m
        if m.is_loaded:
            self.bodies_size += m.body_size
        if NAMED_BY_CLIENT >> i64(m.dialect) & 1 and len(m.client_id) > 0 and not is_own_id(m.client_id):
            if self.by_wire_id.setdefault(m.client_id, m) is m:
                m.wire_id = m.client_id
                m.is_named = True

    def unindex(self, m: Message) -> None:
        del self.messages[m.key]
        if m.is_loaded:
            self.bodies_size -= m.body_size
        if m.is_named:
            m.is_named = False
            del self.by_wire_id[m.wire_id]

    def find(self, wire_id: bytes) -> Message | None:
        """The open message in memory with this id towards workers."""
        m = self.by_wire_id.get(wire_id)
        if m is None:
            m = self.ids.find(self.messages, own_digits(wire_id), 0, None)
            if m is not None and m.is_named:
                return None  # its id is the one its client gave
        return m

    def unload(self, m: Message) -> None:
        """Drop a body from memory; it stays on disk."""
        if m.position != 0 and m.is_loaded:
            m.body = b""
            m.is_loaded = False
            self.bodies_size -= m.body_size

    def is_sound(self, m: Message) -> bool:
        """Whether its record can be read; if not, `m.damage` says why."""
        was_bare = m.is_unreadable
        is_sound = self.stored.is_sound(m)
        if was_bare and is_sound:
            self.index(m)
        return is_sound

    def ensure_body(self, m: Message) -> bool:
        """Load a body if it is on disk only; False when its record is damaged: `m.damage` says how."""
        if m.is_loaded:
            return True
        was_bare = m.is_unreadable
        if not self.stored.load_body(m):
            return False
        if was_bare:
            self.index(m)
        elif m.number in self.messages:  # the body of a message that just ended may still be read
            self.bodies_size += m.body_size
        return True

    def is_crowded(self) -> bool:
        """Whether fresh waiting messages go to disk only."""
        return self.bodies_size > self.settings.bodies_max or len(self.messages) > self.settings.objects_max

    def unload_if_short(self, m: Message) -> None:
        """Unload a body that is not needed now if memory is short: a large body sooner than a small one."""
        size = self.bodies_size
        settings = self.settings
        if size > settings.large_bodies_max:
            if size > settings.bodies_max or m.body_size > limits.INLINE_BODY_SIZE_MAX:
                self.unload(m)

    def refill(self, queue: Queue, lane: Lane, line: Line) -> None:
        """Load the next messages of a line from disk: as many as the limits allow, at least the one that is about to be leased. Small bodies are
        loaded with them. A message with a large body ends the batch, because verifying its CRC takes long; the body itself is read in steps when
        the message is next (core/dispatch)."""
        tail = line.tail
        settings = self.settings
        room = max(settings.objects_max - len(self.messages), 1)
        count = min(limits.REFILL_COUNT, lane.head_max(settings.head_max), room)
        size = min(limits.REFILL_SIZE, max(settings.bodies_max - self.bodies_size, 1))
        while count > 0 and size > 0:
            at = tail.pop()
            if at < 0:
                break
            m = self.stored.read_row(queue, lane, line, at, True)
            self.index(m)
            line.size -= 1
            line.push_head(m)
            count -= 1
            size = size - m.body_size if m.is_loaded else 0
        tail.cut()

    def memory_size(self) -> i64:
        """Estimated memory of all open messages: bodies, objects, and 40 bytes for each that is on disk only."""
        objects: i64 = len(self.messages)
        open_messages: i64 = i64(self.accepted) - i64(self.settled)
        objects_size: i64 = objects * (limits.MESSAGE_SIZE - limits.TAIL_ENTRY_SIZE)
        return i64(self.bodies_size) + objects_size + open_messages * limits.TAIL_ENTRY_SIZE
