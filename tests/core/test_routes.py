"""Where answers go when several connections claim one identity."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from tests.core.harness import Client, InMemoryBroker, Worker


def served(broker: InMemoryBroker, slots: int = 1) -> Worker:
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def results(client: Client) -> list[bytes]:
    return [frames[2] for frames in client.take(b"REPLY") if len(frames) == 3]


def test_an_answer_goes_to_the_connection_that_asked_while_it_is_there() -> None:
    broker = InMemoryBroker()
    first, second = broker.client(b"same"), broker.client(b"same")
    mine, yours = (client.request(b"mail", headers=b"reply-requested") for client in (first, second))
    worker = served(broker, 2)
    for job in worker.jobs():
        worker.reply(job)
    assert (results(first), results(second)) == ([mine], [yours])


def test_what_was_asked_on_a_connection_that_ended_goes_to_the_newest_of_its_identity() -> None:
    broker = InMemoryBroker()
    first = broker.client(b"same")
    job = first.request(b"mail", headers=b"reply-requested")
    second, third = broker.client(b"same"), broker.client(b"same")
    first.leave()
    served(broker).reply(job)
    assert (results(second), results(third)) == ([], [job])


def test_when_the_newest_of_an_identity_leaves_an_older_one_is_still_reached() -> None:
    """A message whose object went to disk finds its client by address alone."""
    settings = CoreSettings()
    settings.head_max = 1
    broker = InMemoryBroker(settings)
    first = broker.client(b"same")
    jobs = [first.request(b"mail", headers=b"reply-requested") for _ in range(3)]
    broker.client(b"same").leave()
    worker = served(broker, 3)
    for job in worker.jobs():
        worker.reply(job)
    assert results(first) == jobs


def test_an_older_connection_that_leaves_takes_nothing_from_the_newest() -> None:
    broker = InMemoryBroker()
    first, second = broker.client(b"same"), broker.client(b"same")
    third = broker.client(b"same")
    second.leave()
    first.leave()
    job = third.request(b"mail", headers=b"reply-requested")
    served(broker).reply(job)
    assert results(third) == [job]
    third.leave()
    assert (broker.core.routes.peers.get(third.session.address), broker.core.routes.older) == (None, {})
