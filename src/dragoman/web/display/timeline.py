"""A message's history as bars on one time axis: one row for waiting and one for each attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from dragoman.model.phrases import duration

ROWS_MAX: Final = 12  # attempts drawn; the list below shows the first and last attempts of a message that has more
ENDS_SHOWN: Final = 50  # attempts listed at either end of a history: ten thousand would overload the browser
WAIT: Final = "waits"
WORK: Final = "works"
DELAY: Final = "delayed"
ASIDE: Final = "aside"
BEGINS: Final = ("accepted", "carried", "requeued")
ENDS: Final = ("released", "closed", "quarantined", "started")

Fact = dict[str, Any]
Item = TypeVar("Item")


class Bar(msgspec.Struct, frozen=True):
    """One bar; begin and end are fractions of the whole span, 0 to 1."""

    row: int
    kind: str
    begin: float
    end: float
    words: str


class Timeline(msgspec.Struct, frozen=True):
    bars: list[Bar]
    rows: list[str]
    span_ns: int


class Span(msgspec.Struct):
    kind: str
    attempt: int
    begin_ns: int
    end_ns: int
    who: str


def timeline(facts: list[Fact], now_ns: int) -> Timeline | None:
    """Build the timeline, or None if there is nothing to draw. The last bar of an open message ends now."""
    spans = spans_of(facts, now_ns)
    if not spans:
        return None
    first_ns = spans[0].begin_ns
    whole_ns = max(max(span.end_ns for span in spans) - first_ns, 1)
    spans, _ = ends(spans, lambda span: span.kind == WORK)
    attempts = sorted({span.attempt for span in spans if span.kind == WORK})[:ROWS_MAX]
    rows = ["in the queue", *(f"attempt {attempt}" for attempt in attempts)]
    bars = [
        Bar(
            attempts.index(span.attempt) + 1 if span.kind == WORK else 0,
            span.kind,
            (span.begin_ns - first_ns) / whole_ns,
            (span.end_ns - first_ns) / whole_ns,
            f"{span.kind} {duration(span.end_ns - span.begin_ns)}{f' at {span.who}' if span.who else ''}",
        )
        for span in spans
        if span.kind != WORK or span.attempt in attempts
    ]
    return Timeline(bars, rows, whole_ns)


def ends(items: list[Item], is_attempt: Callable[[Item], bool]) -> tuple[list[Item], int]:
    """The items of the first and the last attempts, and the number of attempts left out between them."""
    begins = [at for at, item in enumerate(items) if is_attempt(item)]
    left_out = len(begins) - 2 * ENDS_SHOWN
    if left_out <= 0:
        return items, 0
    return items[: begins[ENDS_SHOWN]] + items[begins[-ENDS_SHOWN] :], left_out


def spans_of(facts: list[Fact], now_ns: int) -> list[Span]:
    spans: list[Span] = []
    last: Span | None = None

    def begin(kind: str, at_ns: int, attempt: int = 0, who: str = "") -> Span:
        if last is not None and last.end_ns == 0:
            last.end_ns = at_ns
        spans.append(Span(kind, attempt, at_ns, 0, who))
        return spans[-1]

    for fact in facts:
        name, at_ns = fact["fact"], fact["time_ns"]
        if name in BEGINS:
            last = begin_waiting(begin, fact, at_ns)
        elif name == "leased":
            last = begin(WORK, at_ns, fact["attempt"], fact.get("worker", ""))
        elif name in ("released", "started"):
            last = begin_waiting(begin, fact, at_ns)
        elif name == "quarantined":
            last = begin(ASIDE, at_ns)
        elif name == "closed" and last is not None:
            last.end_ns = last.end_ns or at_ns
            last = None
    for span in spans:
        span.end_ns = span.end_ns or max(now_ns, span.begin_ns)
    return spans


def begin_waiting(begin: Any, fact: Fact, at_ns: int) -> Span:
    """Start a delay or wait bar. The next bar ends it, so a delay ends at its due instant only if something follows it there."""
    is_delayed = fact.get("due_ns", 0) > at_ns
    span: Span = begin(DELAY if is_delayed else WAIT, at_ns)
    return span
