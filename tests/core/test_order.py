"""Who is served first: priorities, clients in turn, what came back before what is fresh."""

from __future__ import annotations

from collections import Counter

from dragoman.core.settings import CoreSettings
from dragoman.model.enums import BY_OPERATOR
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker, Worker
from tests.core.replaying import check_replay, restart


def served(broker: InMemoryBroker, slots: int, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def test_a_queue_is_first_in_first_out() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    ids = [client.request(b"mail") for _ in range(20)]
    assert served(broker, 20).jobs() == ids


def test_every_priority_is_a_lane_of_its_own_and_the_highest_goes_first() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    asked = {n: client.request(b"mail", headers=b"priority:%d" % n) for n in (3, 0, 9, 5, 1)}
    assert served(broker, 5).jobs() == [asked[n] for n in (9, 5, 3, 1, 0)]


def test_a_flooding_client_delays_another_by_one_turn_only() -> None:
    broker = InMemoryBroker()
    flood, modest = broker.client(b"flood"), broker.client(b"modest")
    for _ in range(500):
        flood.request(b"mail")
    wanted = [modest.request(b"mail") for _ in range(3)]
    assert [job for job in served(broker, 8).jobs() if job in wanted] == wanted


def test_clients_are_served_equally_however_unequally_they_ask() -> None:
    broker = InMemoryBroker()
    owners: dict[bytes, bytes] = {}
    for name, count in ((b"a", 100), (b"b", 30), (b"c", 25)):
        client = broker.client(name)
        for _ in range(count):
            owners[client.request(b"mail")] = name
    first = Counter(owners[job] for job in served(broker, 60).jobs())
    assert first == {b"a": 20, b"b": 20, b"c": 20}


def test_what_came_back_is_served_before_what_is_fresh() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    ids = [client.request(b"mail") for _ in range(4)]
    first = served(broker, 2, b"first")
    first.leave()
    assert served(broker, 4, b"second").jobs() == ids
    recount(broker.core)


def test_what_came_back_keeps_its_priority() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    low = client.request(b"mail")
    first = served(broker, 1, b"first")
    assert first.jobs() == [low]
    high = client.request(b"mail", headers=b"priority:5")
    first.leave()
    assert served(broker, 2, b"second").jobs() == [high, low]


def test_an_unfit_message_of_low_priority_does_not_pass_a_fit_one_of_high_priority() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    picky = broker.worker(b"picky")
    picky.inform_as_original((10, b"mail"))
    picky.ready(1)
    low = client.request(b"mail", b"\xff\xfe")
    assert picky.jobs() == []
    picky.leave()
    high = client.request(b"mail", b'["run", {}]', b"priority:5")
    worker = served(broker, 2)
    assert worker.jobs() == [high, low]


def test_a_message_that_changes_lines_leaves_nothing_behind_that_could_serve_it_twice() -> None:
    """Judged unfit after it came back, it waits in another line; its old entry must not yield it again."""
    broker = InMemoryBroker()
    client = broker.client()
    ids = [client.request(b"mail", b"\xff\xfe %d" % n) for n in range(3)]
    first = served(broker, 3, b"first")
    assert first.jobs() == ids
    first.leave()
    picky = broker.worker(b"picky")
    picky.inform_as_original((10, b"mail"))
    picky.ready(3)
    recount(broker.core)
    check_replay(broker)
    assert picky.jobs() == []
    assert served(broker, 9, b"third").jobs() == ids
    recount(broker.core)


def test_an_idle_worker_gets_a_fresh_message_without_a_line() -> None:
    broker = InMemoryBroker()
    worker = served(broker, 1)
    job = broker.client().request(b"mail")
    assert worker.jobs() == [job]
    assert not broker.core.state.queues[b"mail"].lanes[0].lines


def test_a_blocked_worker_gets_nothing_until_it_reads_again() -> None:
    broker = InMemoryBroker()
    worker = served(broker, 2)
    worker.session.is_blocked = True
    job = broker.client().request(b"mail")
    assert worker.jobs() == []
    broker.core.unblock(worker.session)
    broker.go_on()
    assert worker.jobs() == [job]
    recount(broker.core)


def test_what_was_cancelled_out_of_the_tail_does_not_change_the_order_over_two_restarts() -> None:
    """A message that is leased out of the middle of a line leaves an entry behind; that entry must not count when it comes back."""
    settings = CoreSettings()
    settings.head_max = 1
    broker = InMemoryBroker(settings)
    served(broker, 1)
    client = broker.client()
    ids = [client.request(b"mail", message_id=b"m%d" % n) for n in (1, 2)]  # the first is leased, the second waits
    broker = restart(broker, by_checkpoint=False)
    client = broker.client()
    ids += [
        client.request(b"mail", message_id=b"m%d" % n) for n in range(3, 8)
    ]  # beyond the head of the line: on disk only
    last = broker.core.lookup(ids.pop())
    assert last is not None
    broker.core.cancel(last, BY_OPERATOR)
    assert served(broker, 3).jobs() == ids[:3]
    broker = restart(broker, by_checkpoint=False)
    recount(broker.core)
    check_replay(broker)
    assert served(broker, 6).jobs() == ids
