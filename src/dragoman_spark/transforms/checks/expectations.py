"""Expectations about every fact: a list of named conditions, each written as what breaks it.

A fatal one makes the command fail. The others are only reported: a value of a later broker version that is unknown here, or one that
an older version did not write yet, is no fault of the data.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from dragoman.lake.schema import DIALECTS, KINDS, OUTCOMES, REASONS
from dragoman_spark.transforms.life.kinds import (
    ACCEPTED,
    CLOSED,
    DELIVERED,
    LEASED,
    LIFE,
    QUARANTINED,
    QUEUE_NAMED,
    RELEASED,
    WORKER_JOINED,
    WORKER_LEFT,
)

_DAMAGED: Final = next(number for number, word in REASONS.items() if word == "damaged")  # ends no attempt
_ENDS: Final = ("done", "rejected", "expired", "cancelled")


@dataclass(frozen=True, slots=True)
class Expectation:
    """`broken_if` is a condition over one fact; empty if it needs several facts, or the files themselves."""

    name: str
    about: str
    is_fatal: bool
    broken_if: str = ""


def _in(column: str, numbers: Iterable[int]) -> str:
    return f"{column} in ({', '.join(str(number) for number in numbers)})"


def _unknown(column: str, numbers: Iterable[int]) -> str:
    """A condition for unknown numbers; null is not unknown. Two comparisons suffice where known numbers are consecutive: all but those of
    dialects outside the package."""
    known = sorted(numbers)
    if known == list(range(known[0], known[-1] + 1)):
        return f"{column} not between {known[0]} and {known[-1]}"
    return f"not ({_in(column, known)})"


def _lacks(kinds: tuple[int, ...], *columns: str) -> str:
    return f"({_in('kind', kinds)} and ({' or '.join(f'{column} is null' for column in columns)}))"


ORPHAN: Final = Expectation(
    "orphan", "Every message's facts make a life: accepted first, closed last, each once.", True
)
TIME_BACKWARDS: Final = Expectation("time_backwards", "Within a broker, time does not fall while lsn rises.", True)
SCHEMA_VERSION: Final = Expectation(
    "schema_version", "No file is of a later version of the schema than this one.", True
)
GAP: Final = Expectation("gap", "No fact is missing between two others of the same broker.", True)

OF_FACTS: Final = (
    Expectation("unknown_kind", "Every kind of fact is known.", True, _unknown("kind", KINDS)),
    Expectation(
        "unknown_outcome", "A message ends as done, rejected, expired or cancelled.", True,
        f"kind = {CLOSED} and {_unknown('outcome', [number for number, word in OUTCOMES.items() if word in _ENDS])}",
    ),
    Expectation("unknown_reason", "Every reason is known.", False, _unknown("reason", REASONS)),
    Expectation(
        "unknown_dialect", "Every dialect is known.", False,
        f"{_unknown('client_dialect', DIALECTS)} or {_unknown('worker_dialect', DIALECTS)}",
    ),
    Expectation(
        "missing_value", "A fact says all that its kind has to say.", True,
        " or ".join((
            "broker_id is null or lsn is null or kind is null or at is null",
            _lacks(LIFE, "message_no"),
            _lacks((ACCEPTED, CLOSED), "queue_no", "client_dialect"),
            _lacks((LEASED, DELIVERED, RELEASED, WORKER_JOINED, WORKER_LEFT), "worker_no"),
            _lacks((LEASED, RELEASED, CLOSED), "attempt"),
            _lacks((CLOSED,), "outcome"),
            _lacks((RELEASED, CLOSED, QUARANTINED), "reason"),
            _lacks((QUEUE_NAMED,), "queue_no", "text"),
        )),
    ),
    Expectation(
        "closed_without_accepted_at", "A closing fact says when its message was accepted.", True,
        f"kind = {CLOSED} and accepted_at is null",
    ),
    Expectation(
        "attempt_without_begin", "A fact that ends an attempt says when it began (old journals do not).", False,
        f"(kind = {RELEASED} or (kind = {QUARANTINED} and coalesce(reason, 0) <> {_DAMAGED})) and leased_at is null",
    ),
    Expectation(
        "attempt_zero", "Attempts are counted from 1.", True,
        f"attempt < 1 and ({_in('kind', (LEASED, RELEASED))} or leased_at is not null)",
    ),
    Expectation(
        "ended_before_begun", "Nothing ends before it began.", True,
        "at < accepted_at or at < first_leased_at or at < leased_at or at < delivered_at",
    ),
    Expectation(
        "negative_duration", "No wait and no work is shorter than nothing.", True,
        "first_leased_at < greatest(accepted_at, if(due_at > at, at, due_at)) or leased_at < first_leased_at or delivered_at < leased_at",
    ),
)  # fmt: skip

EXPECTATIONS: Final = (ORPHAN, TIME_BACKWARDS, *OF_FACTS, GAP, SCHEMA_VERSION)
