"""The canonical encoding of the durable state: for checkpoints, and to prove that a replay is exact.

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
    LINE      i32 queue_no, u8 priority, u8 n, key of the line (n), i32 count, then five columns of i64: number, place (the
              record's segment << 32 | offset), accepted_ns, expires_ns, id hash: messages that have only waited, in order

Long KEYS, HOLDERS, LEFT, USED and LINE sections are split into several chunks. The same state always gives the same bytes, whichever
messages are in memory or on disk only. core/storage/snapshot walks the state in this order.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Final

from librt.strings import BytesWriter, write_i32_le, write_i64_le

from dragoman.core.lifecycle import QUARANTINED, WAITING
from dragoman.core.state.queue import Queue
from dragoman.core.state.schedule import Schedule
from dragoman.model.facts.layout import CHECKPOINT
from dragoman.model.facts.records import schedule_text
from dragoman.model.message import Message

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


def chunk(section: int) -> BytesWriter:
    out = BytesWriter()
    write_i32_le(out, 0)
    out.append(CHECKPOINT)
    out.append(section)
    return out


def finish(out: BytesWriter, chunks: list[bytes]) -> None:
    """Fill in the size of a chunk and add it to `chunks`."""
    size = len(out)
    record = out.getvalue()
    chunks.append(int(size).to_bytes(4, "little") + record[4:])


def write_queue(queue: Queue) -> bytes:
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
    chunks: list[bytes] = []
    finish(out, chunks)
    return chunks[0]


def write_keys(queue_no: int, keys: dict[bytes, tuple[int, int]], names: list[bytes], chunks: list[bytes]) -> None:
    out = chunk(KEYS)
    write_i32_le(out, queue_no)
    for key in names:
        known = keys[key]
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
    i64 worker_no of each worker that died with it`. Fields that the record at `place` has too are for the case that it is damaged."""
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


def write_rows(code: int, columns: list[array[int]], count: int, chunks: list[bytes]) -> None:
    """Write a LINE chunk of the first `count` rows; `code`: core/state/lines.code_of."""
    out = chunk(LINE)
    write_i32_le(out, code >> 24)
    out.append(code >> 16 & 0xFF)
    out.append(2)
    out.write((code & 0xFFFF).to_bytes(2, "big"))
    write_i32_le(out, count)
    for column in columns:
        out.write(column[:count].tobytes())
    finish(out, chunks)


def write_used(used: list[int], chunks: list[bytes]) -> None:
    """Write a USED chunk; `used`: queue_no, used_ns, queue_no, used_ns, …"""
    out = chunk(USED)
    for at in range(0, len(used), 2):
        write_i32_le(out, used[at])
        write_i64_le(out, used[at + 1])
    finish(out, chunks)
