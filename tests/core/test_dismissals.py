"""A dismissed worker finishes, gets nothing new, and is known again: by its program, or by its identity and host for a time."""

from __future__ import annotations

import pytest

from dragoman.core.queries import views
from dragoman.core.roster import Dismissals
from dragoman.core.settings import CoreSettings
from dragoman.limits import DISMISSALS_MAX
from dragoman.model.enums import EMQP
from dragoman.model.peer import Peer, lasting_id_of
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker, Worker
from tests.core.replaying import check_replay

KEPT_OUT_S = 60


@pytest.fixture
def broker() -> InMemoryBroker:
    settings = CoreSettings()
    settings.dismissed_ns = KEPT_OUT_S * SECOND_NS
    return InMemoryBroker(settings)


def served(broker: InMemoryBroker, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def peer_of(broker: InMemoryBroker, worker: Worker) -> Peer:
    return next(peer for peer in broker.core.workers.values() if peer is worker.session)


def state_of(broker: InMemoryBroker, worker: Worker) -> object:
    return views.worker_view(peer_of(broker, worker))["state"]


def test_it_answers_what_it_holds_and_gets_nothing_new(broker: InMemoryBroker) -> None:
    worker, client = served(broker), broker.client()
    held = client.request(b"mail", headers=b"reply-requested")
    assert worker.jobs() == [held]
    broker.core.roster.dismiss(peer_of(broker, worker))
    waiting = client.request(b"mail", headers=b"reply-requested")
    worker.reply(held, b'{"value":1}')
    worker.ready(1)
    assert worker.jobs() == []
    assert worker.take(b"DISCONNECT") == []
    assert [frames[-1] for frames in client.take(b"REPLY") if len(frames) == 3] == [held]
    assert state_of(broker, worker) == "dismissed"
    recount(broker.core)
    broker.core.roster.admit(peer_of(broker, worker))
    assert worker.jobs() == [waiting]
    recount(broker.core)
    check_replay(broker)


def test_others_get_what_it_would_have_got(broker: InMemoryBroker) -> None:
    dismissed, other = served(broker, 5), served(broker, 5, b"other")
    broker.core.roster.dismiss(peer_of(broker, dismissed))
    jobs = [broker.client().request(b"mail") for _ in range(4)]
    assert other.jobs() == jobs
    assert dismissed.jobs() == []
    recount(broker.core)


def test_informing_again_is_no_way_back(broker: InMemoryBroker) -> None:
    worker = served(broker)
    broker.core.roster.dismiss(peer_of(broker, worker))
    worker.inform((10, b"mail"), (5, b"post"))
    worker.ready(3)
    job = broker.client().request(b"post")
    assert worker.jobs() == []
    assert state_of(broker, worker) == "dismissed"
    broker.core.roster.admit(peer_of(broker, worker))
    assert worker.jobs() == [job]
    recount(broker.core)
    check_replay(broker)


def test_it_is_still_dismissed_when_it_connects_again_by_its_identity_for_the_settings_time(
    broker: InMemoryBroker,
) -> None:
    first = served(broker)
    broker.core.roster.dismiss(peer_of(broker, first))
    first.leave()
    broker.pass_time(KEPT_OUT_S - 1)
    second = served(broker)
    assert state_of(broker, second) == "dismissed"
    broker.pass_time(2)
    second.heartbeat()
    third = served(broker)
    assert state_of(broker, third) == "dismissed", "the time counts from its last departure"
    second.leave()
    third.leave()
    broker.pass_time(KEPT_OUT_S + 1)
    assert state_of(broker, served(broker)) == "ready"
    recount(broker.core)


def test_another_identity_or_host_is_another_worker(broker: InMemoryBroker) -> None:
    worker = served(broker)
    broker.core.roster.dismiss(peer_of(broker, worker))
    assert state_of(broker, served(broker, identity=b"other")) == "ready"
    assert lasting_id_of(b"", b"worker", "127.0.0.1:1") == lasting_id_of(b"", b"worker", "127.0.0.1:2")
    assert lasting_id_of(b"", b"worker", "127.0.0.1:1") != lasting_id_of(b"", b"worker", "127.0.0.2:1")
    assert lasting_id_of(b"program", b"a", "h:1") == lasting_id_of(b"program", b"b", "i:2")
    assert lasting_id_of(b"", b"", "127.0.0.1:1") == b""


def test_one_that_dies_gives_back_what_it_held_and_is_not_blamed(broker: InMemoryBroker) -> None:
    worker = served(broker)
    job = broker.client().request(b"mail")
    broker.core.roster.dismiss(peer_of(broker, worker))
    worker.leave()
    assert [fact["reason"] for fact in broker.facts("released")] == ["worker_left"]
    assert served(broker, identity=b"other").jobs() == [job]
    recount(broker.core)


def test_one_that_falls_silent_is_lost_and_stays_dismissed(broker: InMemoryBroker) -> None:
    worker = served(broker)
    broker.client().request(b"mail")
    broker.core.roster.dismiss(peer_of(broker, worker))
    broker.pass_time(10)
    assert list(broker.core.workers) == []
    worker.inform((10, b"mail"))
    worker.ready(1)
    assert state_of(broker, worker) == "dismissed"
    assert len(worker.jobs()) == 1, "the one from before"


def test_a_worker_that_says_goodbye_while_dismissed_is_not_brought_back_by_an_admission(broker: InMemoryBroker) -> None:
    worker = served(broker)
    broker.core.roster.dismiss(peer_of(broker, worker))
    worker.say(b"KBYE", b"id")
    broker.core.roster.admit(peer_of(broker, worker))
    broker.client().request(b"mail")
    assert worker.jobs() == []
    recount(broker.core)


def test_dismissing_and_admitting_twice_changes_nothing(broker: InMemoryBroker) -> None:
    worker = served(broker, 2)
    for _ in range(2):
        broker.core.roster.dismiss(peer_of(broker, worker))
    assert views.worker_view(peer_of(broker, worker))["queues"] == [{"queue": "mail", "weight": 10}]
    for _ in range(2):
        broker.core.roster.admit(peer_of(broker, worker))
    assert len(peer_of(broker, worker).work.serves) == 1
    recount(broker.core)
    check_replay(broker)


def test_those_that_are_kept_out_are_listed_until_their_time_is_over(broker: InMemoryBroker) -> None:
    worker = served(broker)
    broker.core.roster.dismiss(peer_of(broker, worker))
    assert views.kept_out(broker.core) == []
    worker.leave()
    (one,) = views.kept_out(broker.core)
    assert (one["name"], one["dialect"]) == ("worker", "emqp")
    broker.pass_time(KEPT_OUT_S + 1)
    assert views.kept_out(broker.core) == []


def test_the_table_is_bounded() -> None:
    dismissals = Dismissals()
    for number in range(DISMISSALS_MAX + 10):
        peer = QuietPeer(EMQP, "emqp.worker", [])
        peer.lasting_id = b"p%d" % number
        dismissals.add(peer, number)
    assert len(dismissals.by_id) == DISMISSALS_MAX
    assert not dismissals.holds(b"p9", 0)
    assert dismissals.holds(b"p10", 0)
