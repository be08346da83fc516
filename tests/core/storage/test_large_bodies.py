"""Bodies that are on disk only come back in steps: no turn reads much, nobody is overtaken, and nothing of it is a fact."""

from __future__ import annotations

import pytest

from dragoman.core import operator
from dragoman.core.queries.lookup import find_message
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.live_walk import Carrier, DamageCheck
from dragoman.core.storage.stored import peek_body
from dragoman.limits import VERIFIED_SHARE
from dragoman.model.enums import BY_OPERATOR
from dragoman.model.message import Message
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import FIRST_POSITION, Client, InMemoryBroker, Worker
from tests.core.replaying import canonical, check_replay, restart

STEP = 100
LARGE = 1000


def house_of(head_max: int = 100, bodies_max: int = 1 << 62, step: int = STEP) -> InMemoryBroker:
    settings = CoreSettings()
    settings.load_step_size = step
    settings.head_max = head_max
    settings.bodies_max = settings.large_bodies_max = bodies_max
    broker = InMemoryBroker(settings)
    broker.read_whole_size = 300
    return broker


def filled(broker: InMemoryBroker, sizes: list[int], headers: bytes = b"") -> tuple[Client, list[bytes]]:
    client = broker.client()
    sent = [b"%d " % number + b"x" * size for number, size in enumerate(sizes)]
    for body in sent:
        client.request(b"mail", body, headers)
    return client, sent


def on_disk(broker: InMemoryBroker) -> InMemoryBroker:
    """The same after a restart: no body is in memory."""
    after = restart(broker, by_checkpoint=False)
    assert after.core.state.bodies_size == 0
    return after


def join(
    broker: InMemoryBroker, slots: int = 10, identity: bytes = b"worker", queues: tuple[bytes, ...] = (b"mail",)
) -> Worker:
    worker = broker.worker(identity)
    worker.inform(*((10, queue) for queue in queues))
    worker.ready(slots)
    return worker


def bodies(worker: Worker) -> list[bytes]:
    return [frames[3] for frames in worker.take(b"REQUEST")]


def first(broker: InMemoryBroker, queue: bytes = b"mail") -> Message:
    m = broker.core.lookup(b"job-1")
    assert m is not None
    return m


def test_a_large_body_comes_back_in_as_many_turns_as_it_has_steps() -> None:
    broker = house_of()
    _, sent = filled(broker, [LARGE])
    broker = on_disk(broker)
    worker = join(broker, 1)
    before = canonical(broker.core)
    efforts = []
    while broker.core.roster.has_more():
        if not worker.session.work.leases:
            assert canonical(broker.core) == before, "nothing has happened to it"
        read_cost = broker.core.state.stored.read_cost
        broker.core.roster.go_on()
        efforts.append(broker.core.state.stored.read_cost - read_cost)
    assert max(efforts) <= STEP
    assert len(efforts) >= LARGE // STEP
    assert bodies(worker) == sent
    recount(broker.core)
    check_replay(broker)


@pytest.mark.parametrize("head_max", [1, 100])
def test_large_and_small_ones_are_given_out_in_their_order(head_max: int) -> None:
    broker = house_of(head_max)
    _, sent = filled(broker, [5, LARGE, 50, 20, 2 * LARGE, 3, 90, 90, 90])
    broker = on_disk(broker)
    worker = join(broker)
    broker.go_on()
    assert bodies(worker) == sent
    recount(broker.core)
    check_replay(broker)


def test_small_bodies_of_one_turn_are_no_more_than_a_step() -> None:
    broker = house_of(step=1000)
    _, sent = filled(broker, [400] * 20)
    broker = on_disk(broker)
    worker = join(broker, 20)
    while broker.core.roster.has_more():
        read_cost = broker.core.state.stored.read_cost
        broker.core.roster.go_on()
        assert broker.core.state.stored.read_cost - read_cost < 2 * 1000
    assert bodies(worker) == sent


def test_what_is_put_back_stands_where_it_stood() -> None:
    broker = house_of()
    one, two = broker.client(b"one"), broker.client(b"two")
    ids = [client.request(b"mail", b"%d" % number * LARGE) for number in range(3) for client in (one, two)]
    broker = on_disk(broker)
    early = join(broker, 2, b"early")
    broker.go_on()
    assert early.jobs() == ids[:2]
    early.leave()  # what it held is at the returned end now, behind nothing
    late = join(broker, 6, b"late")
    turns = broker.go_on()
    assert turns >= 4 * LARGE // STEP
    assert late.jobs() == ids
    check_replay(broker)


