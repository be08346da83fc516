"""A life drawn: what the message did when, as bars on one line of time, one row for waiting and one for each attempt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import msgspec

from dragoman.core.phrases import duration

ROWS_MAX: Final = 12  # attempts drawn; a message tried more often shows its first and last ones in the list below
ENDS_SHOWN: Final = (
    50  # attempts at either end of a life that are told: one tried ten thousand times would fill the browser
)
WAIT: Final = "waits"
WORK: Final = "works"
DELAY: Final = "delayed"
ASIDE: Final = "aside"
BEGINS: Final = ("accepted", "carried", "requeued")
ENDS: Final = ("released", "closed", "quarantined", "started")

Fact = dict[str, Any]
Item = TypeVar("Item")


class Bar(msgspec.Struct, frozen=True):
    """From and to in parts of the whole, 0 to 1."""

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
    """None where there is nothing to draw. An open life goes on until now."""
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
    """What belongs to the first and the last attempts, and how many attempts are left out between them."""
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
    """A delay is drawn until its due instant only when something follows it there; the bar that follows ends it."""
    is_delayed = fact.get("due_ns", 0) > at_ns
    span: Span = begin(DELAY if is_delayed else WAIT, at_ns)
    return span
