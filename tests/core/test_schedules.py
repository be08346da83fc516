"""Schedules in the core: one message per due instant at most, and what becomes of instants that were missed."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE, CATCH_UP_ONE, SECOND_NS, CoreSettings
from dragoman.core.timers import Timers
from tests.core.harness import START_NS, House
from tests.core.replaying import check_replay, from_checkpoint, replayed

BODY = b'["run", {"path": "mail"}]'


def scheduled(
    interval: bytes = b"10", cron: bytes = b"", headers: bytes = b"nohaste", catch_up: int = CATCH_UP_ONE
) -> House:
    settings = CoreSettings()
    settings.catch_up = catch_up
    house = House(settings)
    house.client().say(b"SCHEDULE", b"s", b"mail", headers, interval, BODY, cron)
    house.commit()
    return house


def jump(house: House, seconds: float) -> None:
    """Time passes without a sweep: the broker was down, or busy."""
    house.commit()
    house.now_ns += int(seconds * SECOND_NS)
    house.core.set_time(house.now_ns)
    for _ in range(20):
        house.timers.sweep(house.now_ns, house.now_ns)
        house.commit()


def fires(house: House) -> list[int]:
    """Due instants that made a message, in seconds since the start."""
    return [
        (fact["due_ns"] - START_NS) // SECOND_NS
        for fact in house.facts("fired")
        if fact["message_no"]  # type: ignore[operator]
    ]


def test_an_interval_fires_once_per_instant() -> None:
    house = scheduled()
    house.pass_time(35)
    assert fires(house) == [10, 20, 30]
    assert len(house.facts("accepted")) == 3


def test_missed_instants_collapse_to_the_latest_one() -> None:
    house = scheduled(catch_up=CATCH_UP_ONE)
    jump(house, 47)
    assert fires(house) == [40]
    jump(house, 4)
    assert fires(house) == [40, 50]


def test_missed_instants_make_nothing_when_told_so() -> None:
    house = scheduled(catch_up=CATCH_UP_NONE)
    jump(house, 47)
    assert fires(house) == []
    jump(house, 4)
    assert fires(house) == [50]


def test_missed_instants_make_one_message_each_when_told_so() -> None:
    house = scheduled(catch_up=CATCH_UP_ALL)
    jump(house, 47)
    assert fires(house) == [10, 20, 30, 40]


def test_cron_goes_by_the_wall_clock_and_intervals_do_not() -> None:
    house = scheduled(b"-1", b"* * * * *")
    interval = scheduled(b"60")
    for one in (house, interval):
        one.commit()
        one.timers.sweep(one.now_ns, one.now_ns + 61 * SECOND_NS)
    assert len(house.facts("accepted")) == 1
    assert interval.facts("accepted") == []


def test_a_wall_clock_set_back_does_not_fire_the_same_minute_twice() -> None:
    house = scheduled(b"-1", b"* * * * *")
    for wall_s in (61, 30, 59, 62, 100):
        house.commit()
        house.timers.sweep(house.now_ns, house.now_ns + wall_s * SECOND_NS)
    due = [fact["due_ns"] for fact in house.facts("fired")]
    assert len(due) == len(set(due))


@pytest.mark.parametrize("catch_up", [CATCH_UP_NONE, CATCH_UP_ONE, CATCH_UP_ALL])
def test_schedules_survive_restart_and_checkpoint_with_their_next_instant_and_runs(catch_up: int) -> None:
    house = scheduled(headers=b"nohaste,run_count:5", catch_up=catch_up)
    house.pass_time(25)
    check_replay(house)
    for core in (replayed(house), from_checkpoint(house)):
        (schedule,) = core.state.schedules.values()
        assert (schedule.runs_left, schedule.fired) == (3, 2)
        assert schedule.next_due_ns == START_NS + 30 * SECOND_NS
        assert schedule.template.body == BODY


def test_a_due_instant_that_was_fired_before_a_restart_is_not_fired_after_it() -> None:
    house = scheduled()
    house.pass_time(20.05)
    core = replayed(house)
    core.start(2, b"0.1.0")
    core.log.take()
    Timers(core).sweep(house.now_ns, house.now_ns)
    assert core.log.count == 0


def test_a_schedule_that_used_up_its_runs_is_gone_and_so_it_is_after_a_replay() -> None:
    house = scheduled(headers=b"run_count:2")
    house.pass_time(30)
    assert fires(house) == [0, 10]
    assert house.core.state.schedules == {}
    assert replayed(house).state.schedules == {}


def test_a_replaced_schedule_is_one_schedule_also_after_a_replay() -> None:
    house = scheduled()
    house.client(b"again").say(b"SCHEDULE", b"s2", b"mail", b"nohaste", b"20", BODY, b"")
    check_replay(house)
    for core in (house.core, replayed(house), from_checkpoint(house)):
        (schedule,) = core.state.schedules.values()
        assert schedule.interval_ns == 20 * SECOND_NS


def test_a_tiny_interval_is_refused() -> None:
    house = scheduled(b"1e-9")
    assert house.core.state.schedules == {}


def test_what_a_schedule_makes_expires_by_its_header() -> None:
    house = scheduled(headers=b"nohaste,expires:15")
    house.pass_time(45)
    assert len(house.facts("accepted")) == 4
    assert house.core.state.queues[b"mail"].waiting == 2  # those of the last 15 s: nobody served them
    check_replay(house)


@pytest.mark.parametrize(
    ("word", "fields"), [(b"@hourly", b"0 * * * *"), (b"@Daily", b"0 0 * * *"), (b"@weekly", b"0 0 * * 0")]
)
def test_a_word_is_as_good_as_its_cron_fields(word: bytes, fields: bytes) -> None:
    due = [scheduled(b"-1", cron).core.state.schedules for cron in (word, fields)]
    assert [s.next_due_ns for s in due[0].values()] == [s.next_due_ns for s in due[1].values()] != []
