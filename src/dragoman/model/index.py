"""What a journal's index is made of: of every record that the life of a message or a worker may be told from, a key, and the block that holds it.

An entry is one number, `key << 32 | offset of the block's header in its segment`, so that sorted entries are sorted by key. A key has 30
bits: two things that share one cost a reader one block it did not need, never an answer, for what an index names is read and looked at.

Messages, workers and schedules share one counter, so that one kind of key serves them all; queues have small numbers of their own, and a
start of the broker is number 0. A client's id, and the id that a late answer named, is a hash.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i32_le, read_i64_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from dragoman.crc import crc32
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
    WORKER_LEFT,
)

OFFSET_BITS: Final = 32
KEY_BITS: Final = 30
KEY_MASK: Final = 0x3FFFFFFF
DIGIT_BITS: Final = 10
DIGITS: Final = 1024
DIGIT_MASK: Final = 1023
ENTRY_SIZE: Final = 8
BOOT_SHIFT: Final = 40
# Numbers of two boots begin alike: this spreads the boots. An odd number near 2**32 divided by the golden ratio.
BOOT_SPREAD: Final = 0x9E3779B1
NUMBER_MAX: Final = (1 << 63) - 1  # no record holds a larger one


def number_key(number: i64) -> i64:
    """The key of a message's, worker's, schedule's or queue's number."""
    return (number ^ (number >> BOOT_SHIFT) * BOOT_SPREAD) & KEY_MASK


def id_key(text: bytes) -> i64:
    """The key of a client's id."""
    return i64(crc32(text)) & KEY_MASK


def packed(entries: vec[i64]) -> bytes:
    """Entries as they lie in a file: sorted, each once, eight bytes little endian. They come in the order of their blocks."""
    shift: i64 = OFFSET_BITS
    while shift < OFFSET_BITS + KEY_BITS:
        entries = dealt(entries, shift)
        shift += DIGIT_BITS
    out = BytesWriter()
    before: i64 = -1
    for entry in entries:
        if entry != before:
            write_i64_le(out, entry)
        before = entry
    return out.getvalue()


def dealt(entries: vec[i64], shift: i64) -> vec[i64]:
    """Sorted by one digit of their keys, those alike in the order they came: digit by digit, the last one first, this sorts by key (13 ns an
    entry; sorting a list of them takes 500)."""
    places = vec[i64]([0] * DIGITS)
    for entry in entries:
        places[(entry >> shift) & DIGIT_MASK] += 1
    place: i64 = 0
    digit: i64 = 0
    while digit < DIGITS:
        count: i64 = places[digit]
        places[digit] = place
        place += count
        digit += 1
    found = vec[i64]([0] * len(entries))
    for entry in entries:
        digit = (entry >> shift) & DIGIT_MASK
        place = places[digit]
        found[place] = entry
        places[digit] = place + 1
    return found


def unpacked(data: bytes, entries: vec[i64]) -> vec[i64]:
    """Add entries as they lie in a file."""
    at: i64 = 0
    end: i64 = len(data)
    while at < end:
        entries = append(entries, read_i64_le(data, at))
        at += ENTRY_SIZE
    return entries


def index_block(records: bytes, offset: i64, entries: vec[i64]) -> vec[i64]:
    """Add the entries of one block, whose header lies at `offset`."""
    at: i64 = 0
    end: i64 = len(records)
    while at < end:
        kind: i64 = records[at + 4]
        if kind == ACCEPTED:
            entries = index_accepted(records, at, offset, entries)
        elif kind == LEASED or kind == CLOSED or kind == RELEASED or is_numbered(kind):
            entries = append(entries, number_key(read_i64_le(records, at + 5)) << OFFSET_BITS | offset)
        elif kind == CARRIED:
            entries = index_accepted(records, at + CARRIED_AT, offset, entries)
        else:
            entries = index_rarer(records, at, kind, offset, entries)
        at += i64(read_i32_le(records, at))
    return entries


def is_numbered(kind: i64) -> bool:
    """Whether a rarer record is found by its first number."""
    if kind == DELIVERED or kind == QUARANTINED or kind == REQUEUED:
        return True
    return kind == WORKER_JOINED or kind == WORKER_LEFT or kind == QUEUE_NAMED


def index_accepted(records: bytes, at: i64, offset: i64, entries: vec[i64]) -> vec[i64]:
    entries = append(entries, number_key(read_i64_le(records, at + 8)) << OFFSET_BITS | offset)
    size: i64 = records[at + 56]
    if size > 0:
        start: i64 = at + ACCEPTED_FIXED
        entries = append(entries, id_key(records[start : start + size]) << OFFSET_BITS | offset)
    return entries


def index_rarer(records: bytes, at: i64, kind: i64, offset: i64, entries: vec[i64]) -> vec[i64]:
    if kind == STARTED:
        return append(entries, offset)
    if kind == FIRED:
        number: i64 = read_i64_le(records, at + 21)
        if number > 0:  # else the due instant was skipped
            return append(entries, number_key(number) << OFFSET_BITS | offset)
    elif kind == LATE:
        text = records[at + 21 : at + i64(read_i32_le(records, at))]
        if not text.isascii():
            text = shown(text).encode()  # a life knows the ids it may be named by as texts
        return append(entries, id_key(text) << OFFSET_BITS | offset)
    return entries