def test_one_that_is_cancelled_while_it_is_loaded_is_loaded_no_more() -> None:
    broker = house_of()
    _, sent = filled(broker, [LARGE, LARGE])
    broker = on_disk(broker)
    worker = join(broker, 1)
    for _ in range(3):
        broker.core.roster.go_on()
    broker.core.cancel(first(broker), BY_OPERATOR)
    assert broker.core.state.queues[b"mail"].waiting == 1
    broker.go_on()
    assert bodies(worker) == sent[1:]
    assert broker.core.state.bodies_size == len(sent[1])
    recount(broker.core)
    check_replay(broker)


def test_one_that_expires_while_it_is_loaded_is_not_delivered() -> None:
    broker = house_of()
    client, _ = filled(broker, [LARGE], b"expires:1")
    client.request(b"mail", b"next")
    broker = on_disk(broker)
    worker = join(broker, 1)
    for _ in range(3):
        broker.core.roster.go_on()
    broker.pass_time(2)
    assert broker.facts("closed")
    broker.go_on()
    assert bodies(worker) == [b"next"]
    recount(broker.core)
    check_replay(broker)


def test_a_damaged_one_is_set_aside_and_the_next_is_given_out() -> None:
    broker = house_of()
    _, sent = filled(broker, [LARGE, LARGE])
    broker = on_disk(broker)
    worker = join(broker, 1)
    broker.damaged.add(first(broker).position)
    broker.go_on()
    assert bodies(worker) == sent[1:]
    assert list(broker.core.state.quarantine) == [first(broker).number]
    recount(broker.core)
    check_replay(broker)


def test_one_whose_record_is_carried_while_it_is_loaded_is_read_at_its_new_place() -> None:
    broker = house_of()
    _, sent = filled(broker, [LARGE])
    broker = on_disk(broker)
    worker = join(broker, 1)
    for _ in range(3):
        broker.core.roster.go_on()
    m = first(broker)
    old = m.position
    carrier = Carrier(broker.core.state, broker.core.log, broker.core.quarantine, FIRST_POSITION >> 32)
    while carrier.step(10):
        pass
    broker.commit()
    assert m.position != old
    broker.damaged.add(old)  # nobody may read there any more
    broker.go_on()
    assert bodies(worker) == sent


def test_the_worker_that_a_body_was_read_for_may_leave_and_another_gets_it() -> None:
    broker = house_of(bodies_max=0)
    _, sent = filled(broker, [LARGE])
    worker = join(broker, 1, b"one")
    broker.core.roster.go_on()
    worker.leave()
    assert broker.go_on() <= 4, "nobody wants it: it is not loaded to its end"
    other = join(broker, 1, b"two")
    broker.go_on()
    assert bodies(other) == sent
    recount(broker.core)


def test_a_body_that_nobody_takes_after_all_leaves_memory_again() -> None:
    broker = house_of(bodies_max=0)
    filled(broker, [LARGE])
    join(broker, 1, b"one")
    for _ in range(3):
        broker.core.roster.go_on()
    operator.set_paused(broker.core, b"mail", True)
    broker.go_on()
    assert broker.core.state.bodies_size == 0
    recount(broker.core)


def test_little_memory_and_many_who_want_large_bodies_end_with_all_of_them_served() -> None:
    """Each worker serves two queues of large bodies, and no body may stay: what is loaded for one is not unloaded for another."""
    broker = house_of(bodies_max=0)
    client = broker.client()
    sent = []
    for number in range(12):
        for queue in (b"a", b"b"):
            sent.append(b"%s%d " % (queue, number) + b"x" * LARGE)
            client.request(queue, sent[-1])
    workers = [join(broker, 4, b"w%d" % number, (b"a", b"b")) for number in range(6)]
    turns = broker.go_on()
    given = [body for worker in workers for body in bodies(worker)]
    assert sorted(given) == sorted(sent)
    assert all(len(worker.session.work.leases) == 4 for worker in workers)
    assert turns < 3 * len(sent) * LARGE // STEP
    recount(broker.core)
    check_replay(broker)


