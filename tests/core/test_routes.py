"""Where answers go when several connections claim one identity."""

from __future__ import annotations

from dragoman.core.settings import CoreSettings
from dragoman.model.peer import address_of, shortened
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


LONGEST = b"x" * 254


def test_identities_of_the_longest_size_that_differ_in_their_last_byte_are_two_clients() -> None:
    broker = InMemoryBroker()
    one, other = broker.client(LONGEST + b"1"), broker.client(LONGEST + b"2")
    job = one.request(b"mail", headers=b"reply-requested")
    one.leave()
    worker = served(broker)
    worker.reply(worker.jobs()[0])
    assert results(other) == []
    assert results(broker.client(LONGEST + b"1")) == [job]


def test_no_identity_claims_the_address_of_a_longer_one() -> None:
    longest = LONGEST + b"1"
    claims = [longest[:254], shortened(longest), b"\x03" + shortened(longest), longest]
    addresses = {address_of(listener_no, identity, 1, 1) for listener_no in (3, 4) for identity in claims}
    assert len(addresses) == 2 * len(claims)
    assert max(map(len, addresses)) == 255
