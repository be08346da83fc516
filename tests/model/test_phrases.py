"""Numbers as people read them."""

from __future__ import annotations

import pytest

from dragoman.model import phrases
from dragoman.model.units import SECOND_NS
from tests.core.harness import START_NS


@pytest.mark.parametrize(
    ("span_ns", "text"),
    [
        (400_000, "0.4 ms"),
        (320_000_000, "320 ms"),
        (12_340_000_000, "12.3 s"),
        (840 * SECOND_NS, "14 min"),
        (5 * 3600 * SECOND_NS, "5.0 h"),
        (12 * 86400 * SECOND_NS, "12 days"),
    ],
)
def test_durations_read_as_people_say_them(span_ns: int, text: str) -> None:
    assert phrases.duration(span_ns) == text


def test_an_instant_far_away_comes_with_its_date() -> None:
    assert phrases.instant(START_NS, START_NS + SECOND_NS) == "22:13:20 UTC"
    assert phrases.instant(START_NS, START_NS + 86400 * SECOND_NS) == "2023-11-14 22:13:20 UTC"


@pytest.mark.parametrize("text", ["", "1.", ".1", "x", "1.2.3", "-1", "12345678901234567890123", "²"])
def test_what_is_no_number_is_not_read_as_one(text: str) -> None:
    assert phrases.read_number(text) == -1


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (999, "999 B"), (1500, "1.5 kB"), (2_500_000, "2.5 MB"), (3_000_000_000, "3.00 GB")]
)
def test_sizes_read_as_people_write_them(count: int, text: str) -> None:
    assert phrases.size(count) == text
