"""Numbers as readable text: durations, instants, ids, counts. Instants are UTC, because readers may be in any time zone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from dragoman.model.facts.layout import BOOT_SHIFT
from dragoman.model.peer import TAKES_JSON_JOBS, TAKES_NO_CONTROL_WORDS, TAKES_NO_EMPTY_BODY, TAKES_TEXT
from dragoman.model.units import MICROSECOND_NS, MILLISECOND_NS, SECOND_NS

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
BODY_CONSTRAINT_TEXTS: Final = {
    TAKES_JSON_JOBS: "JSON jobs",
    TAKES_NO_CONTROL_WORDS: "bodies that are no control words",
    TAKES_TEXT: "text",
    TAKES_NO_EMPTY_BODY: "bodies that are not empty",
}
NEAR_NS: Final = 12 * 3600 * SECOND_NS  # an instant this close is shown without its date


def duration(span_ns: int) -> str:
    """`0.4 ms`, `320 ms`, `12.3 s`, `14 min`, `5.2 h`, `12 days`."""
    span = abs(span_ns)
    if span < 10 * MILLISECOND_NS:
        return f"{span / MILLISECOND_NS:.1f} ms"
    if span < SECOND_NS:
        return f"{span // MILLISECOND_NS} ms"
    seconds = span / SECOND_NS
    if seconds < 100:
        return f"{seconds:.1f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    if seconds < 172800:
        return f"{seconds / 3600:.1f} h"
    return f"{seconds / 86400:.0f} days"


def instant(at_ns: int, now_ns: int) -> str:
    """`14:03:11 UTC`, with the date if it is 12 hours or more away."""
    moment = EPOCH + timedelta(microseconds=at_ns // MICROSECOND_NS)
    if abs(at_ns - now_ns) < NEAR_NS:
        return moment.strftime("%H:%M:%S UTC")
    return moment.strftime("%Y-%m-%d %H:%M:%S UTC")


def size(count: float) -> str:
    """A number of bytes: `120 B`, `4.2 kB`, `1.30 GB`."""
    if count < 1000:
        return f"{count:.0f} B"
    if count < 1_000_000_000:
        return f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1_000_000:.1f} MB"
    return f"{count / 1_000_000_000:.2f} GB"


def number_text(number: int) -> str:
    """The number of a message, worker or schedule as `boot.counter`: 1099511627777 is 1.1."""
    return f"{number >> BOOT_SHIFT}.{number & (1 << BOOT_SHIFT) - 1}"


def body_constraint_text(kind: int) -> str:
    """What bodies a worker of this body_constraint accepts; empty: any."""
    return BODY_CONSTRAINT_TEXTS.get(kind, "")


def read_number(text: str) -> int:
    """Parse a number in either form, or a number as a UUID (`model/message.fact_id`); -1 if the text is neither."""
    boot, dot, counter = text.partition(".")
    if dot and is_digits(boot) and is_digits(counter):
        return int(boot) << BOOT_SHIFT | int(counter)
    if is_digits(text):
        return int(text)
    digits = text.replace("-", "")
    is_uuid = len(text) == 36 and len(digits) == 32 and not digits.strip("0123456789abcdef")
    if is_uuid and digits.startswith("0000000000000000"):
        return int(digits, 16)
    return -1


def is_digits(text: str) -> bool:
    return 0 < len(text) <= 19 and text.isascii() and text.isdigit()


def count_of(count: int, noun: str) -> str:
    """`1 worker`, `3 workers`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
