"""Encodes the durable state of one instant, in steps, while the state changes (copy on write).

`Snapshot` walks the state in the order of a checkpoint's chunks (core/storage/checkpoint draws them). While it is in progress,
`State.snapshot` refers to it, and mutators of messages, queues and schedules notify it before a change: what the walk has not reached yet is
copied first. The rest (which queues, schedules and workers there are) is copied at the beginning; tails record the rows removed from them. So the bytes are those of the state at the instant the snapshot began, however many steps it takes.

State that is in no section may change freely. Positions must not change: nothing is carried while a snapshot is in progress.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

from dragoman.core.lifecycle import LEASED, WAITING
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.core.state.state import State
from dragoman.core.storage import checkpoint
from dragoman.core.storage.line_rows import ALL, ROWS_PER_UNIT, LineRows
from dragoman.limits import CHECKPOINT_ROWS_MAX, CHECKPOINT_STEP_COUNT
from dragoman.model.message import POSITION_SHIFT, Message

# The phases of the walk, in order; each is finished before the next one begins.
QUEUES: Final = 0
SCHEDULES: Final = 1
ORDER: Final = 2  # sorts the messages by number
MESSAGES: Final = 3
WORKERS: Final = 4
QUEUES_LEFT: Final = 5
LINE_ORDER: Final = 6  # sorts the lines
LINES: Final = 7
DONE: Final = 8


def estimated_size(state: State) -> int:
    """Estimated size of a checkpoint of the current state, in bytes."""
    size = 1000 + len(state.messages) * 80 + len(state.schedules) * 500
    for queue in state.queues.values():
        size += 120 + queue.waiting * 40 + len(queue.dedupe) * 40
    return size


def encode(state: State, moved_position: Callable[[int], int] | None) -> list[bytes]:
    """The state as checkpoint records, all at once. `moved_position` maps positions that changed because a write to disk failed."""
    snapshot = Snapshot(state, moved_position, False)
    return snapshot.step(ALL)


@final
class Snapshot:
    """One walk over the state. `is_watching`: the state may change between steps; False for a walk in a single step."""

    def __init__(self, state: State, moved_position: Callable[[int], int] | None, is_watching: bool) -> None:
        self.state = state
        self.moved_position = moved_position
        self.is_watching = is_watching
        self.section: int = QUEUES
        self.chunks: list[bytes] = []
        self.units: int = 0  # units of work done in this step
        self.positions: set[int] = set()  # journal segments that MESSAGE chunks refer to
        self.last_no: int = state.next_number - 1  # messages with higher numbers are not included

        self.queues: list[Queue] = list(state.queues_by_no.values())
        self.queue_at: int = 0
        self.saved_queues: dict[int, tuple[bytes, int]] = {}
        self.saved_keys: dict[int, dict[bytes, tuple[int, int]]] = {}
        self.written_queues: set[int] = set()
        self.used: list[tuple[int, ...]] = []  # queue_no, used_ns
        self.keys: dict[bytes, tuple[int, int]] = {}  # of the queue whose keys are being written
        self.key_names: list[bytes] = []
        self.key_at: int = 0
        self.schedules: list[Schedule] = list(state.schedules.values())
        self.schedule_at: int = 0
        self.saved_schedules: dict[int, bytes] = {}
        self.numbers: list[int] = list(state.messages)
        self.number_at: int = 0
        self.cursor: int = -1  # messages up to this number are written
        self.saved: dict[int, Message] = {}
        self.holders: list[tuple[int, ...]] = []  # message_no, worker_no
        self.serves: dict[int, list[int]] = dict(state.serving_history.serves)
        self.left: dict[int, tuple[int, int]] = dict(state.serving_history.left)
        self.workers: list[int] = []
        self.worker_at: int = -1
        self.lines = LineRows(self.last_no, moved_position, is_watching)
        self.lines.watch(self.queues)
        self.chunks.append(checkpoint.write_counters(state))
        if is_watching:
            assert state.snapshot is None, "one at a time"
            state.snapshot = self

    @property
    def is_done(self) -> bool:
        return self.section == DONE

    def segments(self) -> set[int]:
        """The journal segments that its chunks refer to."""
        return self.positions | self.lines.segments

    def close(self) -> None:
        """Stop watching the state: the snapshot is complete or abandoned."""
        self.section = DONE
        if self.is_watching:
            self.state.snapshot = None
            self.lines.close()

    def step(self, units_max: int = CHECKPOINT_STEP_COUNT) -> list[bytes]:
        """The next chunks, after about `units_max` units of work. `is_done` is True after the last."""
        self.units = 0
        while self.units < units_max and self.section != DONE:
            self.walk_on()
        if self.section == DONE:
            self.close()
        chunks = self.chunks
        self.chunks = []
        return chunks

    def walk_on(self) -> None:
        section = self.section
        if section == QUEUES:
            is_over = self.next_queue()
        elif section == SCHEDULES:
            is_over = self.next_schedule()
        elif section == ORDER:
            self.numbers.sort()
            self.units += len(self.numbers) // ROWS_PER_UNIT
            is_over = True
        elif section == MESSAGES:
            is_over = self.next_message()
        elif section == WORKERS:
            is_over = self.next_worker()
        elif section == QUEUES_LEFT:
            self.write_left()
            is_over = True
        elif section == LINE_ORDER:
            self.units += self.lines.order()
            is_over = True
        else:
            self.units += self.lines.next_rows(self.chunks)
            is_over = self.lines.is_over
        if is_over:
            self.section += 1

    def before_accepted(self, m: Message, queue: Queue) -> None:
        self.before_queue(queue)
        number = queue.number
        if m.dedupe and self.section == QUEUES and number not in self.written_queues and number not in self.saved_keys:
            self.saved_keys[number] = dict(queue.dedupe)

    def before_moved(self, m: Message, queue: Queue) -> None:
        """A message is about to change its state, and its queue the counts."""
        self.before_queue(queue)
        number = m.number
        if self.cursor < number <= self.last_no and number not in self.saved:
            self.saved[number] = frozen(m)

    def before_queue(self, queue: Queue) -> None:
        number = queue.number
        if self.section == QUEUES and number not in self.written_queues and number not in self.saved_queues:
            self.saved_queues[number] = (checkpoint.write_queue(queue), queue.used_ns)

    def before_fired(self, schedule: Schedule) -> None:
        if self.section <= SCHEDULES and schedule.number not in self.saved_schedules:
            self.saved_schedules[schedule.number] = checkpoint.write_schedule(schedule)

    def next_queue(self) -> bool:
        if self.key_at < len(self.key_names):
            self.next_keys()
            return False
        if self.queue_at == len(self.queues):
            self.written_queues = set()
            return True
        queue = self.queues[self.queue_at]
        self.queue_at += 1
        self.units += 1
        number = queue.number
        saved = self.saved_queues.pop(number, None)
        self.chunks.append(saved[0] if saved is not None else checkpoint.write_queue(queue))
        self.used.append((number, saved[1] if saved is not None else queue.used_ns))
        keys = self.saved_keys.pop(number, None)
        if keys is None and queue.dedupe:
            keys = dict(queue.dedupe) if self.is_watching else queue.dedupe
        if keys:
            self.keys = keys
            self.key_names = list(keys)
            self.key_at = 0
        if self.is_watching:
            self.written_queues.add(number)
        return False

    def next_keys(self) -> None:
        start = self.key_at
        stop = min(start + CHECKPOINT_ROWS_MAX // 4, len(self.key_names))
        queue_no = self.queues[self.queue_at - 1].number
        self.chunks.append(checkpoint.write_keys(queue_no, self.keys, self.key_names[start:stop]))
        self.units += stop - start
        self.key_at = stop
        if stop == len(self.key_names):
            self.keys = {}
            self.key_names = []
            self.key_at = 0

    def next_schedule(self) -> bool:
        if self.schedule_at == len(self.schedules):
            self.saved_schedules = {}
            return True
        schedule = self.schedules[self.schedule_at]
        self.schedule_at += 1
        self.units += 4 + len(schedule.template.body) // 4096
        saved = self.saved_schedules.pop(schedule.number, None)
        self.chunks.append(saved if saved is not None else checkpoint.write_schedule(schedule))
        self.saved_schedules[schedule.number] = b""  # written: later changes need no copy
        return False

    def next_message(self) -> bool:
        if self.number_at == len(self.numbers):
            checkpoint.write_rows(checkpoint.HOLDERS, checkpoint.HOLDER_ROW, self.holders, self.chunks)
            self.units += 2 * len(self.holders) // ROWS_PER_UNIT
            self.holders = []
            self.cursor = ALL
            self.saved = {}
            return True
        number = self.numbers[self.number_at]
        self.number_at += 1
        self.units += 1
        saved = self.saved.pop(number, None)
        m = saved if saved is not None else self.state.messages[number]
        self.cursor = number
        if m.state == WAITING and m.attempt == 0 and m.due_ns == 0:
            self.lines.take(m)
            return False
        position = m.position if self.moved_position is None else self.moved_position(m.position)
        self.positions.add(position >> POSITION_SHIFT)
        self.chunks.append(checkpoint.write_message(m, position))
        if m.state == LEASED:
            self.holders.append((number, m.worker_no))
        return False

    def next_worker(self) -> bool:
        if self.worker_at < 0:
            self.workers = sorted(self.serves)
            self.worker_at = 0
        if self.worker_at == len(self.workers):
            return True
        worker_no = self.workers[self.worker_at]
        self.worker_at += 1
        queue_nos = self.serves[worker_no]
        self.units += 1 + len(queue_nos) // ROWS_PER_UNIT
        self.chunks.append(checkpoint.write_serves(worker_no, queue_nos))
        return False

    def write_left(self) -> None:
        left: list[tuple[int, ...]] = [(queue_no, *self.left[queue_no]) for queue_no in sorted(self.left)]
        checkpoint.write_rows(checkpoint.LEFT, checkpoint.LEFT_ROW, left, self.chunks)
        checkpoint.write_rows(checkpoint.USED, checkpoint.USED_ROW, self.used, self.chunks)
        self.units += (len(left) + 2 * len(self.used)) // 4


def frozen(m: Message) -> Message:
    """A copy of the fields of a message that a checkpoint holds."""
    copy = Message(m.dialect, m.queue, m.client_id, b"")
    copy.number = m.number
    copy.position = m.position
    copy.queue_no = m.queue_no
    copy.priority = m.priority
    copy.address = m.address
    copy.state = m.state
    copy.last_reason = m.last_reason
    copy.is_answerable = m.is_answerable
    copy.attempt = m.attempt
    copy.retries_left = m.retries_left
    copy.due_ns = m.due_ns
    copy.expires_ns = m.expires_ns
    copy.accepted_ns = m.accepted_ns
    copy.first_leased_ns = m.first_leased_ns
    copy.leased_ns = m.leased_ns
    copy.worker_no = m.worker_no
    copy.damage = m.damage
    copy.died_with = list(m.died_with) if m.died_with is not None else None
    return copy
