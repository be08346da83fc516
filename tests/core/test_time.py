"""Delays, expiries and dedupe keys: what time does to messages, and what it must not leave behind."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from dragoman.limits import DUE_PER_SWEEP_MAX, STALE_ENTRIES_MAX
from dragoman.model.units import SECOND_NS
from dragoman.model.words import BY_OPERATOR, JOURNAL_FULL
from dragoman_lab.sim.checks.recount import check_bounds, recount
from tests.core.harness import House, Worker
from tests.core.replaying import check_replay, from_checkpoint, replayed


def served(house: House, slots: int = 1) -> Worker:
    worker = house.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def keep_alive(house: House, worker: Worker, seconds: float) -> None:
    """Let time pass while a worker signs."""
    for _ in range(int(seconds)):
        house.pass_time(1)
        worker.heartbeat()


def test_delayed_messages_come_due_in_the_order_of_their_instants() -> None:
    house = House()
    client = house.client()
    late, early = client.request(b"mail", headers=b"delay:3"), client.request(b"mail", headers=b"delay:1")
    worker = served(house, 2)
    keep_alive(house, worker, 2)
    assert worker.jobs() == [early]
    keep_alive(house, worker, 2)
    assert worker.jobs() == [late]


def test_a_delay_that_ends_while_a_block_waits_for_the_disk_is_served_after_it() -> None:
    """The core's time stands still while its log is not empty; a sweep by a later clock must come to an end and do it later."""
    house = House()
    client = house.client()
    job = client.request(b"mail", headers=b"delay:1")
    worker = served(house)
    house.now_ns += 900_000_000
    house.core.set_time(house.now_ns)
    client.session.on_message([b"", b"eMQP/1.0", b"REQUEST", b"other", b"elsewhere", b"", b""])  # not committed
    house.timers.sweep(house.now_ns + 200_000_000, house.now_ns + 200_000_000)
    assert house.core.state.queues[b"mail"].delayed == 1
    house.commit()
    house.pass_time(0.3)
    assert worker.jobs() == [job]


def test_a_delayed_message_stays_delayed_over_a_restart_and_a_checkpoint() -> None:
    house = House()
    house.client().request(b"mail", headers=b"delay:5")
    for core in (replayed(house), from_checkpoint(house)):
        assert core.state.queues[b"mail"].delayed == 1
        recount(core)


def test_the_state_reads_the_same_whether_the_sweep_has_been_or_not() -> None:
    house = House()
    client = house.client()
    for _ in range(3):
        client.request(b"mail", headers=b"delay:1")
    house.pass_time(2)
    assert house.core.state.queues[b"mail"].waiting == 3
    check_replay(house)


def test_an_expired_message_is_closed_wherever_it_waits() -> None:
    house = House()
    client = house.client()
    client.request(b"mail", headers=b"expires:1")
    client.request(b"mail", headers=b"expires:1,delay:30")
    house.pass_time(2)
    assert [fact["outcome"] for fact in house.facts("closed")] == ["expired", "expired"]
    recount(house.core)


def test_a_leased_message_outlives_its_expiry_and_expires_when_it_comes_back() -> None:
    house = House()
    house.client().request(b"mail", headers=b"expires:1")
    worker = served(house)
    keep_alive(house, worker, 3)
    assert house.facts("closed") == []
    worker.leave()
    assert [fact["outcome"] for fact in house.facts("closed")] == ["expired"]


def test_an_expiry_that_passed_while_the_broker_was_down_is_kept() -> None:
    house = House()
    house.client().request(b"mail", headers=b"expires:1")
    for core in (replayed(house), from_checkpoint(house)):
        assert core.state.expiries.watched == 1


def test_settled_messages_with_far_expiries_are_forgotten() -> None:
    house = House()
    client, worker = house.client(), served(house, 1)
    for _ in range(3 * STALE_ENTRIES_MAX):
        job = client.request(b"mail", headers=b"expires:86400")
        worker.reply(job)
        worker.ready()
    assert house.core.state.expiries.watched <= STALE_ENTRIES_MAX + 1
    check_bounds(house.core)


