"""Schedules in the core: one message per due instant at most, and what becomes of instants that were missed."""

from __future__ import annotations

import time

import pytest

from dragoman.core.settings import CATCH_UP_ALL, CATCH_UP_NONE, CATCH_UP_ONE, CoreSettings
from dragoman.core.timers import Timers
from dragoman.limits import REWINDS_PER_SWEEP_MAX
from dragoman.model.units import SECOND_NS
from tests.core.harness import START_NS, InMemoryBroker
from tests.core.replaying import check_replay, from_checkpoint, replayed, restart

BODY = b'["run", {"path": "mail"}]'


def scheduled(
    interval: bytes = b"10", cron: bytes = b"", headers: bytes = b"nohaste", catch_up: int = CATCH_UP_ONE
) -> InMemoryBroker:
    settings = CoreSettings()
    settings.catch_up = catch_up
    broker = InMemoryBroker(settings)
    broker.client().say(b"SCHEDULE", b"s", b"mail", headers, interval, BODY, cron)
    broker.commit()
    return broker


def jump(broker: InMemoryBroker, seconds: float) -> None:
    """Time passes without a sweep: the broker was down, or busy."""
    broker.commit()
    broker.now_ns += int(seconds * SECOND_NS)
    broker.core.set_time(broker.now_ns)
    for _ in range(20):
        broker.timers.sweep(broker.now_ns, broker.now_ns)
        broker.commit()


def fires(broker: InMemoryBroker) -> list[int]:
    """Due instants that made a message, in seconds since the start."""
    return [
        (fact["due_ns"] - START_NS) // SECOND_NS
        for fact in broker.facts("fired")
        if fact["message_no"]  # type: ignore[operator]
    ]


def test_an_interval_fires_once_per_instant() -> None:
    broker = scheduled()
    broker.pass_time(35)
    assert fires(broker) == [10, 20, 30]
    assert len(broker.facts("accepted")) == 3


def test_missed_instants_collapse_to_the_latest_one() -> None:
    broker = scheduled(catch_up=CATCH_UP_ONE)
    jump(broker, 47)
    assert fires(broker) == [40]
    jump(broker, 4)
    assert fires(broker) == [40, 50]


def test_missed_instants_make_nothing_where_that_is_set() -> None:
    broker = scheduled(catch_up=CATCH_UP_NONE)
    jump(broker, 47)
    assert fires(broker) == []
    jump(broker, 4)
    assert fires(broker) == [50]


def test_missed_instants_make_one_message_each_where_that_is_set() -> None:
    broker = scheduled(catch_up=CATCH_UP_ALL)
    jump(broker, 47)
    assert fires(broker) == [10, 20, 30, 40]


def test_cron_goes_by_the_wall_clock_and_intervals_do_not() -> None:
    broker = scheduled(b"-1", b"* * * * *")
    interval = scheduled(b"60")
    for one in (broker, interval):
        one.commit()
        one.timers.sweep(one.now_ns, one.now_ns + 61 * SECOND_NS)
    assert len(broker.facts("accepted")) == 1
    assert interval.facts("accepted") == []


def test_a_wall_clock_set_back_does_not_fire_the_same_minute_twice() -> None:
    broker = scheduled(b"-1", b"* * * * *")
    for wall_s in (61, 30, 59, 62, 100):
        broker.commit()
        broker.timers.sweep(broker.now_ns, broker.now_ns + wall_s * SECOND_NS)
    due = [fact["due_ns"] for fact in broker.facts("fired")]
    assert len(due) == len(set(due))


@pytest.mark.parametrize("catch_up", [CATCH_UP_NONE, CATCH_UP_ONE, CATCH_UP_ALL])
def test_schedules_survive_restart_and_checkpoint_with_their_next_instant_and_runs(catch_up: int) -> None:
    broker = scheduled(headers=b"nohaste,run_count:5", catch_up=catch_up)
    broker.pass_time(25)
    check_replay(broker)
    for core in (replayed(broker), from_checkpoint(broker)):
        (schedule,) = core.state.schedules.values()
        assert (schedule.runs_left, schedule.fired) == (3, 2)
        assert schedule.next_due_ns == START_NS + 30 * SECOND_NS
        assert schedule.template.body == BODY


