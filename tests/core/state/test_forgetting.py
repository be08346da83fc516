"""Queues that nobody uses are forgotten, in the state and in every replay of it."""

from __future__ import annotations

import pytest

from dragoman.core.operator import set_draining, set_paused
from dragoman.core.settings import CoreSettings
from dragoman.core.state.forgetting import on_queue_forgotten
from dragoman.core.state.queue import Queue
from dragoman.core.storage.snapshot import encode
from dragoman.limits import QUEUE_NO_MAX, QUEUES_MAX
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker
from tests.core.replaying import check_replay, replayed

FORGET_S = 10


def forgetful(dedupe_window_s: int = 1) -> InMemoryBroker:
    settings = CoreSettings()
    settings.forget_ns = FORGET_S * SECOND_NS
    settings.dedupe_window_ns = dedupe_window_s * SECOND_NS
    return InMemoryBroker(settings)


def used(broker: InMemoryBroker, name: bytes) -> None:
    """A message came and was answered."""
    client, worker = broker.client(b"c-" + name), broker.worker(b"w-" + name)
    worker.inform((10, name))
    worker.ready()
    client.request(name, b"{}", b"reply-requested")
    for job in worker.jobs():
        worker.reply(job)
    worker.leave()
    client.leave()


def names(broker: InMemoryBroker) -> list[bytes]:
    return list(broker.core.state.queues)


def test_an_idle_queue_is_forgotten_after_its_time_and_not_before() -> None:
    broker = forgetful()
    used(broker, b"once")
    broker.pass_time(FORGET_S - 1)
    assert names(broker) == [b"once"]
    broker.pass_time(2)
    assert names(broker) == []
    (fact,) = broker.facts("queue_forgotten")
    assert (fact["queue"], fact["queue_no"], fact["reason"]) == ("once", 1, "none")
    recount(broker.core)
    check_replay(broker)


def test_by_default_the_core_forgets_nothing() -> None:
    broker = InMemoryBroker()
    used(broker, b"once")
    broker.pass_time(100)
    assert names(broker) == [b"once"]


@pytest.mark.parametrize(
    "why", ["waiting", "delayed", "leased", "quarantined", "served", "paused", "draining", "dedupe", "scheduled"]
)
def test_a_queue_that_something_refers_to_is_kept_and_an_operator_is_refused_with_the_reason(why: str) -> None:
    broker = forgetful(1000)
    used(broker, b"mail")
    client = broker.client()
    if why == "waiting":
        client.request(b"mail")
    elif why == "delayed":
        client.request(b"mail", b"{}", b"delay:1000")
    elif why == "dedupe":
        client.request(b"mail", b"{}", b"expires:1,dedupe:one")
    elif why == "scheduled":
        client.say(b"SCHEDULE", b"s", b"mail", b"nohaste", b"1000", b'["run", {"path": "mail"}]', b"")
    elif why in ("paused", "draining"):
        set_paused(broker.core, b"mail", True) if why == "paused" else set_draining(broker.core, b"mail")
    else:
        worker = broker.worker()
        worker.inform((10, b"mail"))
        if why != "served":
            worker.ready()
            client.request(b"mail")
        if why == "quarantined":
            broker.core.settings.quarantine_after = 1
            worker.leave()
            assert broker.core.state.queues[b"mail"].quarantined == 1
    for _ in range(FORGET_S * 3):
        broker.pass_time(1)
        if why in ("served", "leased"):
            worker.heartbeat()
    assert names(broker) == [b"mail"]
    reason = broker.core.forgetting.forget_by_operator(b"mail")
    words = {
        "waiting": "waiting for a worker",
        "leased": "in the hands of workers",
        "served": "serving it",
        "draining": "drained",
    }
    assert words.get(why, why[:8]) in reason, reason
    check_replay(broker)


def test_use_is_remembered_over_restarts_and_checkpoints() -> None:
    broker = forgetful()
    used(broker, b"old")
    broker.pass_time(FORGET_S - 4)
    used(broker, b"young")
    core = replayed(broker)
    assert core.state.queues[b"old"].used_ns < core.state.queues[b"young"].used_ns
    assert encode(core.state, None) == encode(broker.core.state, None)


