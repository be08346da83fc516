"""Chooses the messages to trace, and finds their records in a block: at fixed offsets, because most facts are not needed.

Sampling is not random: it depends on a message's number, so that every reader of a journal, also after a restart, chooses the same ones.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Final

from mypy_extensions import i64

from dragoman.model.enums import EMQP, INTERNAL, SCALE0
from dragoman.model.facts import fields, layout

SAMPLES: Final = 1 << 20  # a sampling ratio is a number out of these
TRACEPARENT: Final = b"traceparent"
TRACEPARENT_SIZE_MIN: Final = 67  # including its colon and the shortest valid value
SPREAD: Final = 2654435769  # 2**32 divided by the golden ratio: spreads consecutive numbers evenly


def is_sampled(number: i64, samples: i64) -> bool:
    """Whether a message is sampled at the ratio `samples` / SAMPLES."""
    # A number is boot and count: every boot starts at another value.
    folded: i64 = (number ^ number >> layout.BOOT_SHIFT) & 0x7FFFFFFF
    return (folded * SPREAD >> 12) & (SAMPLES - 1) < samples


def find_traced(records: bytes, samples: i64, known: Container[int], found: list[tuple[int, int]]) -> None:
    """Add the records of a block that a trace may need to `found`: the offset of each, and how many facts precede it.

    These are records of sampled and `known` messages, of messages whose client sent `traceparent`, and the names of queues and
    workers. Leased facts are not included: the fact that ends a lease repeats its instant."""
    walk = fields.RecordWalk(records)
    while walk.step():
        if is_wanted(records, walk.at, walk.kind, samples, known):
            found.append((walk.at, walk.facts))


def is_wanted(records: bytes, at: i64, kind: i64, samples: i64, known: Container[int]) -> bool:
    if (
        kind == layout.CLOSED
        or kind == layout.RELEASED
        or kind == layout.DELIVERED
        or kind == layout.QUARANTINED
        or kind == layout.REQUEUED
    ):
        return is_traced(fields.record_number(records, at), samples, known)
    if kind == layout.ACCEPTED:
        return is_sampled(fields.accepted_message_no(records, at), samples) or has_traceparent(records, at)
    return kind == layout.QUEUE_NAMED or kind == layout.QUEUE_FORGOTTEN or kind == layout.WORKER_JOINED


def is_traced(number: i64, samples: i64, known: Container[int]) -> bool:
    return is_sampled(number, samples) or number in known


def has_traceparent(records: bytes, at: i64) -> bool:
    """Whether the headers of an accepted record may contain `traceparent`; the caller has to parse them."""
    dialect = fields.accepted_dialect(records, at)
    if fields.headers_size(records, at) < TRACEPARENT_SIZE_MIN:
        return False
    if dialect != EMQP and dialect != INTERNAL and dialect != SCALE0:
        return False
    return TRACEPARENT in fields.accepted_headers(records, at).lower()
