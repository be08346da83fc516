"""The canonical encoding of the durable state, for checkpoints and to prove that a replay is exact; and the reader that restores the state from it.

A checkpoint is a sequence of chunks, each `u8 section, …` (little endian), in one fixed order:

    COUNTERS  i64 boot_no, i64 next_number, i64 accepted, i64 settled, i64 next_queue_no, and of forgotten queues i64 done, failed, released
              (checkpoints of older journals end after settled); and, where there is a key of ids (model/wire_ids), i64 first, key (16)
    QUEUE     i32 queue_no, u8 1 paused, 2 draining, i64 accepted, done, failed, released, wait_ns, wait_max_ns, name (the rest)
    KEYS      i32 queue_no, then per dedupe key: i64 message_no, i64 until_ns, u8 n, key (n)
    SCHEDULE  i64 schedule_no, i64 next_due_ns, i64 last_due_ns, i64 fired, i64 runs_left, text of its scheduled fact
    MESSAGE   one that was leased, delayed or quarantined: see `write_message`; section 5 (version 1) has no fields from `i64 number` to
              `damage`: the workers follow at once
    HOLDERS   per leased message: i64 message_no, i64 worker_no
    SERVES    i64 worker_no, then per queue it serves: i32 queue_no
    LEFT      per queue that a worker left: i32 queue_no, i64 left_ns, u8 reason
    USED      per queue: i32 queue_no, i64 used_ns
    LINE      i32 queue_no, u8 priority, u8 n, key of the line (n), i32 count, then five columns of i64: number, position (the
              record's segment << 32 | offset), accepted_ns, expires_ns, id hash: messages that have only waited, in order

Long KEYS, HOLDERS, LEFT, USED and LINE sections are split into several chunks. The same state always gives the same bytes, whichever
messages are in memory or on disk only. core/storage/snapshot walks the state in this order.
"""

from __future__ import annotations

from array import array
from struct import Struct
from typing import Final, final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.core.lifecycle import LEASED, QUARANTINED, WAITING
from dragoman.core.retries import count_death
from dragoman.core.state.lines import line_code
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.core.state.state import State
from dragoman.limits import CHECKPOINT_ROWS_MAX
from dragoman.model.facts import fields
from dragoman.model.facts.layout import BOOT_SHIFT, CHECKPOINT, CHECKPOINT_CHUNK, SCHEDULE_INTERVAL_NS, SCHEDULE_RUNS
from dragoman.model.facts.records import ANY_MESSAGE, read_accepted, schedule_text
from dragoman.model.message import POSITION_SHIFT, Message
from dragoman.model.wire_ids import KEY_SIZE, WireIds

COUNTERS: Final = 1
QUEUE: Final = 2
KEYS: Final = 3
SCHEDULE: Final = 4
MESSAGE_V1: Final = 5
LINE: Final = 6
HOLDERS: Final = 7
SERVES: Final = 8
LEFT: Final = 9
MESSAGE: Final = 10
USED: Final = 11

# The fields of each section as they are drawn above. Offsets count from the section's number, which is the first byte of a chunk.
FIELDS_AT: Final = 1
CHUNK_HEAD: Final = Struct("<IBB")  # size of the record, its kind, section
COUNTERS_FIELDS: Final = Struct("<4q")
LATER_COUNTERS_AT: Final = 33
LATER_COUNTERS: Final = Struct("<4q")
KEY_FIRST_AT: Final = 65
KEY_AT: Final = 73
QUEUE_FIELDS: Final = Struct("<iB6q")
QUEUE_NAME_AT: Final = 54
DEDUPE_FIELDS: Final = Struct("<qqB")
SCHEDULE_FIELDS: Final = Struct("<5q")
SCHEDULE_TEXT_AT: Final = 41
MESSAGE_FIELDS: Final = Struct("<qi4Bii4q")
LATER_FIELDS_AT: Final = 57  # of a message; in version 1 the workers follow here
LATER_FIELDS: Final = Struct("<qqBB")
DAMAGE_AT: Final = 75
HOLDER_ROW: Final = Struct("<qq")
LEFT_ROW: Final = Struct("<iqB")
USED_ROW: Final = Struct("<iq")
LINE_FIELDS: Final = Struct("<iBB2si")

