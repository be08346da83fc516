"""Restores the state from the chunks of a checkpoint (core/storage/checkpoint draws them)."""

from __future__ import annotations

from array import array
from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.core.lifecycle import LEASED, QUARANTINED
from dragoman.core.retries import count_death
from dragoman.core.state.lines import line_code
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.core.state.state import State
from dragoman.core.storage import checkpoint
from dragoman.model.facts import fields
from dragoman.model.facts.layout import BOOT_SHIFT, CHECKPOINT_CHUNK
from dragoman.model.facts.records import ANY_MESSAGE, read_accepted
from dragoman.model.message import Message
from dragoman.model.wire_ids import KEY_SIZE, WireIds

# Offsets in a COUNTERS chunk.
KEY_FIRST_AT: Final = 65
KEY_AT: Final = 73
# Offset of made-up message numbers among those of the boot that wrote the checkpoint: half of them, more than any boot has used.
NAMELESS: Final = 1 << BOOT_SHIFT - 1


@final
class CheckpointReader:
    """Fills an empty state from a checkpoint's chunks, in their order."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.nameless: int = 0
        self.segments: set[int] = set()  # journal segments it refers to: kept while it is the newest checkpoint

    def chunk(self, data: bytes) -> None:
        section = data[0]
        if section == checkpoint.COUNTERS:
            state = self.state
            state.boot_no = read_i64_le(data, 1)
            state.next_number = read_i64_le(data, 9)
            state.accepted = read_i64_le(data, 17)
            state.settled = read_i64_le(data, 25)
            if len(data) > 33:
                state.next_queue_no = read_i64_le(data, 33)
                state.forgotten.done = read_i64_le(data, 41)
                state.forgotten.failed = read_i64_le(data, 49)
                state.forgotten.released = read_i64_le(data, 57)
            if len(data) > KEY_FIRST_AT:
                state.ids.set_key(data[KEY_AT : KEY_AT + KEY_SIZE], read_i64_le(data, KEY_FIRST_AT))
        elif section == checkpoint.QUEUE:
            self.queue(data)
        elif section == checkpoint.KEYS:
            self.keys(data)
        elif section == checkpoint.SCHEDULE:
            self.schedule(data)
        elif section == checkpoint.MESSAGE or section == checkpoint.MESSAGE_V1:
            self.message(data, section == checkpoint.MESSAGE_V1)
        elif section == checkpoint.HOLDERS:
            self.holders(data)
        elif section == checkpoint.SERVES:
            self.serves(data)
        elif section == checkpoint.LEFT:
            self.left(data)
        elif section == checkpoint.USED:
            self.used(data)
        elif section == checkpoint.LINE:
            self.line(data)

    def queue(self, data: bytes) -> None:
        queue = self.state.on_queue_named(read_i32_le(data, 1), data[54:])
        queue.is_paused = data[5] == 1
        queue.is_draining = data[5] == 2
        queue.accepted = read_i64_le(data, 6)
        queue.done = read_i64_le(data, 14)
        queue.failed = read_i64_le(data, 22)
        queue.released = read_i64_le(data, 30)
        queue.wait_ns = read_i64_le(data, 38)
        queue.wait_max_ns = read_i64_le(data, 46)

    def keys(self, data: bytes) -> None:
        queue = self.state.queues_by_no[read_i32_le(data, 1)]
        at: i64 = 5
        while at < len(data):
            length: i64 = data[at + 16]
            key = data[at + 17 : at + 17 + length]
            queue.dedupe[key] = (read_i64_le(data, at), read_i64_le(data, at + 8))
            at += 17 + length

    def schedule(self, data: bytes) -> None:
        schedule = read_schedule(self.state, read_i64_le(data, 1), data[41:])
        schedule.next_due_ns = read_i64_le(data, 9)
        schedule.last_due_ns = read_i64_le(data, 17)
        schedule.fired = read_i64_le(data, 25)
        schedule.runs_left = read_i64_le(data, 33)
        self.state.add_schedule(schedule)

    def message(self, data: bytes, is_old: bool) -> None:
        state = self.state
        queue = state.queues_by_no[read_i32_le(data, 9)]
        place: int = read_i64_le(data, 1)
        self.segments.add(place >> 32)
        m = self.load_old(queue, place) if is_old else self.load(queue, place, data)
        m.last_reason = data[14]
        m.is_answerable = data[15] == 1
        m.attempt = read_i32_le(data, 17)
        m.retries_left = read_i32_le(data, 21)
        m.due_ns = read_i64_le(data, 25)
        m.accepted_ns = read_i64_le(data, 33)
        m.first_leased_ns = read_i64_le(data, 41)
        m.leased_ns = read_i64_le(data, 49)
        at: i64 = 57
        if not is_old:
            at = 75 + i64(data[74])
        while at < len(data):
            count_death(m, read_i64_le(data, at))
            at += 8
        state.index(m)
        self.put(m, queue, data[13])

    def load(self, queue: Queue, place: int, data: bytes) -> Message:
        """The message of a chunk; if its record is damaged, a bare one with what the chunk has. The damage that it was quarantined for is kept."""
        m = self.state.kept.read(queue, read_i64_le(data, 57), place, False)
        if m.is_bare:
            m.expires_ns = read_i64_le(data, 65)
            m.priority = data[73]
        if data[74] != 0:
            m.damage = data[75 : 75 + i64(data[74])]
        return m

    def load_old(self, queue: Queue, place: int) -> Message:
        """The message of a chunk of version 1, which has no number: if its record is damaged, it gets a number that no message has."""
        m = self.state.kept.read(queue, ANY_MESSAGE, place, False)
        if m.is_bare:
            self.nameless += 1
            m.number = (self.state.boot_no << BOOT_SHIFT | NAMELESS) + self.nameless
        return m

    def holders(self, data: bytes) -> None:
        at: i64 = 1
        while at < len(data):
            m = self.state.messages.get(read_i64_le(data, at))
            if m is not None:
                m.worker_no = read_i64_le(data, at + 8)
            at += 16

    def serves(self, data: bytes) -> None:
        queue_nos: list[int] = []
        at: i64 = 9
        while at < len(data):
            queue_nos.append(read_i32_le(data, at))
            at += 4
        self.state.attendance.serves[read_i64_le(data, 1)] = queue_nos

    def left(self, data: bytes) -> None:
        at: i64 = 1
        while at < len(data):
            self.state.attendance.left[read_i32_le(data, at)] = (read_i64_le(data, at + 4), data[at + 12])
            at += 13

    def used(self, data: bytes) -> None:
        at: i64 = 1
        while at < len(data):
            self.state.queues_by_no[read_i32_le(data, at)].used_ns = read_i64_le(data, at + 4)
            at += 12

    def put(self, m: Message, queue: Queue, kind: int) -> None:
        m.state = kind
        state = self.state
        if kind == LEASED:
            queue.leased += 1
        elif kind == QUARANTINED:
            queue.quarantined += 1
            state.quarantine[m.number] = m
        elif m.due_ns > state.now_ns:
            state.delay(m, queue)
        else:
            state.enqueue_returned(m, queue)
        if m.expires_ns != 0:
            state.expiries.watch(m.number, m.expires_ns)

    def line(self, data: bytes) -> None:
        queue = self.state.queues_by_no[read_i32_le(data, 1)]
        length: i64 = data[6]
        lane = queue.lane(data[5])
        line = lane.line(data[7 : 7 + length])
        count: int = read_i32_le(data, 7 + length)
        at: int = 11 + length
        width = count * 8
        tail = line.tail
        tail.numbers.frombytes(data[at : at + width])
        tail.places.frombytes(data[at + width : at + 2 * width])
        self.segments.update([place >> 32 for place in tail.places[len(tail.places) - count :]])
        tail.accepted.frombytes(data[at + 2 * width : at + 3 * width])
        expires: array[int] = array("q")
        expires.frombytes(data[at + 3 * width : at + 4 * width])
        tail.expires.extend(expires)
        tail.hashes.frombytes(data[at + 4 * width : at + 5 * width])
        tail.live += count
        queue.has_tails = True
        line.size += count
        queue.waiting += count
        if max(expires) > 0:
            start = len(tail.expires) - count
            code = line_code(queue.number, lane, line)
            for i in range(count):
                if expires[i] > 0:
                    self.state.expiries.watch(tail.numbers[start + i], expires[i])
                    self.state.expiries.watch_far(tail.numbers[start + i], code, expires[i])


def queue_names(records: bytes, names: dict[int, bytes]) -> bool:
    """Collect the names of queues from one block of a checkpoint; False when no more of them follow."""
    walk = fields.RecordWalk(records)
    while walk.step():
        section = records[walk.at + CHECKPOINT_CHUNK]
        if section == checkpoint.QUEUE:
            data = fields.checkpoint_chunk(records, walk.at)
            names[read_i32_le(data, 1)] = data[54:]
        elif section != checkpoint.COUNTERS and section != checkpoint.KEYS:
            return False
    return True


def read_key(records: bytes, ids: WireIds) -> None:
    """Read the key of ids from the first block of a checkpoint, which begins with COUNTERS; older checkpoints have none."""
    data = fields.checkpoint_chunk(records, 0)
    if len(data) >= KEY_AT + KEY_SIZE and data[0] == checkpoint.COUNTERS:
        ids.set_key(data[KEY_AT : KEY_AT + KEY_SIZE], read_i64_le(data, KEY_FIRST_AT))


def read_schedule(state: State, number: int, text: bytes) -> Schedule:
    """Read a schedule from the text of its scheduled fact (model/facts/records.schedule_text)."""
    at = fields.template_at(text)
    queue = state.queues_by_no[fields.accepted_queue_no(text, at)]
    template = read_accepted(text, at, queue.name, True)
    return Schedule(
        number,
        template,
        fields.schedule_interval_ns(text),
        fields.schedule_cron(text).decode(),
        fields.schedule_runs(text),
    )
