"""Delays, expiries and dedupe keys: what time does to messages, and what it must not leave behind."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from dragoman.limits import DUE_PER_SWEEP_MAX, STALE_ENTRIES_MAX
from dragoman.model.enums import BY_OPERATOR, JOURNAL_FULL
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.recount import check_bounds, recount
from tests.core.harness import InMemoryBroker, Worker
from tests.core.replaying import check_replay, from_checkpoint, replayed


def served(broker: InMemoryBroker, slots: int = 1) -> Worker:
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def keep_alive(broker: InMemoryBroker, worker: Worker, seconds: float) -> None:
    """Let time pass while a worker signs."""
    for _ in range(int(seconds)):
        broker.pass_time(1)
        worker.heartbeat()


def test_delayed_messages_come_due_in_the_order_of_their_instants() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    late, early = client.request(b"mail", headers=b"delay:3"), client.request(b"mail", headers=b"delay:1")
    worker = served(broker, 2)
    keep_alive(broker, worker, 2)
    assert worker.jobs() == [early]
    keep_alive(broker, worker, 2)
    assert worker.jobs() == [late]


def test_a_delay_that_ends_while_a_block_waits_for_the_disk_is_served_after_it() -> None:
    """The core's time stands still while its log is not empty; a sweep by a later clock must come to an end and do it later."""
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", headers=b"delay:1")
    worker = served(broker)
    broker.now_ns += 900_000_000
    broker.core.set_time(broker.now_ns)
    client.session.on_message([b"", b"eMQP/1.0", b"REQUEST", b"other", b"elsewhere", b"", b""])  # not committed
    broker.timers.sweep(broker.now_ns + 200_000_000, broker.now_ns + 200_000_000)
    assert broker.core.state.queues[b"mail"].delayed == 1
    broker.commit()
    broker.pass_time(0.3)
    assert worker.jobs() == [job]


def test_a_delayed_message_stays_delayed_over_a_restart_and_a_checkpoint() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", headers=b"delay:5")
    for core in (replayed(broker), from_checkpoint(broker)):
        assert core.state.queues[b"mail"].delayed == 1
        recount(core)


def test_the_state_reads_the_same_whether_the_sweep_has_been_or_not() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for _ in range(3):
        client.request(b"mail", headers=b"delay:1")
    broker.pass_time(2)
    assert broker.core.state.queues[b"mail"].waiting == 3
    check_replay(broker)


def test_an_expired_message_is_closed_wherever_it_waits() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", headers=b"expires:1")
    client.request(b"mail", headers=b"expires:1,delay:30")
    broker.pass_time(2)
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["expired", "expired"]
    recount(broker.core)


def test_a_leased_message_outlives_its_expiry_and_expires_when_it_comes_back() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", headers=b"expires:1")
    worker = served(broker)
    keep_alive(broker, worker, 3)
    assert broker.facts("closed") == []
    worker.leave()
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["expired"]


def test_an_expiry_that_passed_while_the_broker_was_down_is_kept() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", headers=b"expires:1")
    for core in (replayed(broker), from_checkpoint(broker)):
        assert core.state.expiries.watched == 1


def test_settled_messages_with_far_expiries_are_forgotten() -> None:
    broker = InMemoryBroker()
    client, worker = broker.client(), served(broker, 1)
    for _ in range(3 * STALE_ENTRIES_MAX):
        job = client.request(b"mail", headers=b"expires:86400")
        worker.reply(job)
        worker.ready()
    assert broker.core.state.expiries.watched <= STALE_ENTRIES_MAX + 1
    check_bounds(broker.core)


def test_watching_again_forgets_nobody_not_even_those_on_disk() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    broker = InMemoryBroker(settings)
    client = broker.client()
    for _ in range(5):
        client.request(b"mail", headers=b"expires:50")
    broker.core.state.expiries.watch_again(broker.core.state.messages, broker.core.state.queues)
    assert broker.core.state.expiries.watched == broker.core.state.expiries.expiring == 5
    broker.pass_time(51)
    assert len(broker.facts("closed")) == 5


def test_cancelled_delays_do_not_pile_up() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for _ in range(3 * STALE_ENTRIES_MAX):
        message = broker.core.lookup(client.request(b"mail", headers=b"delay:86400"))
        assert message is not None
        broker.core.cancel(message, BY_OPERATOR)
    assert len(broker.core.state.delayed) <= STALE_ENTRIES_MAX + 1
    client.request(b"mail", headers=b"delay:1")
    broker.pass_time(2)
    assert broker.core.state.queues[b"mail"].waiting == 1


def test_a_dedupe_key_is_remembered_over_restart_and_checkpoint_and_forgotten_after_its_window() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail", headers=b"dedupe:once")
    for core in (replayed(broker), from_checkpoint(broker)):
        assert list(core.state.queues[b"mail"].dedupe) == [b"once"]
    broker.client(b"again").request(b"mail", headers=b"dedupe:once")
    assert len(broker.facts("accepted")) == 1
    broker.pass_time(601)
    broker.client(b"later").request(b"mail", headers=b"dedupe:once")
    assert len(broker.facts("accepted")) == 2


def test_only_so_many_dedupe_keys_are_remembered_the_oldest_go() -> None:
    settings = CoreSettings()
    settings.dedupe_keys_max = 3
    broker = InMemoryBroker(settings)
    client = broker.client()
    for n in range(5):
        client.request(b"mail", headers=b"dedupe:k%d" % n)
    assert list(broker.core.state.queues[b"mail"].dedupe) == [b"k2", b"k3", b"k4"]


def test_a_due_schedule_that_may_not_fire_does_not_keep_the_broker_awake() -> None:
    broker = InMemoryBroker()
    broker.client().say(b"SCHEDULE", b"s", b"mail", b"", b"1", b'["run", {}]', b"")
    broker.core.refusing = JOURNAL_FULL
    broker.pass_time(3)
    assert broker.facts("fired") == []
    assert broker.timers.when_next() > broker.core.now_ns
    broker.core.refusing = 0
    broker.pass_time(0.2)
    assert len(broker.facts("fired")) == 1


def test_what_is_over_at_once_is_ended_a_few_in_each_sweep_and_without_a_pause() -> None:
    """Delays, expiries and leases: no sweep takes longer because more of them are due."""
    broker = InMemoryBroker()
    client, worker = broker.client(), broker.worker()
    worker.inform((10, b"leased"))
    count = 3 * DUE_PER_SWEEP_MAX
    worker.ready(count)
    for _ in range(count):
        client.request(b"leased", headers=b"timeout:1")
        client.request(b"expires", headers=b"expires:1")
        client.request(b"delayed", headers=b"delay:1")
    broker.commit()
    broker.now_ns += 30 * SECOND_NS
    ends, sweeps = 0, 0
    while True:
        sweeps += 1
        broker.core.set_time(broker.now_ns)
        broker.timers.sweep(broker.now_ns, broker.now_ns)
        found = len(broker.facts("closed", "released"))
        assert found - ends <= 2 * DUE_PER_SWEEP_MAX
        ends = found
        if broker.timers.when_next() > broker.core.now_ns:
            break
    assert sweeps == 4
    assert ends == 2 * count
    assert broker.core.state.queues[b"delayed"].waiting == count
    recount(broker.core)