# Offset of made-up message numbers among those of the boot that wrote the checkpoint: half of them, more than any boot has used.
NAMELESS: Final = 1 << BOOT_SHIFT - 1


def chunk(section: int, data: bytes) -> bytes:
    """A chunk as a record."""
    return CHUNK_HEAD.pack(CHUNK_HEAD.size + len(data), CHECKPOINT, section) + data


def write_counters(state: State) -> bytes:
    gone = state.forgotten
    data = COUNTERS_FIELDS.pack(state.boot_no, state.next_number, state.accepted, state.settled)
    data += LATER_COUNTERS.pack(state.next_queue_no, gone.done, gone.failed, gone.released)
    if state.ids.key:
        data += state.ids.first.to_bytes(8, "little") + state.ids.key
    return chunk(COUNTERS, data)


def write_queue(queue: Queue) -> bytes:
    mode = 1 if queue.is_paused else 2 if queue.is_draining else 0
    counts = (queue.accepted, queue.done, queue.failed, queue.released, queue.wait_ns, queue.wait_max_ns)
    return chunk(QUEUE, QUEUE_FIELDS.pack(queue.number, mode, *counts) + queue.name)


def write_keys(queue_no: int, keys: dict[bytes, tuple[int, int]], names: list[bytes]) -> bytes:
    parts = [queue_no.to_bytes(4, "little")]
    for key in names:
        number, until_ns = keys[key]
        parts.append(DEDUPE_FIELDS.pack(number, until_ns, len(key)))
        parts.append(key)
    return chunk(KEYS, b"".join(parts))


def write_schedule(schedule: Schedule) -> bytes:
    data = SCHEDULE_FIELDS.pack(
        schedule.number, schedule.next_due_ns, schedule.last_due_ns, schedule.fired, schedule.runs_left
    )
    return chunk(
        SCHEDULE, data + schedule_text(schedule.template, schedule.interval_ns, schedule.cron, schedule.runs_left)
    )


def write_message(m: Message, position: int) -> bytes:
    """`i64 position, i32 queue_no, u8 state, u8 last_reason, u8 is_answerable, u8 has_due, i32 attempt, i32 retries_left, i64
    due_ns, i64 accepted_ns, i64 first_leased_ns, i64 leased_ns, i64 number, i64 expires_ns, u8 priority, u8 n, damage (n),
    i64 worker_no of each worker that died with it`. Fields that the record at `position` has too are for the case that it is damaged."""
    has_due = m.state == WAITING and m.due_ns != 0
    codes = (m.state, m.last_reason, 1 if m.is_answerable else 0, 1 if has_due else 0)
    instants = (m.due_ns, m.accepted_ns, m.first_leased_ns, m.leased_ns)
    data = MESSAGE_FIELDS.pack(position, m.queue_no, *codes, m.attempt, m.retries_left, *instants)
    damage = m.damage if m.state == QUARANTINED else b""
    data += LATER_FIELDS.pack(m.number, m.expires_ns, m.priority, len(damage)) + damage
    return chunk(MESSAGE, data if m.died_with is None else data + array("q", m.died_with).tobytes())


def write_serves(worker_no: int, queue_nos: list[int]) -> bytes:
    return chunk(SERVES, worker_no.to_bytes(8, "little") + array("i", queue_nos).tobytes())


def write_line(code: int, columns: list[array[int]], count: int) -> bytes:
    """A LINE chunk of the first `count` rows; `code`: core/state/lines.code_of."""
    key = (code & 0xFFFF).to_bytes(2, "big")
    parts = [LINE_FIELDS.pack(code >> 24, code >> 16 & 0xFF, len(key), key, count)]
    parts.extend([column[:count].tobytes() for column in columns])
    return chunk(LINE, b"".join(parts))