def test_a_due_instant_that_was_fired_before_a_restart_is_not_fired_after_it() -> None:
    broker = scheduled()
    broker.pass_time(20.05)
    core = replayed(broker)
    core.start(2, b"0.1.0", bytes(16))
    core.log.take()
    Timers(core).sweep(broker.now_ns, broker.now_ns)
    assert core.log.count == 0


def test_a_schedule_that_used_up_its_runs_is_gone_and_so_it_is_after_a_replay() -> None:
    broker = scheduled(headers=b"run_count:2")
    broker.pass_time(30)
    assert fires(broker) == [0, 10]
    assert broker.core.state.schedules == {}
    assert replayed(broker).state.schedules == {}


def test_a_replaced_schedule_is_one_schedule_also_after_a_replay() -> None:
    broker = scheduled()
    broker.client(b"again").say(b"SCHEDULE", b"s2", b"mail", b"nohaste", b"20", BODY, b"")
    check_replay(broker)
    for core in (broker.core, replayed(broker), from_checkpoint(broker)):
        (schedule,) = core.state.schedules.values()
        assert schedule.interval_ns == 20 * SECOND_NS


def test_a_tiny_interval_is_refused() -> None:
    broker = scheduled(b"1e-9")
    assert broker.core.state.schedules == {}


def test_what_a_schedule_makes_expires_by_its_header() -> None:
    broker = scheduled(headers=b"nohaste,expires:15")
    broker.pass_time(45)
    assert len(broker.facts("accepted")) == 4
    assert broker.core.state.queues[b"mail"].waiting == 2  # those of the last 15 s: nobody served them
    check_replay(broker)


@pytest.mark.parametrize(
    ("word", "fields"), [(b"@hourly", b"0 * * * *"), (b"@Daily", b"0 0 * * *"), (b"@weekly", b"0 0 * * 0")]
)
def test_a_word_is_as_good_as_its_cron_fields(word: bytes, fields: bytes) -> None:
    due = [scheduled(b"-1", cron).core.state.schedules for cron in (word, fields)]
    assert [s.next_due_ns for s in due[0].values()] == [s.next_due_ns for s in due[1].values()] != []


# -- the wall clock is set --------------------------------------------------------------------------------------------

DAY_S = 86_400


def tick(broker: InMemoryBroker, seconds: float, ahead_s: float) -> None:
    """Time passes while the wall clock shows `ahead_s` more than the broker's own."""
    end_ns = broker.now_ns + int(seconds * SECOND_NS)
    while broker.now_ns < end_ns:
        broker.commit()
        broker.now_ns += SECOND_NS // 10
        broker.core.set_time(broker.now_ns)
        broker.timers.sweep(broker.now_ns, broker.now_ns + int(ahead_s * SECOND_NS))
    broker.commit()


def every_second(catch_up: int = CATCH_UP_ONE) -> InMemoryBroker:
    return scheduled(b"-1", b"* * * * * *", catch_up=catch_up)


def test_a_cron_goes_on_at_once_when_the_clock_comes_back_from_two_days_ahead() -> None:
    broker = every_second()
    tick(broker, 3, 0)
    tick(broker, 5, 2 * DAY_S)
    before = len(fires(broker))
    tick(broker, 5, 0)
    assert fires(broker)[before:] == [9, 10, 11, 12, 13]
    check_replay(broker)


def test_a_cron_goes_on_after_a_restart_when_the_clock_came_back_while_the_broker_was_down() -> None:
    for by_checkpoint in (False, True):
        broker = every_second()
        tick(broker, 3, 0)
        tick(broker, 5, 2 * DAY_S)
        broker = restart(broker, by_checkpoint=by_checkpoint)
        before = len(fires(broker))
        tick(broker, 3, 0)
        assert fires(broker)[before:] == [9, 10, 11], f"by_checkpoint={by_checkpoint}"


