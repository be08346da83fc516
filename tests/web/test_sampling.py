"""What is kept of the past: rates over real spans of time, each point in its own place, nothing older than its label says."""

from __future__ import annotations

from typing import Any

from dragoman.model.census import Census
from dragoman.model.units import SECOND_NS
from dragoman.web.history import SLOT_NS, SLOT_S, History, Look
from dragoman.web.pages.overview import known_minutes
from dragoman.web.refill import points_of
from dragoman.web.trails import Trail

BEGIN_NS = 1_000_000 * SLOT_NS


def queue(accepted: int, waiting: int = 0) -> dict[str, Any]:
    return {"accepted": accepted, "waiting": waiting, "delayed": 0, "leased": 0, "quarantined": 0}


def look(at_s: float, accepted: int = 0, waiting: int = 0) -> Look:
    return Look(BEGIN_NS + int(at_s * SECOND_NS), 1, accepted, 0, waiting, 0, {}, {})


def test_two_looks_within_milliseconds_make_no_rate() -> None:
    trail = Trail()
    trail.add(BEGIN_NS, queue(0))
    trail.add(BEGIN_NS + SECOND_NS, queue(2))
    trail.add(BEGIN_NS + SECOND_NS + 3_000_000, queue(7))
    assert trail.in_rate == 2.0
    trail.add(BEGIN_NS + 2 * SECOND_NS, queue(7))
    assert trail.in_rate == 5.0, "what came in between is not lost"


def test_a_trail_ends_two_minutes_ago_however_seldom_somebody_looks() -> None:
    trail = Trail()
    for number in range(60):
        trail.add(BEGIN_NS + number * SLOT_NS, queue(0, waiting=number))
    assert trail.waiting == list(range(48, 60))


def test_a_trail_goes_on_when_the_clock_was_set_back() -> None:
    trail = Trail()
    trail.add(BEGIN_NS, queue(0, waiting=1))
    trail.add(BEGIN_NS - 3600 * SECOND_NS, queue(0, waiting=2))
    assert trail.waiting == [2]


def test_a_point_stands_in_the_ten_seconds_that_it_tells_of() -> None:
    history = History()
    history.add(look(0.2))
    history.add(look(10.2, accepted=50))
    assert [point.accepted_rate for point in history.hour() if point is not None] == [5.0]
    assert history.hour()[-1] is not None, "the newest place is that of the slot which has just ended"
    history.add(look(20.2, accepted=50))
    assert [point and point.accepted_rate for point in history.hour()[-2:]] == [5.0, 0.0]


def test_the_slot_that_goes_on_now_is_not_filled_in_from_the_journal() -> None:
    now = look(3, waiting=7)
    slot = BEGIN_NS // SLOT_NS
    over, going_on = Census(set()), Census(set())
    over.accepted, over.waiting = 40, 4
    going_on.accepted, going_on.waiting = 3, 3
    points = points_of({slot - 1: over, slot: going_on}, {}, slot - 1, now)
    assert [(point.at_ns // SLOT_NS, point.accepted_rate, point.waiting) for point in points] == [
        (slot - 1, 40 / SLOT_S, 4)
    ]


def test_the_hour_says_how_much_of_it_is_known_and_not_how_wide_it_is_drawn() -> None:
    history = History()
    for at_s in (0, 1, 2):
        history.add(look(at_s))
    assert known_minutes(history.hour()) == 0
    for slot in range(1, 8):
        history.add(look(slot * SLOT_S))
    assert len(history.hour()) == 30
    assert known_minutes(history.hour()) == 1