def write_rows(section: int, row: Struct, rows: list[tuple[int, ...]], chunks: list[bytes]) -> None:
    """Add the chunks of a section of equal rows."""
    for start in range(0, len(rows), CHECKPOINT_ROWS_MAX):
        data = b"".join([row.pack(*values) for values in rows[start : start + CHECKPOINT_ROWS_MAX]])
        chunks.append(chunk(section, data))


@final
class CheckpointReader:
    """Fills an empty state from a checkpoint's chunks, in their order."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.nameless: int = 0
        self.segments: set[int] = set()  # journal segments it refers to: retained while it is the newest checkpoint

    def chunk(self, data: bytes) -> None:
        section = data[0]
        state = self.state
        if section == COUNTERS:
            self.counters(data)
        elif section == QUEUE:
            self.queue(data)
        elif section == KEYS:
            self.keys(data)
        elif section == SCHEDULE:
            self.schedule(data)
        elif section == MESSAGE or section == MESSAGE_V1:
            self.message(data, section == MESSAGE_V1)
        elif section == HOLDERS:
            for number, worker_no in HOLDER_ROW.iter_unpack(data[FIELDS_AT:]):
                m = state.messages.get(number)
                if m is not None:
                    m.worker_no = worker_no
        elif section == SERVES:
            state.serving_history.serves[read_i64_le(data, FIELDS_AT)] = list(array("i", data[FIELDS_AT + 8 :]))
        elif section == LEFT:
            for queue_no, left_ns, reason in LEFT_ROW.iter_unpack(data[FIELDS_AT:]):
                state.serving_history.left[queue_no] = (left_ns, reason)
        elif section == USED:
            for queue_no, used_ns in USED_ROW.iter_unpack(data[FIELDS_AT:]):
                state.queues_by_no[queue_no].used_ns = used_ns
        elif section == LINE:
            self.line(data)

    def counters(self, data: bytes) -> None:
        state = self.state
        gone = state.forgotten
        state.boot_no, state.next_number, state.accepted, state.settled = COUNTERS_FIELDS.unpack_from(data, FIELDS_AT)
        if len(data) > LATER_COUNTERS_AT:
            later = LATER_COUNTERS.unpack_from(data, LATER_COUNTERS_AT)
            state.next_queue_no, gone.done, gone.failed, gone.released = later
        read_key_of(data, state.ids)

    def queue(self, data: bytes) -> None:
        queue_no, mode, *counts = QUEUE_FIELDS.unpack_from(data, FIELDS_AT)
        queue = self.state.on_queue_named(queue_no, data[QUEUE_NAME_AT:])
        queue.is_paused = mode == 1
        queue.is_draining = mode == 2
        queue.accepted, queue.done, queue.failed, queue.released, queue.wait_ns, queue.wait_max_ns = counts

    def keys(self, data: bytes) -> None:
        queue = self.state.queues_by_no[read_i32_le(data, FIELDS_AT)]
        at: int = FIELDS_AT + 4
        while at < len(data):
            number, until_ns, size = DEDUPE_FIELDS.unpack_from(data, at)
            at += DEDUPE_FIELDS.size
            queue.dedupe[data[at : at + size]] = (number, until_ns)
            at += size

    def schedule(self, data: bytes) -> None:
        number, next_due_ns, last_due_ns, fired, runs_left = SCHEDULE_FIELDS.unpack_from(data, FIELDS_AT)
        schedule = read_schedule(self.state, number, data[SCHEDULE_TEXT_AT:])
        schedule.next_due_ns = next_due_ns
        schedule.last_due_ns = last_due_ns
        schedule.fired = fired
        schedule.runs_left = runs_left
        self.state.add_schedule(schedule)

    def message(self, data: bytes, is_old: bool) -> None:
        position, queue_no, kind, reason, is_answerable, _, *numbers = MESSAGE_FIELDS.unpack_from(data, FIELDS_AT)
        queue = self.state.queues_by_no[queue_no]
        self.segments.add(position >> POSITION_SHIFT)
        m = self.load_old(queue, position) if is_old else self.load(queue, position, data)
        m.last_reason = reason
        m.is_answerable = is_answerable == 1
        m.attempt, m.retries_left, m.due_ns, m.accepted_ns, m.first_leased_ns, m.leased_ns = numbers
        workers_at: i64 = LATER_FIELDS_AT if is_old else DAMAGE_AT + i64(data[DAMAGE_AT - 1])
        for worker_no in array("q", data[workers_at:]):
            count_death(m, worker_no)
        self.state.index(m)
        self.put(m, queue, kind)

    def load(self, queue: Queue, position: int, data: bytes) -> Message:
        """The message of a chunk; if its record is damaged, an unreadable one with what the chunk has. The damage that it was quarantined for stays."""
        number, expires_ns, priority, damage_size = LATER_FIELDS.unpack_from(data, LATER_FIELDS_AT)
        m = self.state.stored.read(queue, number, position, False)
        if m.is_unreadable:
            m.expires_ns = expires_ns
            m.priority = priority
        if damage_size != 0:
            m.damage = data[DAMAGE_AT : DAMAGE_AT + damage_size]
        return m

    def load_old(self, queue: Queue, position: int) -> Message:
        """The message of a chunk of version 1, which has no number: if its record is damaged, it gets a number that no message has."""
        m = self.state.stored.read(queue, ANY_MESSAGE, position, False)
        if m.is_unreadable:
            self.nameless += 1
            m.number = (self.state.boot_no << BOOT_SHIFT | NAMELESS) + self.nameless
        return m

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
        queue_no, priority, _, key, count = LINE_FIELDS.unpack_from(data, FIELDS_AT)
        queue = self.state.queues_by_no[queue_no]
        lane = queue.lane(priority)
        line = lane.line(key)
        tail = line.tail
        start = len(tail.numbers)
        at: int = FIELDS_AT + LINE_FIELDS.size
        for column in tail.columns():
            column.frombytes(data[at : at + count * 8])
            at += count * 8
        self.segments.update([position >> POSITION_SHIFT for position in tail.positions[start:]])
        tail.live += count
        queue.has_tails = True
        line.size += count
        queue.waiting += count
        if max(tail.expires[start:]) > 0:
            self.state.expiries.watch_tail(tail, start, line_code(queue.number, lane, line))


def queue_names(records: bytes, names: dict[int, bytes]) -> bool:
    """Collect the names of queues from one block of a checkpoint; False when no more of them follow."""
    walk = fields.RecordWalk(records)
    while walk.step():
        section = records[walk.at + CHECKPOINT_CHUNK]
        if section == QUEUE:
            data = fields.checkpoint_chunk(records, walk.at)
            names[read_i32_le(data, FIELDS_AT)] = data[QUEUE_NAME_AT:]
        elif section != COUNTERS and section != KEYS:
            return False
    return True


def read_key(records: bytes, ids: WireIds) -> None:
    """Read the key of ids from the first block of a checkpoint, which begins with COUNTERS."""
    data = fields.checkpoint_chunk(records, 0)
    if data[0] == COUNTERS:
        read_key_of(data, ids)


def read_key_of(counters: bytes, ids: WireIds) -> None:
    """Read the key of ids from a COUNTERS chunk; those of older checkpoints have none."""
    if len(counters) >= KEY_AT + KEY_SIZE:
        ids.set_key(counters[KEY_AT : KEY_AT + KEY_SIZE], read_i64_le(counters, KEY_FIRST_AT))


def read_schedule(state: State, number: int, text: bytes) -> Schedule:
    """Read a schedule from the text of its scheduled fact (model/facts/records.schedule_text)."""
    at = fields.template_at(text)
    queue = state.queues_by_no[fields.accepted_queue_no(text, at)]
    template = read_accepted(text, at, queue.name, True)
    interval_ns: int = read_i64_le(text, SCHEDULE_INTERVAL_NS)
    runs: int = read_i32_le(text, SCHEDULE_RUNS)
    return Schedule(number, template, interval_ns, fields.schedule_cron(text).decode(), runs)
