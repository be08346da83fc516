"""Little memory: bodies and whole messages are on disk only, and nobody can tell."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.limits import INLINE_BODY_SIZE_MAX, MESSAGE_SIZE
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import Client, InMemoryBroker, Worker
from tests.core.replaying import check_replay, restart

LARGE = INLINE_BODY_SIZE_MAX + 1


def tight(bodies_max: int, large_bodies_max: int | None = None, objects_max: int = 1 << 62) -> InMemoryBroker:
    settings = CoreSettings()
    settings.bodies_max = bodies_max
    settings.large_bodies_max = bodies_max if large_bodies_max is None else large_bodies_max
    settings.objects_max = objects_max
    return InMemoryBroker(settings)


def served(broker: InMemoryBroker, slots: int, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def bodies(worker: Worker) -> list[bytes]:
    return [frames[3] for frames in worker.take(b"REQUEST")]


def filled(broker: InMemoryBroker, count: int, size: int) -> tuple[Client, list[bytes]]:
    client = broker.client()
    sent = [b"%d " % number + b"x" * size for number in range(count)]
    for body in sent:
        client.request(b"mail", body)
    return client, sent


def test_beyond_their_share_bodies_that_wait_are_on_disk() -> None:
    broker = tight(1000)
    _, sent = filled(broker, 50, 100)
    assert broker.core.state.bodies_size < 1200
    recount(broker.core)
    check_replay(broker)
    assert bodies(served(broker, 50)) == sent
    recount(broker.core)


def test_large_bodies_leave_memory_first() -> None:
    broker = tight(100_000, 20_000)
    client = broker.client()
    for _ in range(2):
        client.request(b"mail", b"l" * LARGE)
    for _ in range(200):
        client.request(b"mail", b"s" * 100)
    messages = list(broker.core.state.messages.values())
    assert [m.is_loaded for m in messages if m.body_size == LARGE] == [True, False]
    assert all(m.is_loaded for m in messages if m.body_size == 100)
    recount(broker.core)


def test_bodies_of_leased_messages_are_on_disk_too_and_come_back_for_the_next_worker() -> None:
    broker = tight(0)
    _, sent = filled(broker, 10, 50)
    first = served(broker, 10)
    assert bodies(first) == sent
    assert broker.core.state.bodies_size == 0
    first.leave()
    recount(broker.core)
    assert sorted(bodies(served(broker, 10, b"second"))) == sorted(sent)
    assert broker.core.state.bodies_size == 0


def test_delayed_ones_give_their_bodies_up_and_are_delivered_whole() -> None:
    broker = tight(0)
    client = broker.client()
    client.request(b"mail", b"later", b"delay:1")
    assert broker.core.state.bodies_size == 0
    worker = served(broker, 1)
    broker.pass_time(2)
    assert bodies(worker) == [b"later"]
    recount(broker.core)


def test_with_many_messages_in_memory_further_ones_wait_on_disk_whole() -> None:
    broker = tight(1 << 62, objects_max=10)
    _, sent = filled(broker, 100, 10)
    assert len(broker.core.state.messages) <= 11
    recount(broker.core)
    check_replay(broker)
    assert bodies(served(broker, 100)) == sent


def test_messages_come_back_from_disk_only_as_far_as_memory_allows() -> None:
    """Seed 1205260675 of the simulator: after a start all that waits is on disk, and the first worker got 7 MB of it into 4 MB."""
    broker = tight(10_000, objects_max=50)
    filled(broker, 100, 1_000)
    broker = restart(broker, by_checkpoint=True)
    worker = served(broker, 1)
    assert broker.core.state.bodies_size <= 10_000 + 2 * 1_010
    assert len(bodies(worker)) == 1
    recount(broker.core)


def test_lines_that_are_refilled_in_turn_stay_within_their_share_together() -> None:
    broker = tight(10_000, objects_max=20)
    clients = [broker.client(b"client %d" % number) for number in range(30)]
    for number in range(300):
        clients[number % 30].request(b"mail", b"%d " % number + b"x" * 1_000)
    broker = restart(broker, by_checkpoint=True)
    worker = served(broker, 0)
    for _ in range(150):
        worker.ready()
        assert broker.core.state.bodies_size <= 10_000 + 2 * 1_010
        for job in worker.jobs():
            worker.reply(job)
    assert len(broker.core.state.messages) <= 21
    recount(broker.core)
    check_replay(broker)


def test_what_all_messages_take_is_bounded_by_refusal_and_free_again_when_they_end() -> None:
    settings = CoreSettings()
    settings.messages_size_max = 3 * MESSAGE_SIZE
    broker = InMemoryBroker(settings)
    client = broker.client()
    for _ in range(10):
        client.request(b"mail", b"{}", b"reply-requested")
    refused = [frames for frames in client.take(b"REPLY") if b"MEMORY_FULL" in frames[1]]
    assert len(refused) == 7
    worker = served(broker, 3)
    for job in worker.jobs():
        worker.reply(job)
    assert broker.core.state.memory_size() == 0
    client.request(b"mail", b"{}", b"reply-requested")
    assert broker.core.state.memory_size() > 0


@pytest.mark.parametrize("bodies_max", [0, 500, 5000])
def test_a_waiting_message_that_was_accepted_in_this_very_tick_is_read_from_the_log(bodies_max: int) -> None:
    broker = tight(bodies_max)
    client = broker.client()
    worker = served(broker, 1)
    session, frames = client.session, [b"", b"eMQP/1.0", b"REQUEST"]
    for number in range(20):  # no commit between: they are in the log only
        session.on_message([*frames, b"id-%d" % number, b"mail", b"", b"%d " % number + b"x" * 100])
    for _ in range(19):
        worker.session.on_message([b"", b"eMQP/1.0", b"READY", b"r"])
    assert [int(body.split()[0]) for body in bodies(worker)] == list(range(20))
    recount(broker.core)


def test_a_request_refused_for_want_of_memory_creates_no_queue() -> None:
    settings = CoreSettings()
    settings.messages_size_max = MESSAGE_SIZE
    broker = InMemoryBroker(settings)
    client = broker.client()
    for queue in (b"first", b"second", b"third"):
        client.request(queue, b"{}", b"reply-requested")
    assert len([frames for frames in client.take(b"REPLY") if b"MEMORY_FULL" in frames[1]]) == 2
    assert list(broker.core.state.queues) == [b"first"]
    check_replay(broker)
