"""Entries of a journal's index: for every record that the history of a message or worker may need, a key and the block that contains it.

An entry is one number, `key << 32 | offset of the block's header in its segment`, so that sorted entries are sorted by key. A key has 30
bits. A collision costs a reader one unneeded block, never a wrong answer, because the records of a block found by the index are checked.

Messages, workers and schedules share one counter, so one kind of key serves them all; queues have small numbers of their own, and a start of
the broker is number 0. The key of a client's id, and of the id in a late answer, is a hash.
"""

from __future__ import annotations

from typing import Final

from librt.strings import BytesWriter, read_i64_le, write_i64_le
from librt.vecs import append, vec
from mypy_extensions import i64

from dragoman.crc import crc32
from dragoman.model.enums import shown
from dragoman.model.facts import fields, layout

OFFSET_BITS: Final = 32
KEY_BITS: Final = 30
KEY_MASK: Final = 0x3FFFFFFF
DIGIT_BITS: Final = 10
DIGITS: Final = 1024
DIGIT_MASK: Final = 1023
ENTRY_SIZE: Final = 8
# Every boot counts from 1: this factor separates the boots. An odd number near 2**32 divided by the golden ratio.
BOOT_SPREAD: Final = 0x9E3779B1
NUMBER_MAX: Final = (1 << 63) - 1  # no record holds a larger one


def number_key(number: i64) -> i64:
    """The key of the number of a message, worker, schedule or queue."""
    return (number ^ (number >> layout.BOOT_SHIFT) * BOOT_SPREAD) & KEY_MASK


def id_key(text: bytes) -> i64:
    """The key of a client's id."""
    return i64(crc32(text)) & KEY_MASK


def packed(entries: vec[i64]) -> bytes:
    """Entries as the bytes of a file: sorted, without duplicates, eight bytes little endian each. `entries` must be in the order of their blocks."""
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
    """Entries sorted by one digit of their keys, stable: one pass of a radix sort, from the lowest digit (13 ns per entry; sorting a list takes
    500)."""
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
    """Add the entries in the bytes of a file to `entries`."""
    at: i64 = 0
    end: i64 = len(data)
    while at < end:
        entries = append(entries, read_i64_le(data, at))
        at += ENTRY_SIZE
    return entries


def index_block(records: bytes, offset: i64, entries: vec[i64]) -> vec[i64]:
    """Add the entries of one block, whose header is at `offset`."""
    walk = fields.RecordWalk(records)
    while walk.step():
        at = walk.at
        kind = walk.kind
        if kind == layout.ACCEPTED:
            entries = index_accepted(records, at, offset, entries)
        elif kind == layout.LEASED or kind == layout.CLOSED or kind == layout.RELEASED or is_numbered(kind):
            entries = append(entries, number_key(fields.record_number(records, at)) << OFFSET_BITS | offset)
        elif kind == layout.CARRIED:
            entries = index_accepted(records, at + layout.CARRIED_RECORD, offset, entries)
        else:
            entries = index_rarer(records, at, kind, offset, entries)
    return entries


def is_numbered(kind: i64) -> bool:
    """Whether a less frequent record is indexed by its first number."""
    if kind == layout.DELIVERED or kind == layout.QUARANTINED or kind == layout.REQUEUED:
        return True
    return kind == layout.WORKER_JOINED or kind == layout.WORKER_LEFT or kind == layout.QUEUE_NAMED


def index_accepted(records: bytes, at: i64, offset: i64, entries: vec[i64]) -> vec[i64]:
    entries = append(entries, number_key(fields.accepted_message_no(records, at)) << OFFSET_BITS | offset)
    if fields.accepted_client_id_size(records, at) > 0:
        entries = append(entries, id_key(fields.accepted_client_id(records, at)) << OFFSET_BITS | offset)
    return entries


def index_rarer(records: bytes, at: i64, kind: i64, offset: i64, entries: vec[i64]) -> vec[i64]:
    if kind == layout.STARTED:
        return append(entries, offset)
    if kind == layout.FIRED:
        number = fields.fired_message_no(records, at)
        if number > 0:  # else the due instant was skipped
            return append(entries, number_key(number) << OFFSET_BITS | offset)
    elif kind == layout.LATE:
        text = fields.record_text(records, at)
        if not text.isascii():
            text = shown(text).encode()  # readers look it up by its text form
        return append(entries, id_key(text) << OFFSET_BITS | offset)
    return entries