def test_idle_workers_and_busy_ones_have_their_large_bodies_in_turn() -> None:
    """One worker with many slots wants many; a queue that is resumed wants one, and does not wait for all of those."""
    broker = house_of(bodies_max=0)
    client = broker.client()
    for number in range(20):
        client.request(b"many", b"m%d " % number + b"x" * LARGE)
    join(broker, 1, b"idle", (b"few",))
    operator.set_paused(broker.core, b"few", True)
    client.request(b"few", b"y" * LARGE)
    greedy = join(broker, 20, b"greedy", (b"many",))
    operator.set_paused(broker.core, b"few", False)
    few = broker.core.state.queues[b"few"]
    while few.leased == 0:
        assert broker.core.roster.has_more()
        broker.core.roster.go_on()
    assert len(greedy.session.work.leases) <= 3
    broker.go_on()
    assert len(greedy.session.work.leases) == 20


def test_picky_workers_of_two_kinds_do_not_unload_what_the_other_waits_for() -> None:
    broker = house_of(bodies_max=0)
    client = broker.client()
    json = b'["run",{"x":"' + b"y" * LARGE + b'"}]'
    for body in (b"not json " + b"n" * LARGE, json):
        client.request(b"mail", body)
    original = broker.worker(b"original")
    original.inform_as_original((10, b"mail"))
    original.ready()
    other = join(broker, 1)
    broker.go_on()
    assert bodies(original) == [json]
    assert [body[:8] for body in bodies(other)] == [b"not json"]
    recount(broker.core)
    check_replay(broker)


def test_a_delayed_one_that_comes_due_waits_for_its_body_in_its_line() -> None:
    broker = house_of(bodies_max=0)
    client = broker.client()
    client.request(b"mail", b"later " + b"x" * LARGE, b"delay:1")
    worker = join(broker, 1)
    broker.pass_time(2)
    assert bodies(worker) == []
    assert broker.core.state.queues[b"mail"].waiting == 1
    broker.go_on()
    assert [body[:5] for body in bodies(worker)] == [b"later"]
    check_replay(broker)


def test_a_refill_proves_large_bodies_and_leaves_them_on_disk() -> None:
    broker = house_of(head_max=1)
    filled(broker, [LARGE] * 5)
    broker = on_disk(broker)
    join(broker, 1)
    assert broker.core.state.stored.read_cost <= 2 * LARGE // VERIFIED_SHARE
    assert broker.core.state.bodies_size == 0


def test_large_ones_expire_as_fast_as_they_can_be_read() -> None:
    broker = house_of(head_max=1)
    filled(broker, [LARGE] * 20, b"expires:1")
    broker = on_disk(broker)
    stored = broker.core.state.stored
    broker.now_ns += 2 * 10**9
    sweeps = 0
    while broker.core.state.queues[b"mail"].waiting:
        broker.commit()
        broker.core.set_time(broker.now_ns)
        assert broker.timers.when_next() <= broker.now_ns
        read_cost = stored.read_cost
        broker.timers.sweep(broker.now_ns, broker.now_ns)
        assert stored.read_cost - read_cost <= STEP + 2 * LARGE // VERIFIED_SHARE
        sweeps += 1
    assert sweeps > 5
    assert len(broker.facts("closed")) == 20
    recount(broker.core)
    check_replay(broker)


def test_a_damage_check_reads_no_more_than_a_step() -> None:
    broker = house_of(head_max=1)
    filled(broker, [LARGE] * 20)
    broker = on_disk(broker)
    stored = broker.core.state.stored
    check = DamageCheck(broker.core.state, broker.core.quarantine, FIRST_POSITION, FIRST_POSITION + len(broker.records))
    steps, is_open = 0, True
    while is_open:
        read_cost = stored.read_cost
        is_open = check.step(100, 100)
        assert stored.read_cost - read_cost <= STEP + 2 * LARGE // VERIFIED_SHARE
        steps += 1
    assert steps > 5
    assert check.count == 0


def test_a_purge_reads_no_more_than_a_step_at_a_time() -> None:
    broker = house_of(head_max=1)
    filled(broker, [LARGE] * 20)
    broker = on_disk(broker)
    counts = []
    while count := operator.purge(broker.core, b"mail", 100):
        counts.append(count)
    assert sum(counts) == 20
    assert len(counts) > 5
    check_replay(broker)


@pytest.mark.parametrize("most", [0, 5, 10_000])
def test_a_question_about_a_body_brings_no_more_of_it_into_memory_than_is_shown(most: int) -> None:
    broker = house_of()
    _, sent = filled(broker, [LARGE])
    broker = on_disk(broker)
    m = find_message(broker.core, "job-1")
    assert m is not None
    assert peek_body(broker.core.state, m, most) == sent[0][:most]
    assert not m.is_loaded
    assert m.body_size == len(sent[0])
