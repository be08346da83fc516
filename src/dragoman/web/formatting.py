"""Formatting of numbers, names and instants for the pages. Names come from peers and are always treated as plain text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final
from urllib.parse import quote

from markupsafe import Markup, escape

from dragoman.core.queries.schedule_words import job_text, when_text
from dragoman.model.phrases import EPOCH, duration, instant, number_text, size
from dragoman.model.units import MICROSECOND_NS, MILLISECOND_NS
from dragoman.printable import printable_lines

BODY_LINES_MAX: Final = 200
HEX_SIZE: Final = 16
THIN: Final = "\u202f"


def printable(value: object) -> object:
    """Escape control and direction characters; templates pass every text through this, so that a name cannot change the layout."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return THIN.join(printable_lines(part) for part in value.split(THIN))
    return value


def count(value: float) -> str:
    """Format like `12 345`, with thin spaces."""
    return f"{int(value):,}".replace(",", THIN)


def rate(value: float | None) -> str:
    if value is None:
        return "–"
    if value and value < 0.1:
        return "<0.1"
    return f"{value:.1f}" if 0 < value < 10 else count(round(value))


def span(value_ns: int | None) -> str:
    if value_ns is None:
        return "–"
    value_ns = max(value_ns, 0)  # an event may be a moment later than our reading of the clock
    return duration(value_ns) if value_ns >= MILLISECOND_NS // 10 else f"{value_ns // MICROSECOND_NS} µs"


def ticks(text: str) -> Markup:
    """Render the text between backticks in the broker's sentences as code."""
    parts = [escape(printable(part)) for part in text.split("`")]
    if len(parts) % 2 == 0:  # a backtick without a partner belongs to a name
        return Markup("`").join(parts)
    return Markup("").join(Markup("<code>{}</code>").format(part) if at % 2 else part for at, part in enumerate(parts))


def highest(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)


def percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.0f} %"


def moment(at_ns: int, now_ns: int) -> str:
    """An instant in UTC, in the format of `explain`; empty for 0."""
    return instant(at_ns, now_ns) if at_ns else ""


def exact(at_ns: int) -> str:
    """An instant in UTC to the millisecond."""
    at = EPOCH + timedelta(microseconds=at_ns // 1000)
    return at.strftime("%Y-%m-%d %H:%M:%S.") + f"{at.microsecond // 1000:03d}"


def since(at_ns: int, now_ns: int) -> str:
    return f"{duration(max(now_ns - at_ns, 0))} ago" if at_ns else "never"


def until(at_ns: int, now_ns: int) -> str:
    if not at_ns:
        return "never"
    return f"in {duration(at_ns - now_ns)}" if at_ns > now_ns else "now"


def plural(number: int, noun: str) -> str:
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def plain(word: str) -> str:
    """`heartbeat_lost` as `heartbeat lost`."""
    return word.replace("_", " ")


def url(path: str, /, **query: object) -> str:
    """A local URL with a query; empty values are left out."""
    pairs = [f"{name}={quote(str(value), safe='')}" for name, value in query.items() if value not in ("", None)]
    return f"{path}?{'&'.join(pairs)}" if pairs else path


def message_url(key: str) -> str:
    return f"/message/{quote(key, safe='')}"


def when(schedule: dict[str, Any]) -> str:
    return when_text(schedule["cron"], schedule["interval_s"])


def body_lines(body: bytes) -> list[str]:
    """A body for display: JSON indented, other text unchanged, bytes as hex."""
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return [hex_line(body, at) for at in range(0, min(len(body), HEX_SIZE * BODY_LINES_MAX), HEX_SIZE)]
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text.split("\n")[:BODY_LINES_MAX]


def hex_line(body: bytes, at: int) -> str:
    part = body[at : at + HEX_SIZE]
    shown = "".join(chr(byte) if 32 <= byte < 127 else "·" for byte in part)
    return f"{at:06x}  {part.hex(' '):<{HEX_SIZE * 3}} {shown}"


def joined(parts: Iterable[str]) -> str:
    """Join like `a, b and c`."""
    *first, last = list(parts) or [""]
    return f"{', '.join(first)} and {last}" if first else last


_FILTERS: Final = (
    *(count, rate, span, percent, size, moment, exact, since, until),
    *(plain, number_text, job_text, when, joined, ticks, highest),
)
FILTERS: Final[dict[str, Callable[..., Any]]] = {function.__name__: function for function in _FILTERS}
FUNCTIONS: Final = {"url": url, "message_url": message_url, "plural": plural}
