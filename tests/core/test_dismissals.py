"""A dismissed worker finishes, gets nothing new, and is known again: by its program, or by its identity and host for a time."""

from __future__ import annotations

import pytest

from dragoman.core.dismissals import Dismissals
from dragoman.core.queries import views
from dragoman.core.settings import CoreSettings
from dragoman.limits import DISMISSALS_MAX
from dragoman.model.peer import Peer, lasting_id_of
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman.model.words import EMQP
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import House, Worker
from tests.core.replaying import check_replay

KEPT_OUT_S = 60


@pytest.fixture
def house() -> House:
    settings = CoreSettings()
    settings.dismissed_ns = KEPT_OUT_S * SECOND_NS
    return House(settings)


def served(house: House, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = house.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def peer_of(house: House, worker: Worker) -> Peer:
    return next(peer for peer in house.core.workers.values() if peer is worker.session)


def state_of(house: House, worker: Worker) -> object:
    return views.worker_view(peer_of(house, worker))["state"]


def test_it_answers_what_it_holds_and_gets_nothing_new(house: House) -> None:
    worker, client = served(house), house.client()
    held = client.request(b"mail", headers=b"reply-requested")
    assert worker.jobs() == [held]
    house.core.roster.dismiss(peer_of(house, worker))
    waiting = client.request(b"mail", headers=b"reply-requested")
    worker.reply(held, b'{"value":1}')
    worker.ready(1)
    assert worker.jobs() == []
    assert worker.take(b"DISCONNECT") == []
    assert [frames[-1] for frames in client.take(b"REPLY") if len(frames) == 3] == [held]
    assert state_of(house, worker) == "dismissed"
    recount(house.core)
    house.core.roster.admit(peer_of(house, worker))
    assert worker.jobs() == [waiting]
    recount(house.core)
    check_replay(house)


def test_others_get_what_it_would_have_got(house: House) -> None:
    dismissed, other = served(house, 5), served(house, 5, b"other")
    house.core.roster.dismiss(peer_of(house, dismissed))
    jobs = [house.client().request(b"mail") for _ in range(4)]
    assert other.jobs() == jobs
    assert dismissed.jobs() == []
    recount(house.core)


def test_informing_again_is_no_way_back(house: House) -> None:
    worker = served(house)
    house.core.roster.dismiss(peer_of(house, worker))
    worker.inform((10, b"mail"), (5, b"post"))
    worker.ready(3)
    job = house.client().request(b"post")
    assert worker.jobs() == []
    assert state_of(house, worker) == "dismissed"
    house.core.roster.admit(peer_of(house, worker))
    assert worker.jobs() == [job]
    recount(house.core)
    check_replay(house)


def test_it_is_still_dismissed_when_it_connects_again_by_its_identity_for_the_settings_time(house: House) -> None:
    first = served(house)
    house.core.roster.dismiss(peer_of(house, first))
    first.leave()
    house.pass_time(KEPT_OUT_S - 1)
    second = served(house)
    assert state_of(house, second) == "dismissed"
    house.pass_time(2)
    second.heartbeat()
    third = served(house)
    assert state_of(house, third) == "dismissed", "the time counts from its last departure"
    second.leave()
    third.leave()
    house.pass_time(KEPT_OUT_S + 1)
    assert state_of(house, served(house)) == "ready"
    recount(house.core)


def test_another_identity_or_host_is_another_worker(house: House) -> None:
    worker = served(house)
    house.core.roster.dismiss(peer_of(house, worker))
    assert state_of(house, served(house, identity=b"other")) == "ready"
    assert lasting_id_of(b"", b"worker", "127.0.0.1:1") == lasting_id_of(b"", b"worker", "127.0.0.1:2")
    assert lasting_id_of(b"", b"worker", "127.0.0.1:1") != lasting_id_of(b"", b"worker", "127.0.0.2:1")
    assert lasting_id_of(b"program", b"a", "h:1") == lasting_id_of(b"program", b"b", "i:2")
    assert lasting_id_of(b"", b"", "127.0.0.1:1") == b""


def test_one_that_dies_gives_back_what_it_held_and_is_not_blamed(house: House) -> None:
    worker = served(house)
    job = house.client().request(b"mail")
    house.core.roster.dismiss(peer_of(house, worker))
    worker.leave()
    assert [fact["reason"] for fact in house.facts("released")] == ["worker_left"]
    assert served(house, identity=b"other").jobs() == [job]
    recount(house.core)


def test_one_that_falls_silent_is_lost_and_stays_dismissed(house: House) -> None:
    worker = served(house)
    house.client().request(b"mail")
    house.core.roster.dismiss(peer_of(house, worker))
    house.pass_time(10)
    assert list(house.core.workers) == []
    worker.inform((10, b"mail"))
    worker.ready(1)
    assert state_of(house, worker) == "dismissed"
    assert len(worker.jobs()) == 1, "the one from before"


def test_a_worker_that_says_goodbye_while_dismissed_is_not_brought_back_by_an_admission(house: House) -> None:
    worker = served(house)
    house.core.roster.dismiss(peer_of(house, worker))
    worker.say(b"KBYE", b"id")
    house.core.roster.admit(peer_of(house, worker))
    house.client().request(b"mail")
    assert worker.jobs() == []
    recount(house.core)


def test_dismissing_and_admitting_twice_changes_nothing(house: House) -> None:
    worker = served(house, 2)
    for _ in range(2):
        house.core.roster.dismiss(peer_of(house, worker))
    assert views.worker_view(peer_of(house, worker))["queues"] == [{"queue": "mail", "weight": 10}]
    for _ in range(2):
        house.core.roster.admit(peer_of(house, worker))
    assert len(peer_of(house, worker).serves) == 1
    recount(house.core)
    check_replay(house)


def test_those_that_are_kept_out_are_listed_until_their_time_is_over(house: House) -> None:
    worker = served(house)
    house.core.roster.dismiss(peer_of(house, worker))
    assert views.kept_out(house.core) == []
    worker.leave()
    (one,) = views.kept_out(house.core)
    assert (one["name"], one["dialect"]) == ("worker", "emqp")
    house.pass_time(KEPT_OUT_S + 1)
    assert views.kept_out(house.core) == []


def test_the_table_is_bounded() -> None:
    dismissals = Dismissals()
    for number in range(DISMISSALS_MAX + 10):
        peer = QuietPeer(EMQP, "emqp.worker", [])
        peer.lasting_id = b"p%d" % number
        dismissals.add(peer, number)
    assert len(dismissals.by_id) == DISMISSALS_MAX
    assert not dismissals.holds(b"p9", 0)
    assert dismissals.holds(b"p10", 0)
