"""Which records of a block tell of a message: read at fixed offsets, so that a trace walks millions of facts in seconds."""

from __future__ import annotations

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.model.decode import CARRIED_AT
from dragoman.model.records import (
    ACCEPTED,
    ACCEPTED_FIXED,
    CARRIED,
    CHECKPOINT,
    CLOSED,
    DELIVERED,
    FIRED,
    LATE,
    LEASED,
    QUARANTINED,
    QUEUE_NAMED,
    RELEASED,
    REQUEUED,
    STARTED,
    WORKER_JOINED,
    WORKER_LEFT,
)


def find_mentions(records: bytes, numbers: set[int], client_id: bytes, found: list[tuple[int, int]]) -> None:
    """Fill `found` with the records of a block that tell of these messages: each one's offset, and how many facts come before it.

    An accepted (or carried) record with `client_id`, where that is not empty, adds its message to `numbers`. Facts that tell of
    other things are found too where a life may need them: starts of the broker, workers that join, names of queues, late
    answers."""
    at: i64 = 0
    end: i64 = len(records)
    ordinal = 0
    while at < end:
        kind: i64 = records[at + 4]
        if is_mention(records, at, kind, numbers, client_id):
            found.append((at, ordinal))
        if kind < CHECKPOINT:
            ordinal += 1
        at += i64(read_i32_le(records, at))


def is_mention(records: bytes, at: i64, kind: i64, numbers: set[int], client_id: bytes) -> bool:
    if kind == ACCEPTED:
        return mentions_accepted(records, at, numbers, client_id)
    if kind == LEASED or kind == CLOSED or kind == RELEASED or is_rarer_move(kind):
        return read_i64_le(records, at + 5) in numbers
    if kind == CARRIED:
        return mentions_accepted(records, at + CARRIED_AT, numbers, client_id)
    if kind == WORKER_LEFT:  # for whoever looks for a worker
        return read_i64_le(records, at + 5) in numbers
    if kind == FIRED:  # a schedule's message has no client id: it can only be looked for by number
        return read_i64_le(records, at + 21) in numbers
    return kind == STARTED or kind == WORKER_JOINED or kind == QUEUE_NAMED or kind == LATE


def is_rarer_move(kind: i64) -> bool:
    return kind == DELIVERED or kind == QUARANTINED or kind == REQUEUED


def mentions_accepted(records: bytes, at: i64, numbers: set[int], client_id: bytes) -> bool:
    number: int = read_i64_le(records, at + 8)
    if number in numbers:
        return True
    size: i64 = len(client_id)
    if size == 0 or records[at + 56] != size:
        return False
    start: i64 = at + ACCEPTED_FIXED
    if records[start : start + size] != client_id:
        return False
    numbers.add(number)
    return True