def test_a_boot_under_a_clock_ahead_misses_nothing_once_the_clock_is_right() -> None:
    """The broker's own time never runs back: it stays two days ahead over the boots. Cron does not."""
    for catch_up in (CATCH_UP_ONE, CATCH_UP_NONE):
        broker = every_second(catch_up)
        broker.commit()
        broker.now_ns += 2 * DAY_S * SECOND_NS
        broker = restart(broker, by_checkpoint=True)
        tick(broker, 2, 0)
        broker = restart(broker, by_checkpoint=True)
        before = len(fires(broker))
        tick(broker, 3, -2 * DAY_S)
        assert fires(broker)[before:] == [3, 4, 5], f"catch_up={catch_up}"


def test_a_schedule_made_while_the_brokers_time_is_ahead_is_due_by_the_wall_clock() -> None:
    broker = InMemoryBroker()
    tick(broker, 1, -2 * DAY_S)
    client = broker.client()
    client.say(b"SCHEDULE", b"s1", b"mail", b"nohaste", b"-1", b'["run", {"path": "other"}]', b"* * * * * *")
    client.say(b"SCHEDULE", b"s2", b"mail", b"", b"-1", BODY, b"* * * * * *")
    tick(broker, 2, -2 * DAY_S)
    assert {second + 2 * DAY_S for second in fires(broker)} == {1, 2, 3}
    assert len(fires(broker)) == 5, "one that has haste runs at once, too"


@pytest.mark.parametrize("back_s", [1, 90])
def test_instants_that_had_their_turn_are_not_due_again_when_the_clock_is_set_back_a_little(back_s: int) -> None:
    for restarts in (False, True):
        broker = every_second()
        tick(broker, 100, 0)
        if restarts:
            broker = restart(broker, by_checkpoint=True)
        tick(broker, back_s + 3, -back_s)
        assert fires(broker) == list(range(1, 104)), f"restarts={restarts}"


@pytest.mark.parametrize("catch_up", [CATCH_UP_ONE, CATCH_UP_NONE])
def test_a_year_of_missed_seconds_costs_no_more_than_one(catch_up: int) -> None:
    broker = every_second(catch_up)
    tick(broker, 1, 0)
    began_s = time.thread_time()
    tick(broker, 1, 365 * DAY_S)
    assert time.thread_time() - began_s < 1, "thirty million instants are not looked at one by one"
    ahead = [second for second in fires(broker) if second > DAY_S]
    assert len(ahead) == (2 if catch_up == CATCH_UP_ONE else 1)


def test_many_crons_are_found_anew_a_few_in_each_sweep() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for number in range(100):
        body = b'["run", {"path": "mail%d"}]' % number
        client.say(b"SCHEDULE", b"s", b"mail", b"nohaste", b"-1", body, b"0 0 * * *")
    assert len(broker.core.state.schedules) == 100
    tick(broker, 1, 2 * DAY_S)
    assert all(s.next_due_ns > START_NS + 2 * DAY_S * SECOND_NS for s in broker.core.state.schedules.values())
    broker.timers.sweep(broker.now_ns, broker.now_ns)
    found = [s for s in broker.core.state.schedules.values() if s.due_ns() < START_NS + DAY_S * SECOND_NS]
    assert len(found) == REWINDS_PER_SWEEP_MAX
    assert broker.timers.when_next() <= broker.core.now_ns
    tick(broker, 1, 0)
    assert all(s.due_ns() < START_NS + DAY_S * SECOND_NS for s in broker.core.state.schedules.values())
    assert broker.timers.when_next() > broker.core.now_ns


def test_a_clock_that_goes_back_and_forth_within_a_second_makes_nothing_run_twice() -> None:
    """Seed 12865 of the simulator."""
    for catch_up in (CATCH_UP_ONE, CATCH_UP_NONE, CATCH_UP_ALL):
        broker = every_second(catch_up)
        tick(broker, 8.1, 0)
        tick(broker, 0.4, -2 * DAY_S)
        tick(broker, 3.5, 0)
        assert fires(broker) == list(range(1, 13)), f"catch_up={catch_up}"
