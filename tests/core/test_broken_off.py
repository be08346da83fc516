"""Work of any size is done in steps that others may come between: leases, releases, schedules. Order and facts are as if it were one."""

from __future__ import annotations

from dragoman.core import operator
from dragoman.limits import FIRED_PER_SWEEP_MAX, JUDGED_SIZE_MAX, LEASES_PER_STEP_MAX
from dragoman.model.enums import FAILED
from tests.core.harness import Client, InMemoryBroker, Worker
from tests.core.replaying import check_replay

STEP = LEASES_PER_STEP_MAX


def filled(count: int) -> tuple[InMemoryBroker, Client, list[bytes]]:
    """A queue with so many messages, and their ids in order."""
    broker = InMemoryBroker()
    client = broker.client()
    return broker, client, [client.request(b"jobs") for _ in range(count)]


def wide_worker(broker: InMemoryBroker, slots: int, identity: bytes = b"worker") -> Worker:
    """It serves the queue, and has so many slots at once."""
    worker = broker.worker(identity)
    worker.inform((10, b"jobs"))
    broker.core.ready(worker.session, slots)
    return worker


def go_on(broker: InMemoryBroker) -> int:
    steps = 0
    while broker.core.roster.has_more():
        broker.core.roster.go_on()
        broker.commit()
        steps += 1
    return steps


def test_a_worker_with_many_slots_is_given_what_waits_in_steps() -> None:
    broker, _, asked = filled(3 * STEP)
    worker = wide_worker(broker, 10 * STEP)
    assert len(worker.session.work.leases) == STEP
    assert go_on(broker) == 3
    assert worker.jobs() == asked
    check_replay(broker)


def test_what_comes_fresh_meanwhile_waits_behind_what_waits() -> None:
    broker, client, asked = filled(STEP + 10)
    worker = wide_worker(broker, 10 * STEP)
    asked.append(client.request(b"jobs"))
    assert len(worker.session.work.leases) == STEP, "it is not overtaken"
    go_on(broker)
    assert worker.jobs() == asked
    asked = [client.request(b"jobs")]
    assert worker.jobs() == asked, "and from then on it is given out at once"


def test_a_worker_that_leaves_meanwhile_is_given_nothing_more() -> None:
    broker, _, asked = filled(2 * STEP)
    worker = wide_worker(broker, 10 * STEP)
    worker.say(b"KBYE", b"1")
    go_on(broker)
    assert worker.jobs() == asked[:STEP]
    worker.leave()
    go_on(broker)
    assert broker.core.state.queues[b"jobs"].waiting == 2 * STEP
    check_replay(broker)


def test_a_queue_that_is_resumed_gives_out_in_steps_and_in_order() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    workers = [wide_worker(broker, 2 * STEP, b"worker%d" % no) for no in range(2)]
    operator.set_paused(broker.core, b"jobs", True)
    asked = [client.request(b"jobs") for _ in range(2 * STEP)]
    operator.set_paused(broker.core, b"jobs", False)
    late = client.request(b"jobs")
    given = [job for worker in workers for job in worker.jobs()]
    assert sorted(given) == sorted(asked[:STEP])
    go_on(broker)
    given = [job for worker in workers for job in worker.jobs()]
    assert sorted(given) == sorted([*asked[STEP:], late])
    check_replay(broker)


def test_what_a_lost_worker_held_is_taken_back_in_steps() -> None:
    broker, _, asked = filled(2 * STEP + 7)
    worker = wide_worker(broker, 10 * STEP)
    go_on(broker)
    worker.leave()
    queue = broker.core.state.queues[b"jobs"]
    assert (queue.waiting, queue.leased) == (STEP, STEP + 7)
    check_replay(broker)
    assert go_on(broker) == 2
    assert (queue.waiting, queue.leased) == (2 * STEP + 7, 0)
    check_replay(broker)
    other = wide_worker(broker, 10 * STEP, b"other")
    go_on(broker)
    assert other.jobs() == asked