def test_a_number_is_never_used_again_also_after_a_restart() -> None:
    broker = forgetful()
    used(broker, b"one")
    used(broker, b"two")
    broker.pass_time(FORGET_S + 2)
    assert names(broker) == []
    core = replayed(broker)
    assert core.state.next_queue_no == 3
    client = broker.client()
    client.request(b"one")
    assert broker.core.state.queues[b"one"].number == 3
    check_replay(broker)


def test_when_numbers_run_out_new_names_are_refused() -> None:
    broker = forgetful()
    broker.core.state.next_queue_no = QUEUE_NO_MAX
    client = broker.client()
    client.request(b"mail", b"{}", b"reply-requested")
    assert b"TOO_MANY_QUEUES" in client.take(b"REPLY")[0][1]


def test_sums_do_not_fall_and_durations_are_counted_on_with_the_others() -> None:
    broker = forgetful()
    used(broker, b"mail")
    assert len(broker.core.tallies.own_spans) == 1
    broker.pass_time(FORGET_S + 2)
    assert broker.core.state.forgotten.done == 1
    assert broker.core.tallies.own_spans == []
    assert sum(count for _, count in broker.core.tallies.other_spans.total.pairs()) == 1
    assert replayed(broker).state.forgotten.done == 1


def test_what_expires_later_in_a_forgotten_queue_meets_nothing() -> None:
    broker = forgetful()
    broker.core.settings.head_max = 1
    client = broker.client()
    for _ in range(5):
        client.request(b"mail", b"{}", b"expires:30")
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(5)
    for job in worker.jobs():
        worker.reply(job)
    worker.leave()
    broker.pass_time(FORGET_S + 2)
    assert names(broker) == []
    broker.pass_time(30)
    check_replay(broker)


def test_a_worker_that_only_drained_may_outlast_its_queue() -> None:
    broker = forgetful()
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.say(b"KBYE", broker.next_id())
    for _ in range(FORGET_S + 2):
        broker.pass_time(1)
        worker.heartbeat()
    assert names(broker) == []
    check_replay(broker)
    worker.leave()
    check_replay(broker)
    core = replayed(broker)
    core.start(2, b"0.1.0")
    recount(core)


@pytest.mark.long
def test_room_under_the_limit_comes_back_with_a_hundred_thousand_names() -> None:
    broker = forgetful()
    core = broker.core
    for number in range(QUEUES_MAX):
        core.roster.name_queue(b"job-%d" % number)
    broker.commit()
    client = broker.client()
    client.request(b"one-more", b"{}", b"reply-requested")
    assert b"TOO_MANY_QUEUES" in client.take(b"REPLY")[0][1]
    kept = client.request(b"job-7")
    broker.pass_time(FORGET_S)
    for _ in range(QUEUES_MAX // 200 + 110):  # in steps
        broker.now_ns += SECOND_NS // 10
        core.set_time(broker.now_ns)
        before = len(core.state.queues)
        core.forgetting.sweep(core.now_ns)
        assert before - len(core.state.queues) <= 200
        broker.commit()
    assert names(broker) == [b"job-7"]
    client.request(b"one-more")
    assert core.state.queues[b"one-more"].number == QUEUES_MAX + 1
    assert core.lookup(kept) is not None
    assert set(replayed(broker).state.queues) == {b"job-7", b"one-more"}


def test_a_queue_is_found_by_its_name_whatever_it_is_called_and_whatever_was_forgotten() -> None:
    state = InMemoryBroker().core.state
    empty = Queue(1, b"")
    other = Queue(2, b"other")
    for queue in (empty, other):
        state.queues[queue.name] = state.queues_by_no[queue.number] = queue
    assert state.queue_named(b"") is empty
    assert state.queue_named(b"other") is other
    on_queue_forgotten(state, other)
    assert state.queue_named(b"other") is None
    assert state.queue_named(b"") is empty
