"""Which messages are traced, and the records of a block that tell of them: read at fixed offsets, for most facts are of no interest.

Chance has no say: a message's number decides, so that every reader of a journal, today and after a restart, picks the same ones.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from librt.strings import read_i32_le, read_i64_le
from mypy_extensions import i64

from dragoman.model.records import (
    ACCEPTED,
    ACCEPTED_FIXED,
    CHECKPOINT,
    CLOSED,
    DELIVERED,
    QUARANTINED,
    QUEUE_FORGOTTEN,
    QUEUE_NAMED,
    RELEASED,
    REQUEUED,
    WORKER_JOINED,
    headers_size,
)
from dragoman.model.words import EMQP, INTERNAL, SCALE0

SAMPLES: Final = 1 << 20  # a ratio is so many of these
TRACEPARENT: Final = b"traceparent"
TRACEPARENT_SIZE_MIN: Final = 67  # with its colon and the shortest value there is
SPREAD: Final = 2654435769  # 2**32 divided by the golden ratio: neighbours fall far apart, and evenly


def is_sampled(number: i64, samples: i64) -> bool:
    """Whether a message is one of `samples` out of SAMPLES."""
    folded: i64 = (number ^ number >> 40) & 0x7FFFFFFF  # a number is boot and count: every boot begins elsewhere
    return (folded * SPREAD >> 12) & (SAMPLES - 1) < samples


def find_traced(records: bytes, samples: i64, known: Container[int], found: list[tuple[int, int]]) -> None:
    """Fill `found` with the records of a block that a trace may need: each one's offset, and how many facts come before it.

    They are those of sampled and of `known` messages, of messages whose client says `traceparent`, and the names of queues and
    workers. Leases are not among them: whatever ends one repeats its instant."""
    at: i64 = 0
    end: i64 = len(records)
    ordinal = 0
    while at < end:
        kind: i64 = records[at + 4]
        if is_wanted(records, at, kind, samples, known):
            found.append((at, ordinal))
        if kind < CHECKPOINT:
            ordinal += 1
        at += i64(read_i32_le(records, at))


def is_wanted(records: bytes, at: i64, kind: i64, samples: i64, known: Container[int]) -> bool:
    if kind == CLOSED or kind == RELEASED or kind == DELIVERED or kind == QUARANTINED or kind == REQUEUED:
        return is_traced(read_i64_le(records, at + 5), samples, known)
    if kind == ACCEPTED:
        return is_sampled(read_i64_le(records, at + 8), samples) or has_traceparent(records, at)
    return kind == QUEUE_NAMED or kind == QUEUE_FORGOTTEN or kind == WORKER_JOINED


def is_traced(number: i64, samples: i64, known: Container[int]) -> bool:
    return is_sampled(number, samples) or number in known


def has_traceparent(records: bytes, at: i64) -> bool:
    """Whether an accepted record's headers may hold one; a closer look is the reader's affair."""
    dialect: i64 = records[at + 5]
    size = headers_size(records, at)
    if size < TRACEPARENT_SIZE_MIN or (dialect != EMQP and dialect != INTERNAL and dialect != SCALE0):
        return False
    n1: i64 = records[at + 56]
    n2: i64 = records[at + 57]
    n3: i64 = records[at + 58]
    start = at + ACCEPTED_FIXED + n1 + n2 + n3
    return TRACEPARENT in records[start : start + size].lower()
