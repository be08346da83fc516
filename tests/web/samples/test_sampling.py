"""What is kept of the past: rates over real spans of time, each point in its own place, nothing older than its label says."""

from __future__ import annotations

import pytest

from dragoman.model.units import SECOND_NS
from dragoman.web.pages.overview import known_minutes
from dragoman.web.samples.history import SLOT_NS, SLOT_S, SLOTS_KEPT, ChartSample, History, Trail
from dragoman.web.samples.samples import QueueSample

BEGIN_NS = 1_000_000 * SLOT_NS


def queue(accepted: int, waiting: int = 0) -> QueueSample:
    return QueueSample(1, accepted, waiting)


def look(at_s: float, accepted: int = 0, waiting: int = 0, boot_no: int = 1) -> ChartSample:
    return ChartSample(BEGIN_NS + int(at_s * SECOND_NS), boot_no, accepted, 0, waiting, 0, {}, {})


def test_two_looks_within_milliseconds_make_no_rate() -> None:
    trail = Trail()
    trail.add(BEGIN_NS, queue(0))
    trail.add(BEGIN_NS + SECOND_NS, queue(2))
    trail.add(BEGIN_NS + SECOND_NS + 3_000_000, queue(7))
    assert trail.in_rate == 2.0
    trail.add(BEGIN_NS + 2 * SECOND_NS, queue(7))
    assert trail.in_rate == 5.0, "what came in between is not lost"


def test_a_trail_ends_two_minutes_ago_however_seldom_somebody_samples() -> None:
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


def test_the_ten_seconds_in_which_the_broker_was_killed_are_drawn() -> None:
    history = History()
    history.add(look(0))
    history.add(look(4, accepted=20))
    history.add(look(7, accepted=21, boot_no=2))
    history.add(look(10, accepted=90, boot_no=2))
    assert [point.accepted_rate for point in history.hour() if point is not None] == [5.0]
    assert history.hour()[-1] is not None


def test_right_after_a_start_no_rate_is_taken_for_that_of_now() -> None:
    history = History()
    history.add(look(0))
    history.add(look(1, accepted=20))
    assert history.latest() is not None
    history.add(look(3, accepted=20, boot_no=2))
    assert history.latest() is None
    assert len(history.seconds) == 1


@pytest.mark.parametrize("back_s", [60, 1800, 7200, 10**6])
def test_the_hour_goes_on_when_the_clock_was_set_back(back_s: int) -> None:
    history = History()
    for at_s in range(0, 3600, SLOT_S):
        history.add(look(at_s, waiting=1))
    for at_s in range(3600 - back_s, 3700 - back_s, SLOT_S):
        history.add(look(at_s, waiting=2))
    assert [point.waiting for point in history.hour()[-8:] if point is not None] == [2] * 8
    newest = BEGIN_NS // SLOT_NS + (3700 - back_s) // SLOT_S
    assert all(newest - SLOTS_KEPT - 2 <= slot < newest for slot in history.slots)


def test_the_hour_says_how_much_of_it_is_known_and_not_how_wide_it_is_drawn() -> None:
    history = History()
    for at_s in (0, 1, 2):
        history.add(look(at_s))
    assert known_minutes(history.hour()) == 0
    for slot in range(1, 8):
        history.add(look(slot * SLOT_S))
    assert len(history.hour()) == 30
    assert known_minutes(history.hour()) == 1
