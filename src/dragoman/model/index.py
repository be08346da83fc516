"""What a journal's index is made of: of every record that a life may be told from, a key, and the block that holds it.

An entry is one number, `key << 32 | offset of the block's header in its segment`, so that sorted entries are sorted by key. A key has 30
bits: entries stay machine words here, and two things that share a key cost a reader one block it did not need, never an answer, for
what an index names is read and looked at.

Messages, workers and schedules share one counter, so that one kind of key serves them all; queues have small numbers of their own, and a
start of the broker is number 0. A client's id, and the id that a late answer named, is a hash.
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i64_le
from mypy_extensions import i64

from dragoman.model.decode import CARRIED_AT, shown
from dragoman.model.records import (
    ACCEPTED,
    ACCEPTED_FIXED,
    CARRIED,
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
)

OFFSET_BITS: Final = 32
KEY_MASK: Final = 0x3FFFFFFF
BOOT_SHIFT: Final = 40
# Numbers of two boots begin alike: this spreads the boots. An odd number near 2**32 divided by the golden ratio.
BOOT_SPREAD: Final = 0x9E3779B1
NUMBER_MAX: Final = (1 << 63) - 1  # no record holds a larger one


def number_key(number: i64) -> i64:
    """The key of a message's, worker's, schedule's or queue's number."""
    return (number ^ (number >> BOOT_SHIFT) * BOOT_SPREAD) & KEY_MASK


def packed(entries: list[int]) -> bytes:
    """Entries as they lie in a file: sorted, each once, eight bytes little endian."""
    entries.sort()
    out = BytesWriter()
    before: i64 = -1
    for entry in entries:
        number: i64 = entry
        if number != before:
            write_i64_le(out, number)
        before = number
    return out.getvalue()


def id_key(text: bytes) -> i64:
    """The key of a client's id, by the first four of the eight bytes of its BLAKE2b."""
    return i64(read_i32_le(blake2b(text, digest_size=8).digest(), 0)) & KEY_MASK


def index_block(records: bytes, offset: i64, entries: list[int]) -> None:
    """Add the entries of one block, whose header lies at `offset`."""
    at: i64 = 0
    end: i64 = len(records)
    while at < end:
        kind: i64 = records[at + 4]
        if kind == ACCEPTED:
            index_accepted(records, at, offset, entries)
        elif kind == LEASED or kind == CLOSED or kind == RELEASED or is_numbered(kind):
            entries.append(number_key(read_i64_le(records, at + 5)) << OFFSET_BITS | offset)
        elif kind == CARRIED:
            index_accepted(records, at + CARRIED_AT, offset, entries)
        else:
            index_rarer(records, at, kind, offset, entries)
        at += i64(read_i32_le(records, at))


def is_numbered(kind: i64) -> bool:
    """Whether a rarer record is found by its first number."""
    if kind == DELIVERED or kind == QUARANTINED or kind == REQUEUED:
        return True
    return kind == WORKER_JOINED or kind == QUEUE_NAMED


def index_accepted(records: bytes, at: i64, offset: i64, entries: list[int]) -> None:
    entries.append(number_key(read_i64_le(records, at + 8)) << OFFSET_BITS | offset)
    size: i64 = records[at + 56]
    if size > 0:
        start: i64 = at + ACCEPTED_FIXED
        entries.append(id_key(records[start : start + size]) << OFFSET_BITS | offset)


def index_rarer(records: bytes, at: i64, kind: i64, offset: i64, entries: list[int]) -> None:
    if kind == STARTED:
        entries.append(offset)
    elif kind == FIRED:
        number: i64 = read_i64_le(records, at + 21)
        if number > 0:  # else the due instant was skipped
            entries.append(number_key(number) << OFFSET_BITS | offset)
    elif kind == LATE:
        text = records[at + 21 : at + i64(read_i32_le(records, at))]
        if not text.isascii():
            text = shown(text).encode()  # a life knows the ids it may be named by as texts
        entries.append(id_key(text) << OFFSET_BITS | offset)
