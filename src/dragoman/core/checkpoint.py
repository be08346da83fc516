"""The canonical encoding of the durable state: what a checkpoint holds, and what proves that a replay is exact.

A checkpoint is a run of chunks, each `u8 section, …` (little endian), in one fixed order:

    COUNTERS  i64 boot_no, i64 next_number, i64 accepted, i64 settled, i64 next_queue_no, and of forgotten queues i64 done, failed, released
              (checkpoints of older journals end after settled); and, where there is a key of ids (model/wire_ids), i64 first, key (16)
    QUEUE     i32 queue_no, u8 1 paused, 2 draining, i64 accepted, done, failed, released, wait_ns, wait_max_ns, name (the rest)
    KEYS      i32 queue_no, then per dedupe key: i64 message_no, i64 until_ns, u8 n, key (n)
    SCHEDULE  i64 schedule_no, i64 next_due_ns, i64 last_due_ns, i64 fired, i64 runs_left, text of its scheduled fact
    MESSAGE   one that something has happened to: see `write_message`; section 5, of version 1, ends before its `i64 number` and goes
              on with the workers
    HOLDERS   per leased message: i64 message_no, i64 worker_no
    SERVES    i64 worker_no, then per queue it serves: i32 queue_no
    LEFT      per queue that a worker left: i32 queue_no, i64 when, u8 reason
    USED      per queue: i32 queue_no, i64 when it was last used
    LINE      i32 queue_no, u8 priority, u8 n, key of the line (n), i32 count, then five columns of i64: number, place, accepted_ns,
              expires_ns, id hash: messages that have only waited, in order

The same state always gives the same bytes, whatever is in memory and whatever is on disk only.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from dragoman.core.attendance import Attendance
from dragoman.core.held import held_messages
from dragoman.core.lifecycle import QUARANTINED, WAITING
from dragoman.core.lines import line_key
from dragoman.core.queue import Queue
from dragoman.core.schedule import Schedule
from dragoman.core.state import State
from dragoman.core.tail import Tail, id_hash
from dragoman.limits import CHECKPOINT_ROWS_MAX
from dragoman.model.message import Message
from dragoman.model.records import CHECKPOINT
from dragoman.model.texts import schedule_text

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


def estimated_size(state: State) -> int:
    """About how many bytes a checkpoint would take now."""
    size = 1000 + len(state.messages) * 80 + len(state.schedules) * 500
    for queue in state.queues.values():
        size += 120 + queue.waiting * 40 + len(queue.dedupe) * 40
    return size


def encode(state: State, moved_place: Callable[[int], int] | None) -> list[bytes]:
    """The state as checkpoint records. `moved_place` tells where a place lies now, if a failed disk has moved any."""
    chunks: list[bytes] = []
    out = chunk(COUNTERS)
    write_i64_le(out, state.boot_no)
    write_i64_le(out, state.next_number)
    write_i64_le(out, state.accepted)
    write_i64_le(out, state.settled)
    write_i64_le(out, state.next_queue_no)
    write_i64_le(out, state.forgotten.done)
    write_i64_le(out, state.forgotten.failed)
    write_i64_le(out, state.forgotten.released)
    if state.ids.key:
        write_i64_le(out, state.ids.first)
        out.write(state.ids.key)
    finish(out, chunks)
    for queue in state.queues_by_no.values():
        write_queue(queue, chunks)
    for schedule in state.schedules.values():
        write_schedule(schedule, chunks)
    pristine: dict[tuple[int, int, bytes], list[Message]] = {}
    for number in sorted(state.messages):
        m = state.messages[number]
        if m.state == WAITING and m.attempt == 0 and m.due_ns == 0:
            key = (m.queue_no, m.priority, line_key(m.address))
            if key in pristine:
                pristine[key].append(m)
            else:
                pristine[key] = [m]
        else:
            write_message(m, moved_place, chunks)
    write_holders(held_messages(state.messages), chunks)
    write_attendance(state.attendance, chunks)
    write_used(state, chunks)
    tails = all_tails(state)
    for key in sorted(set(pristine) | set(tails)):
        write_line(key, pristine.get(key, []), tails.get(key), moved_place, chunks)
    return chunks


def chunk(section: int) -> BytesWriter:
    out = BytesWriter()
    write_i32_le(out, 0)
    out.append(CHECKPOINT)
    out.append(section)
    return out


def finish(out: BytesWriter, chunks: list[bytes]) -> None:
    """The size goes in front once it is known."""
    size = len(out)
    record = out.getvalue()
    chunks.append(int(size).to_bytes(4, "little") + record[4:])


def write_queue(queue: Queue, chunks: list[bytes]) -> None:
    out = chunk(QUEUE)
    write_i32_le(out, queue.number)
    out.append(1 if queue.is_paused else 2 if queue.is_draining else 0)
    write_i64_le(out, queue.accepted)
    write_i64_le(out, queue.done)
    write_i64_le(out, queue.failed)
    write_i64_le(out, queue.released)
    write_i64_le(out, queue.wait_ns)
    write_i64_le(out, queue.wait_max_ns)
    out.write(queue.name)
    finish(out, chunks)
    if queue.dedupe:
        out = chunk(KEYS)
        write_i32_le(out, queue.number)
        for key, known in queue.dedupe.items():
            write_i64_le(out, known[0])
            write_i64_le(out, known[1])
            out.append(len(key))
            out.write(key)
        finish(out, chunks)


def write_schedule(schedule: Schedule, chunks: list[bytes]) -> None:
    out = chunk(SCHEDULE)
    write_i64_le(out, schedule.number)
    write_i64_le(out, schedule.next_due_ns)
    write_i64_le(out, schedule.last_due_ns)
    write_i64_le(out, schedule.fired)
    write_i64_le(out, schedule.runs_left)
    out.write(schedule_text(schedule.template, schedule.interval_ns, schedule.cron, schedule.runs_left))
    finish(out, chunks)


def write_message(m: Message, moved_place: Callable[[int], int] | None, chunks: list[bytes]) -> None:
    """`i64 place, i32 queue_no, u8 state, u8 last_reason, u8 is_answerable, u8 has_due, i32 attempt, i32 retries_left, i64
    due_ns, i64 accepted_ns, i64 first_leased_ns, i64 leased_ns, i64 number, i64 expires_ns, u8 priority, u8 n, damage (n),
    i64 worker_no of each worker that died with it`. What the record at its place knows, too, is for when that is damaged."""
    out = chunk(MESSAGE)
    write_i64_le(out, m.place if moved_place is None else moved_place(m.place))
    write_i32_le(out, m.queue_no)
    out.append(m.state)
    out.append(m.last_reason)
    out.append(1 if m.is_answerable else 0)
    out.append(1 if m.state == WAITING and m.due_ns != 0 else 0)
    write_i32_le(out, m.attempt)
    write_i32_le(out, m.retries_left)
    write_i64_le(out, m.due_ns)
    write_i64_le(out, m.accepted_ns)
    write_i64_le(out, m.first_leased_ns)
    write_i64_le(out, m.leased_ns)
    write_i64_le(out, m.number)
    write_i64_le(out, m.expires_ns)
    out.append(m.priority)
    damage = m.damage if m.state == QUARANTINED else b""
    out.append(len(damage))
    out.write(damage)
    if m.died_with is not None:
        for worker_no in m.died_with:
            write_i64_le(out, worker_no)
    finish(out, chunks)


def write_holders(held: list[Message], chunks: list[bytes]) -> None:
    if not held:
        return
    out = chunk(HOLDERS)
    for m in held:
        write_i64_le(out, m.number)
        write_i64_le(out, m.worker_no)
    finish(out, chunks)


def write_attendance(attendance: Attendance, chunks: list[bytes]) -> None:
    for worker_no in sorted(attendance.serves):
        out = chunk(SERVES)
        write_i64_le(out, worker_no)
        for queue_no in attendance.serves[worker_no]:
            write_i32_le(out, queue_no)
        finish(out, chunks)
    if attendance.left:
        out = chunk(LEFT)
        for queue_no in sorted(attendance.left):
            left = attendance.left[queue_no]
            write_i32_le(out, queue_no)
            write_i64_le(out, left[0])
            out.append(left[1])
        finish(out, chunks)


def write_used(state: State, chunks: list[bytes]) -> None:
    if not state.queues_by_no:
        return
    out = chunk(USED)
    for queue in state.queues_by_no.values():
        write_i32_le(out, queue.number)
        write_i64_le(out, queue.used_ns)
    finish(out, chunks)


def all_tails(state: State) -> dict[tuple[int, int, bytes], Tail]:
    tails: dict[tuple[int, int, bytes], Tail] = {}
    for queue in state.queues.values():
        for lane in queue.lanes:
            for line in lane.lines.values():
                if line.tail.live > 0:
                    tails[(queue.number, lane.priority, line.key)] = line.tail
    return tails


def write_line(
    key: tuple[int, int, bytes],
    objects: list[Message],
    tail: Tail | None,
    moved_place: Callable[[int], int] | None,
    chunks: list[bytes],
) -> None:
    columns = line_columns(objects, tail)
    places = columns[1]
    count = len(places)
    if moved_place is not None:
        for at in range(count):
            places[at] = moved_place(places[at])
    for start in range(0, count, CHECKPOINT_ROWS_MAX):
        stop = min(start + CHECKPOINT_ROWS_MAX, count)
        out = chunk(LINE)
        write_i32_le(out, key[0])
        out.append(key[1])
        out.append(len(key[2]))
        out.write(key[2])
        write_i32_le(out, stop - start)
        for column in columns:
            out.write(column[start:stop].tobytes())
        finish(out, chunks)


def line_columns(objects: list[Message], tail: Tail | None) -> list[array[int]]:
    """A line's waiting messages, those in memory and those on disk, by number: the five columns of a LINE."""
    columns: list[array[int]] = [array("q"), array("q"), array("q"), array("q"), array("q")]
    if tail is None:
        for m in objects:
            add_row(columns, m)
        return columns
    at = tail.head
    end = len(tail.numbers)
    for m in objects:
        while at < end and abs(tail.numbers[at]) < m.number:
            add_tail_row(columns, tail, at)
            at += 1
        add_row(columns, m)
    if tail.live == end - tail.head:  # nobody left the middle: the rest is copied whole
        columns[0].extend(tail.numbers[at:])
        columns[1].extend(tail.places[at:])
        columns[2].extend(tail.accepted[at:])
        columns[3].extend(tail.expires[at:])
        columns[4].extend(tail.hashes[at:])
    else:
        while at < end:
            add_tail_row(columns, tail, at)
            at += 1
    return columns


def add_row(columns: list[array[int]], m: Message) -> None:
    columns[0].append(m.number)
    columns[1].append(m.place)
    columns[2].append(m.accepted_ns)
    columns[3].append(m.expires_ns)
    columns[4].append(id_hash(m.client_id))


def add_tail_row(columns: list[array[int]], tail: Tail, at: int) -> None:
    if tail.numbers[at] > 0:
        columns[0].append(tail.numbers[at])
        columns[1].append(tail.places[at])
        columns[2].append(tail.accepted[at])
        columns[3].append(tail.expires[at])
        columns[4].append(tail.hashes[at])
