"""A long line: what is beyond its head lives on disk only, comes back in order, and can be reached meanwhile."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.core.state.lines import Line
from dragoman.core.storage.live_walk import Carrier, live_count
from dragoman.limits import LINES_MAX
from dragoman.model.enums import BY_OPERATOR
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import Client, InMemoryBroker, Worker
from tests.core.replaying import check_replay, replayed


def small(head_max: int = 2) -> InMemoryBroker:
    settings = CoreSettings()
    settings.head_max = head_max
    return InMemoryBroker(settings)


def filled(broker: InMemoryBroker, count: int, headers: bytes = b"") -> tuple[Client, list[bytes]]:
    client = broker.client()
    return client, [client.request(b"mail", b"body %d" % n, headers) for n in range(count)]


def served(broker: InMemoryBroker, slots: int = 1) -> Worker:
    worker = broker.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def only_line(broker: InMemoryBroker) -> Line:
    (line,) = broker.core.state.queues[b"mail"].lanes[0].lines.values()
    return line


def test_beyond_the_head_no_object_is_kept() -> None:
    broker = small()
    filled(broker, 10)
    assert len(broker.core.state.messages) == 2
    assert (only_line(broker).tail.live, broker.core.state.queues[b"mail"].waiting) == (8, 10)
    recount(broker.core)


def test_they_come_back_in_order_with_their_bodies() -> None:
    broker = small()
    _, ids = filled(broker, 10)
    worker = served(broker, 10)
    given = worker.take(b"REQUEST")
    assert [frames[0] for frames in given] == ids
    assert [frames[3] for frames in given] == [b"body %d" % n for n in range(10)]
    recount(broker.core)


def test_one_that_came_within_this_very_tick_can_be_given_out_before_the_journal_has_it() -> None:
    broker = small(1)
    client, _ = filled(broker, 3)
    worker = served(broker, 3)
    assert len(worker.jobs()) == 3
    session, body = client.session, b"x" * 50
    frames = [b"", b"eMQP/1.0", b"REQUEST"]
    for n in range(4):  # no commit between: they are in the log only
        session.on_message([*frames, b"late-%d" % n, b"mail", b"", body])
    for _ in range(4):
        worker.session.on_message([b"", b"eMQP/1.0", b"READY", b"r"])
    assert worker.jobs() == [b"late-0", b"late-1", b"late-2", b"late-3"]


def test_a_fresh_one_stands_behind_those_on_disk() -> None:
    broker = small()
    client, ids = filled(broker, 5)
    worker = served(broker)
    ids.append(client.request(b"mail"))
    worker.ready(9)
    assert worker.jobs() == ids


def test_one_that_returns_is_served_before_those_on_disk() -> None:
    broker = small()
    _, ids = filled(broker, 5)
    worker = served(broker, 1)
    worker.leave()
    other = broker.worker(b"other")
    other.inform((10, b"mail"))
    other.ready(5)
    assert other.jobs() == ids


@pytest.mark.parametrize("at", [0, 1, 2, 5, 9])
def test_any_of_them_can_be_cancelled_also_on_disk(at: int) -> None:
    broker = small()
    _, ids = filled(broker, 10)
    message = broker.core.lookup(ids[at])
    assert message is not None
    broker.core.cancel(message, BY_OPERATOR)
    recount(broker.core)
    check_replay(broker)
    assert served(broker, 10).jobs() == ids[:at] + ids[at + 1 :]


def test_those_on_disk_expire_too() -> None:
    broker = small()
    filled(broker, 10, b"expires:1")
    client, kept = broker.client(b"other"), []
    kept.append(client.request(b"mail"))
    broker.pass_time(2)
    assert broker.core.state.queues[b"mail"].waiting == 1
    recount(broker.core)
    check_replay(broker)
    assert served(broker, 10).jobs() == kept


def test_an_answer_to_one_that_was_leased_before_a_restart_finds_it() -> None:
    broker = small(1)
    _, ids = filled(broker, 4)
    served(broker, 2)
    core = replayed(broker)
    core.start(2, b"0.1.0", bytes(16))
    assert core.find(ids[0]) is not None
    assert core.find(ids[1]) is not None
    assert core.state.queues[b"mail"].leased == 0
    recount(core)


def test_a_delayed_one_that_comes_due_finds_its_place_beside_those_on_disk() -> None:
    broker = small(1)
    client = broker.client()
    early = client.request(b"mail", headers=b"delay:1")
    ids = [client.request(b"mail") for _ in range(5)]
    broker.pass_time(2)
    recount(broker.core)
    check_replay(broker)
    assert sorted(served(broker, 10).jobs()) == sorted([early, *ids])


def test_each_client_has_its_own_far_end() -> None:
    broker = small(1)
    one, two = broker.client(b"one"), broker.client(b"two")
    mine = [one.request(b"mail") for _ in range(4)]
    yours = [two.request(b"mail") for _ in range(4)]
    jobs = served(broker, 8).jobs()
    assert [job for pair in zip(mine, yours, strict=True) for job in pair] == jobs


def test_carrying_moves_records_and_nothing_else() -> None:
    broker = small()
    _, ids = filled(broker, 6)
    served(broker, 1)
    before = broker.core.state.messages
    counts = live_count(broker.core.state).counts
    assert sum(counts.values()) == 6
    (segment,) = counts
    carrier = Carrier(broker.core.state, broker.core.log, broker.core.quarantine, segment)
    while carrier.step(2):
        pass
    assert broker.core.log.count == 0, "a carried record is storage, not a fact"
    broker.commit()
    assert broker.core.state.messages == before
    check_replay(broker)
    other = broker.worker(b"other")
    other.inform((10, b"mail"))
    other.ready(9)
    given = other.take(b"REQUEST")
    assert [frames[0] for frames in given] == ids[1:]
    assert [frames[3] for frames in given] == [b"body %d" % n for n in range(1, 6)]
    recount(broker.core)


def test_more_clients_than_lines_share_them_and_nobody_is_forgotten() -> None:
    broker = small(1000)
    clients = LINES_MAX + 200
    ids = []
    for n in range(clients):
        client = broker.client(b"one-shot-%d" % n)
        ids.append(client.request(b"mail"))
        client.leave()
    lines = broker.core.state.queues[b"mail"].lanes[0].lines
    assert len(lines) <= LINES_MAX
    assert len(broker.core.state.messages) < clients, "a second message of a line that is not alone stays on disk"
    assert sorted(served(broker, clients).jobs()) == sorted(ids)
