"""A long line: what is beyond its head lives on disk only, comes back in order, and can be reached meanwhile."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.core.state.lines import Line
from dragoman.core.storage.carry import Carrier, live_count
from dragoman.limits import LINES_MAX
from dragoman.model.words import BY_OPERATOR
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import Client, House, Worker
from tests.core.replaying import check_replay, replayed


def small(head_max: int = 2) -> House:
    settings = CoreSettings()
    settings.head_max = head_max
    return House(settings)


def filled(house: House, count: int, headers: bytes = b"") -> tuple[Client, list[bytes]]:
    client = house.client()
    return client, [client.request(b"mail", b"body %d" % n, headers) for n in range(count)]


def served(house: House, slots: int = 1) -> Worker:
    worker = house.worker()
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def only_line(house: House) -> Line:
    (line,) = house.core.state.queues[b"mail"].lanes[0].lines.values()
    return line


def test_beyond_the_head_no_object_is_kept() -> None:
    house = small()
    filled(house, 10)
    assert len(house.core.state.messages) == 2
    assert (only_line(house).tail.live, house.core.state.queues[b"mail"].waiting) == (8, 10)
    recount(house.core)


def test_they_come_back_in_order_with_their_bodies() -> None:
    house = small()
    _, ids = filled(house, 10)
    worker = served(house, 10)
    given = worker.take(b"REQUEST")
    assert [frames[0] for frames in given] == ids
    assert [frames[3] for frames in given] == [b"body %d" % n for n in range(10)]
    recount(house.core)


def test_one_that_came_within_this_very_tick_can_be_given_out_before_the_journal_has_it() -> None:
    house = small(1)
    client, _ = filled(house, 3)
    worker = served(house, 3)
    assert len(worker.jobs()) == 3
    session, body = client.session, b"x" * 50
    frames = [b"", b"eMQP/1.0", b"REQUEST"]
    for n in range(4):  # no commit between: they are in the log only
        session.on_message([*frames, b"late-%d" % n, b"mail", b"", body])
    for _ in range(4):
        worker.session.on_message([b"", b"eMQP/1.0", b"READY", b"r"])
    assert worker.jobs() == [b"late-0", b"late-1", b"late-2", b"late-3"]


def test_a_fresh_one_stands_behind_those_on_disk() -> None:
    house = small()
    client, ids = filled(house, 5)
    worker = served(house)
    ids.append(client.request(b"mail"))
    worker.ready(9)
    assert worker.jobs() == ids


def test_one_that_returns_is_served_before_those_on_disk() -> None:
    house = small()
    _, ids = filled(house, 5)
    worker = served(house, 1)
    worker.leave()
    other = house.worker(b"other")
    other.inform((10, b"mail"))
    other.ready(5)
    assert other.jobs() == ids


@pytest.mark.parametrize("at", [0, 1, 2, 5, 9])
def test_any_of_them_can_be_cancelled_also_on_disk(at: int) -> None:
    house = small()
    _, ids = filled(house, 10)
    message = house.core.lookup(ids[at])
    assert message is not None
    house.core.cancel(message, BY_OPERATOR)
    recount(house.core)
    check_replay(house)
    assert served(house, 10).jobs() == ids[:at] + ids[at + 1 :]


def test_those_on_disk_expire_too() -> None:
    house = small()
    filled(house, 10, b"expires:1")
    client, kept = house.client(b"other"), []
    kept.append(client.request(b"mail"))
    house.pass_time(2)
    assert house.core.state.queues[b"mail"].waiting == 1
    recount(house.core)
    check_replay(house)
    assert served(house, 10).jobs() == kept


def test_an_answer_to_one_that_was_leased_before_a_restart_finds_it() -> None:
    house = small(1)
    _, ids = filled(house, 4)
    served(house, 2)
    core = replayed(house)
    core.start(2, b"0.1.0", bytes(16))
    assert core.find(ids[0]) is not None
    assert core.find(ids[1]) is not None
    assert core.state.queues[b"mail"].leased == 0
    recount(core)


def test_a_delayed_one_that_comes_due_finds_its_place_beside_those_on_disk() -> None:
    house = small(1)
    client = house.client()
    early = client.request(b"mail", headers=b"delay:1")
    ids = [client.request(b"mail") for _ in range(5)]
    house.pass_time(2)
    recount(house.core)
    check_replay(house)
    assert sorted(served(house, 10).jobs()) == sorted([early, *ids])


def test_each_client_has_its_own_far_end() -> None:
    house = small(1)
    one, two = house.client(b"one"), house.client(b"two")
    mine = [one.request(b"mail") for _ in range(4)]
    yours = [two.request(b"mail") for _ in range(4)]
    jobs = served(house, 8).jobs()
    assert [job for pair in zip(mine, yours, strict=True) for job in pair] == jobs


def test_carrying_moves_records_and_nothing_else() -> None:
    house = small()
    _, ids = filled(house, 6)
    served(house, 1)
    before = house.core.state.messages
    counts = live_count(house.core.state).counts
    assert sum(counts.values()) == 6
    (segment,) = counts
    carrier = Carrier(house.core.state, house.core.log, house.core.quarantine, segment)
    while carrier.step(2):
        pass
    assert house.core.log.count == 0, "a carried record is storage, not a fact"
    house.commit()
    assert house.core.state.messages == before
    check_replay(house)
    other = house.worker(b"other")
    other.inform((10, b"mail"))
    other.ready(9)
    given = other.take(b"REQUEST")
    assert [frames[0] for frames in given] == ids[1:]
    assert [frames[3] for frames in given] == [b"body %d" % n for n in range(1, 6)]
    recount(house.core)


def test_more_clients_than_lines_share_them_and_nobody_is_forgotten() -> None:
    house = small(1000)
    clients = LINES_MAX + 200
    ids = []
    for n in range(clients):
        client = house.client(b"one-shot-%d" % n)
        ids.append(client.request(b"mail"))
        client.leave()
    lines = house.core.state.queues[b"mail"].lanes[0].lines
    assert len(lines) <= LINES_MAX
    assert len(house.core.state.messages) < clients, "a second message of a line that is not alone stays on disk"
    assert sorted(served(house, clients).jobs()) == sorted(ids)