def test_watching_again_forgets_nobody_not_even_those_on_disk() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    house = House(settings)
    client = house.client()
    for _ in range(5):
        client.request(b"mail", headers=b"expires:50")
    house.core.state.expiries.watch_again(house.core.state.messages, house.core.state.queues)
    assert house.core.state.expiries.watched == house.core.state.expiries.expiring == 5
    house.pass_time(51)
    assert len(house.facts("closed")) == 5


def test_cancelled_delays_do_not_pile_up() -> None:
    house = House()
    client = house.client()
    for _ in range(3 * STALE_ENTRIES_MAX):
        message = house.core.lookup(client.request(b"mail", headers=b"delay:86400"))
        assert message is not None
        house.core.cancel(message, BY_OPERATOR)
    assert len(house.core.state.delayed) <= STALE_ENTRIES_MAX + 1
    client.request(b"mail", headers=b"delay:1")
    house.pass_time(2)
    assert house.core.state.queues[b"mail"].waiting == 1


def test_a_dedupe_key_is_remembered_over_restart_and_checkpoint_and_forgotten_after_its_window() -> None:
    house = House()
    house.client().request(b"mail", headers=b"dedupe:once")
    for core in (replayed(house), from_checkpoint(house)):
        assert list(core.state.queues[b"mail"].dedupe) == [b"once"]
    house.client(b"again").request(b"mail", headers=b"dedupe:once")
    assert len(house.facts("accepted")) == 1
    house.pass_time(601)
    house.client(b"later").request(b"mail", headers=b"dedupe:once")
    assert len(house.facts("accepted")) == 2


def test_only_so_many_dedupe_keys_are_remembered_the_oldest_go() -> None:
    settings = CoreSettings()
    settings.dedupe_keys_max = 3
    house = House(settings)
    client = house.client()
    for n in range(5):
        client.request(b"mail", headers=b"dedupe:k%d" % n)
    assert list(house.core.state.queues[b"mail"].dedupe) == [b"k2", b"k3", b"k4"]


def test_a_due_schedule_that_may_not_fire_does_not_keep_the_broker_awake() -> None:
    house = House()
    house.client().say(b"SCHEDULE", b"s", b"mail", b"", b"1", b'["run", {}]', b"")
    house.core.refusing = JOURNAL_FULL
    house.pass_time(3)
    assert house.facts("fired") == []
    assert house.timers.when_next() > house.core.now_ns
    house.core.refusing = 0
    house.pass_time(0.2)
    assert len(house.facts("fired")) == 1


def test_what_is_over_at_once_is_ended_a_few_in_each_sweep_and_without_a_pause() -> None:
    """Delays, expiries and leases: no sweep takes longer because more of them are due."""
    house = House()
    client, worker = house.client(), house.worker()
    worker.inform((10, b"leased"))
    count = 3 * DUE_PER_SWEEP_MAX
    worker.ready(count)
    for _ in range(count):
        client.request(b"leased", headers=b"timeout:1")
        client.request(b"expires", headers=b"expires:1")
        client.request(b"delayed", headers=b"delay:1")
    house.commit()
    house.now_ns += 30 * SECOND_NS
    ends, sweeps = 0, 0
    while True:
        sweeps += 1
        house.core.set_time(house.now_ns)
        house.timers.sweep(house.now_ns, house.now_ns)
        found = len(house.facts("closed", "released"))
        assert found - ends <= 2 * DUE_PER_SWEEP_MAX
        ends = found
        if house.timers.when_next() > house.core.now_ns:
            break
    assert sweeps == 4
    assert ends == 2 * count
    assert house.core.state.queues[b"delayed"].waiting == count
    recount(house.core)
