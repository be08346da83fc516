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
WAIT_BEGINS: Final = ("accepted", "carried", "requeued", "released", "started")

Fact = dict[str, Any]
Item = TypeVar("Item")


class Bar(msgspec.Struct, frozen=True):
    """One bar; begin and end are fractions of the whole span, 0 to 1."""

    row: int
    kind: str
    begin: float
    end: float
    text: str


class Timeline(msgspec.Struct, frozen=True):
    bars: list[Bar]
    rows: list[str]
    span_ns: int


class Span(msgspec.Struct):
    kind: str
    attempt: int
    begin_ns: int
    worker: str = ""
    end_ns: int = 0  # 0: it has not ended


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
            f"{span.kind} {duration(span.end_ns - span.begin_ns)}{f' at {span.worker}' if span.worker else ''}",
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
    """Each fact ends the span before it. A delay therefore ends at its due instant only if something follows it there."""
    spans: list[Span] = []
    for fact in facts:
        name, at_ns = fact["fact"], fact["time_ns"]
        if name not in (*WAIT_BEGINS, "leased", "quarantined", "closed"):
            continue
        if spans and not spans[-1].end_ns:
            spans[-1].end_ns = at_ns
        if name == "leased":
            spans.append(Span(WORK, fact["attempt"], at_ns, fact.get("worker", "")))
        elif name == "quarantined":
            spans.append(Span(ASIDE, 0, at_ns))
        elif name != "closed":
            spans.append(Span(DELAY if fact.get("due_ns", 0) > at_ns else WAIT, 0, at_ns))
    for span in spans:
        span.end_ns = span.end_ns or max(now_ns, span.begin_ns)
    return spans