def test_an_answer_from_the_lost_counts_while_it_is_not_taken_back() -> None:
    broker, _, asked = filled(2 * STEP)
    worker = wide_worker(broker, 10 * STEP)
    go_on(broker)
    broker.core.lose(worker.session, FAILED)
    worker.reply(asked[-1])
    go_on(broker)
    assert broker.core.state.settled == 1
    assert broker.core.state.queues[b"jobs"].waiting == 2 * STEP - 1
    check_replay(broker)


def test_a_timed_lease_that_ends_after_its_worker_was_lost_does_not_stop_later_timeouts() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    asked = [client.request(b"jobs", headers=b"timeout:2") for _ in range(2 * STEP)]
    worker = wide_worker(broker, 10 * STEP)
    go_on(broker)
    broker.core.lose(worker.session, FAILED)
    worker.reply(asked[-1])
    worker.inform((10, b"other"))
    client.request(b"other", headers=b"timeout:2")
    worker.ready()
    go_on(broker)
    assert len(worker.session.work.leases) == 1
    broker.pass_time(3.0)
    assert not worker.session.work.leases, "its attempt has timed out"


def test_one_that_is_back_at_once_keeps_what_it_is_given_anew() -> None:
    broker, client, _ = filled(2 * STEP)
    worker = wide_worker(broker, 2 * STEP)
    go_on(broker)
    broker.core.lose(worker.session, FAILED)
    worker.inform((10, b"other"))
    fresh = client.request(b"other")
    worker.ready()
    assert worker.jobs()[-1] == fresh
    go_on(broker)
    assert [m.client_id for m in worker.session.work.leases.values()] == [fresh]
    (released,) = {fact["worker_no"] for fact in broker.facts("released")}
    assert released != worker.session.number, "the facts name the worker that it was"
    check_replay(broker)


def test_schedules_that_are_due_at_one_instant_fire_in_steps_the_longest_due_first() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for no in range(3 * FIRED_PER_SWEEP_MAX):
        client.say(b"SCHEDULE", b"%d" % no, b"jobs", b"nohaste", b"10", b'["run",{"n":%d}]' % no, b"")
    broker.now_ns += 10 * 10**9
    for fired in (1, 2, 3):
        broker.commit()
        broker.core.set_time(broker.now_ns)
        assert broker.timers.when_next() <= broker.now_ns
        broker.timers.sweep(broker.now_ns, broker.now_ns)
        assert len(broker.facts("fired")) == fired * FIRED_PER_SWEEP_MAX
    assert broker.timers.when_next() > broker.now_ns
    assert len({fact["schedule_no"] for fact in broker.facts("fired")}) == 3 * FIRED_PER_SWEEP_MAX


def test_messages_that_a_picky_worker_turns_down_are_looked_at_in_steps() -> None:
    broker, client, _ = filled(0)
    for _ in range(2 * STEP):
        client.request(b"jobs", b"not json")
    job = client.request(b"jobs", b'["run",{}]')
    original = broker.worker(b"original")
    original.inform_as_original((10, b"jobs"))
    original.ready()
    assert original.jobs() == []
    assert go_on(broker) <= 4
    assert original.jobs() == [job]
    check_replay(broker)


def test_large_messages_that_a_picky_worker_turns_down_are_looked_at_in_smaller_steps() -> None:
    broker, client, _ = filled(0)
    for _ in range(8):
        client.request(b"jobs", b"x" * (JUDGED_SIZE_MAX // 2))
    job = client.request(b"jobs", b'["run",{}]')
    original = broker.worker(b"original")
    original.inform_as_original((10, b"jobs"))
    original.ready()
    assert original.jobs() == []
    assert 4 <= go_on(broker) <= 6
    assert original.jobs() == [job]
    check_replay(broker)


def test_more_idle_workers_than_a_step_that_all_turn_it_down_end_the_search() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for no in range(STEP + 5):
        original = broker.worker(b"original%d" % no)
        original.inform_as_original((10, b"jobs"))
        original.ready()
    operator.set_paused(broker.core, b"jobs", True)
    client.request(b"jobs", b"not json")
    operator.set_paused(broker.core, b"jobs", False)
    assert go_on(broker) <= 2
    assert broker.core.state.queues[b"jobs"].waiting == 1
