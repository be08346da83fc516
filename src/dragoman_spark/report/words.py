"""Numbers for people: counts with separators, durations in a fitting unit, shares that show 100 % only for all.

Names of queues and workers are foreign text: `name` shortens them and removes invisible characters. The page escapes them.
"""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Final

NOTHING: Final = "–"
NAME_LENGTH_MAX: Final = 32  # characters; longer names push the numbers beside them out of sight

_SPACE: Final = "\u00a0"  # keeps a number and its unit on one line
_DURATIONS: Final = (  # below this many ms: the unit, and its length in ms
    (1.0, "µs", 0.001),
    (1000.0, "ms", 1.0),
    (60_000.0, "s", 1000.0),
    (3_600_000.0, "min", 60_000.0),
    (172_800_000.0, "h", 3_600_000.0),
)
_SIZES: Final = ((1_000_000_000, "G"), (1_000_000, "M"), (1000, "k"))


def count(number: float | None) -> str:
    """1234567 → 1,234,567."""
    return NOTHING if number is None else f"{round(number):,}"


def short_count(number: float) -> str:
    """1234567 → 1.2 M: for axes and tiles, where width is limited."""
    for size, letter in _SIZES:
        if abs(number) >= size:
            return f"{_three_digits(number / size)}{_SPACE}{letter}"
    return _three_digits(number)


def duration(ms: float | None) -> str:
    """4200 → 4.2 s."""
    if ms is None:
        return NOTHING
    if ms <= 0:
        return f"0{_SPACE}ms"
    for below_ms, unit, unit_ms in _DURATIONS:
        # 999.7 ms would be shown as 1000 ms.
        if ms * 1.0005 < below_ms:
            return f"{_three_digits(ms / unit_ms)}{_SPACE}{unit}"
    return f"{_three_digits(ms / 86_400_000)}{_SPACE}days"


def share(part: float | None, whole: float = 1.0) -> str:
    """A share in percent. Less than all is never shown as 100 %, more than nothing never as 0 %."""
    if part is None or whole <= 0:
        return NOTHING
    percent = 100 * part / whole
    if percent in (0, 100):
        return f"{percent:.0f}{_SPACE}%"
    if percent > 99.99:
        return f">{_SPACE}99.99{_SPACE}%"
    if percent < 0.01:
        return f"<{_SPACE}0.01{_SPACE}%"
    digits = 2 if percent > 99 or percent < 1 else 1
    return f"{percent:.{digits}f}{_SPACE}%"


def decimal(number: float | None) -> str:
    """A plain number with three digits, or whole."""
    return NOTHING if number is None else _three_digits(number)


def several(number: int, noun: str) -> str:
    """1 → `1 message`, 2 → `2 messages`."""
    return f"{count(number)} {noun}{'' if number == 1 else 's'}"


def verb(number: int, one: str, many: str) -> str:
    """The form of a verb for a number."""
    return one if number == 1 else many


def instant(at_s: float | None) -> str:
    """Seconds since 1970 → Mon 2 Mar 14:05. The year is in the headline."""
    return NOTHING if at_s is None else f"{_utc(at_s):%a} {_utc(at_s).day} {_utc(at_s):%b %H:%M}"


def clock(at_s: float) -> str:
    """Seconds since 1970 → 14:05."""
    return f"{_utc(at_s):%H:%M}"


def day(at_s: float) -> str:
    """Seconds since 1970 → Mon 2 Mar 2026."""
    at = _utc(at_s)
    return f"{at:%a} {at.day} {at:%b %Y}"


def name(text: str | None) -> str:
    """Foreign text for display: no control or direction marks, no longer than a label, never invisible."""
    if text is None:
        return NOTHING
    seen = "".join("\ufffd" if unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Co", "Cn") else sign for sign in text)
    if not seen.strip() or seen.startswith("_"):
        seen = f"“{seen}”"  # matplotlib omits labels that begin with _ from its legends
    return seen if len(seen) <= NAME_LENGTH_MAX else seen[: NAME_LENGTH_MAX - 1] + "…"


def _utc(at_s: float) -> datetime:
    return datetime.fromtimestamp(at_s, tz=UTC)


def _three_digits(number: float) -> str:
    size = abs(number)
    if size >= 100 or number == round(number):
        return f"{number:,.0f}"
    if size >= 10:
        return f"{number:.1f}".removesuffix(".0")
    return f"{number:.2f}".rstrip("0").removesuffix(".") if size >= 1 else f"{number:.2g}"
