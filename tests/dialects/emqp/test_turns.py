"""Who is given the next job, and of which queue: weights, and turns between queues, workers and clients."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from tests.core.harness import InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, ready_original, ready_worker


def serve_one_by_one(worker: Worker, count: int) -> list[bytes]:
    """The queues of the next jobs, each taken with one slot."""
    served = []
    for _ in range(count):
        worker.ready()
        ((job, queue, _, _),) = worker.take(b"REQUEST")
        worker.reply(job)
        served.append(queue)
    return served


def test_a_higher_weight_is_served_first() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for _ in range(3):
        client.request(b"low")
        client.request(b"high")
    worker = broker.worker()
    worker.inform((10, b"low"), (30, b"high"))
    assert serve_one_by_one(worker, 6) == [b"high"] * 3 + [b"low"] * 3


def test_equal_weights_take_turns() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for _ in range(3):
        client.request(b"a")
        client.request(b"b")
    worker = broker.worker()
    worker.inform((10, b"a"), (10, b"b"))
    served = serve_one_by_one(worker, 6)
    assert served in ([b"a", b"b"] * 3, [b"b", b"a"] * 3)


def test_equal_weights_take_turns_whatever_other_queues_the_worker_serves() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for _ in range(6):
        client.request(b"a")
        client.request(b"b")
    worker = broker.worker()
    worker.inform((10, b"a"), (10, b"b"), (5, b"idle"), (1, b"idle-too"))
    served = serve_one_by_one(worker, 12)
    assert all(served[at] != served[at + 1] for at in range(11)), served


def test_a_low_weight_is_served_at_least_once_in_the_settings_number_of_turns() -> None:
    settings = CoreSettings()
    settings.starve_turns = 4
    broker = InMemoryBroker(settings)
    client = broker.client()
    for _ in range(40):
        client.request(b"high")
    for _ in range(3):
        client.request(b"low")
    worker = broker.worker()
    worker.inform((30, b"high"), (1, b"low"))
    served = serve_one_by_one(worker, 15)
    assert [at for at, queue in enumerate(served) if queue == b"low"] == [4, 9, 14]


def test_no_queue_starves_even_when_a_worker_serves_more_queues_than_the_setting_has_turns() -> None:
    settings = CoreSettings()
    settings.starve_turns = 3
    broker = InMemoryBroker(settings)
    client = broker.client()
    names = [b"q%02d" % n for n in range(12)]
    for name in names:
        for _ in range(30):
            client.request(name)
    worker = broker.worker()
    worker.inform(*[(100 - n, name) for n, name in enumerate(names)])
    assert set(serve_one_by_one(worker, 40)) == set(names)


def test_the_worker_that_has_been_idle_longest_gets_the_next_job() -> None:
    broker = InMemoryBroker()
    workers = [ready_worker(broker, slots=2, identity=b"w%d" % n) for n in range(3)]
    client = broker.client()
    for _ in range(6):
        client.request(b"mail")
    assert [len(worker.jobs()) for worker in workers] == [2, 2, 2]


def test_the_clients_of_a_queue_take_turns() -> None:
    broker = InMemoryBroker()
    busy, modest = broker.client(b"busy"), broker.client(b"modest")
    for _ in range(10):
        busy.request(b"mail", b"busy")
    modest.request(b"mail", b"modest")
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(2)
    assert {frames[3] for frames in worker.take(b"REQUEST")} == {b"busy", b"modest"}


def test_many_idle_workers_that_cannot_take_a_message_do_not_keep_another_from_its_worker() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    unfit = client.request(b"mail", b"\xff not for them")
    first = ready_original(broker, identity=b"first")
    job = client.request(b"mail", JOB)
    assert first.jobs() == [job]
    others = [ready_original(broker, identity=b"o%d" % n) for n in range(1500)]
    first.leave()
    assert [worker.jobs() for worker in others if worker.session.work.leases] == [[job]]
    assert ready_worker(broker, identity=b"takes-anything").jobs() == [unfit]
