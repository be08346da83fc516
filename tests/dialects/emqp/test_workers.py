"""Workers: slots, signs of life, leaving, and what is never sent to whom."""

from __future__ import annotations

import pytest

from dragoman.model.enums import DRAINING
from tests.core.harness import InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, notes, ready_original, ready_worker, results


def commands(end: Worker) -> list[bytes]:
    end.hear()
    heard = [frames[2] for frames in end.heard]
    end.heard.clear()
    return heard


def test_each_ready_is_a_slot_for_one_more_job() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    client = broker.client()
    jobs = [client.request(b"mail") for _ in range(5)]
    assert worker.jobs() == jobs[:2]
    worker.reply(jobs[0])
    assert worker.jobs() == []
    worker.ready()
    assert worker.jobs() == [jobs[2]]


def test_a_surplus_ready_gives_a_worker_one_more_job() -> None:
    """After a crash of one of its processes the original says READY without having answered."""
    broker = InMemoryBroker()
    worker = ready_original(broker)
    client = broker.client()
    jobs = [client.request(b"mail", JOB) for _ in range(2)]
    worker.ready()
    assert worker.jobs() == jobs


@pytest.mark.parametrize("listener", ["emqp.worker", "emqp.client"])
def test_a_ready_from_a_worker_we_do_not_know_gets_disconnect(listener: str) -> None:
    broker = InMemoryBroker()
    stranger = Worker(broker, listener, b"stranger")
    stranger.ready()
    (frames,) = stranger.take(b"DISCONNECT")
    assert len(frames) == 1
    assert broker.facts("worker_joined", "accepted") == []


def test_an_unknown_worker_that_is_disconnected_informs_again_and_is_served() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.ready()
    worker.inform((10, b"mail"))
    worker.ready()
    job = broker.client().request(b"mail")
    assert worker.jobs() == [job]


def test_a_heartbeat_from_an_unknown_peer_on_the_worker_port_gets_disconnect() -> None:
    broker = InMemoryBroker()
    stranger = broker.worker()
    stranger.heartbeat()
    assert commands(stranger) == [b"DISCONNECT"]


def test_a_heartbeat_on_the_client_port_is_never_answered() -> None:
    broker = InMemoryBroker()
    scheduler = Worker(broker, "emqp.client", b"a-scheduler-of-before")
    scheduler.heartbeat()
    broker.pass_time(20)
    assert commands(scheduler) == []


@pytest.mark.parametrize("listener", ["emqp.client", "emqp.worker"])
@pytest.mark.parametrize("word", [b"READY", b"HEARTBEAT"])
def test_a_scheduler_never_gets_disconnect(listener: str, word: bytes) -> None:
    broker = InMemoryBroker()
    scheduler = Worker(broker, listener, b"scheduler")
    scheduler.say(b"INFORM", b"1", b"", b"scheduler")
    scheduler.say(word, b"2", b"1.0")
    broker.pass_time(60)
    assert b"DISCONNECT" not in commands(scheduler)


def test_a_worker_between_inform_and_ready_never_gets_disconnect() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.inform_as_original((10, b"mail"))
    broker.pass_time(60)
    assert set(commands(worker)) == {b"ACK", b"HEARTBEAT"}


def test_heartbeats_go_to_a_worker_every_three_seconds_in_five_frames() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    worker.heard.clear()
    for _ in range(12):
        broker.pass_time(1)
        worker.heartbeat()
    beats = worker.take(b"HEARTBEAT")
    assert [float(stamp) for _, stamp in beats] == [1_700_000_000.0 + n for n in (3, 6, 9, 12)]


def test_heartbeats_go_to_a_scheduler_and_to_no_plain_client() -> None:
    broker = InMemoryBroker()
    scheduler = Worker(broker, "emqp.client", b"scheduler")
    scheduler.say(b"INFORM", b"1", b"", b"scheduler")
    client = broker.client()
    client.request(b"mail")
    broker.pass_time(9.5)
    assert commands(scheduler).count(b"HEARTBEAT") == 4
    client.hear()
    assert client.heard == []


def test_a_worker_silent_for_five_seconds_on_an_open_connection_is_lost_and_its_job_runs_elsewhere() -> None:
    broker = InMemoryBroker()
    silent = ready_worker(broker, identity=b"silent")
    job = broker.client().request(b"mail", JOB)
    assert silent.jobs() == [job]
    other = ready_worker(broker, identity=b"other")
    broker.pass_time(4.9)
    other.heartbeat()
    assert other.jobs() == []
    broker.pass_time(0.3)
    assert other.jobs() == [job]
    assert [fact["reason"] for fact in broker.facts("worker_left")] == ["heartbeat_lost"]
    assert commands(silent)[-1] == b"DISCONNECT"


def test_any_command_is_a_sign_of_life() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    for word in (b"READY", b"REPLY", b"HELLO", b"heartbeat", b"STATUS", b"PUBLISH"):
        broker.pass_time(4)
        worker.say(word, b"id", b"x", b"y")
    assert broker.facts("worker_left") == []


def test_a_lost_worker_gets_no_heartbeats_and_rejoins_by_informing_again() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.pass_time(5.5)
    assert commands(worker)[-1] == b"DISCONNECT"
    broker.pass_time(10)
    assert commands(worker) == []
    worker.heartbeat()
    assert commands(worker) == [b"DISCONNECT"]
    worker.inform((10, b"mail"))
    worker.ready()
    job = broker.client().request(b"mail")
    assert worker.jobs() == [job]


def test_a_lost_workers_late_answer_settles_the_job_while_it_waits() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    broker.pass_time(5.5)
    worker.reply(job, b"v")
    assert results(client) == [(job, b"v")]
    assert ready_worker(broker, identity=b"other").jobs() == []


def test_a_reply_from_an_identity_we_have_never_seen_settles_by_its_id_and_the_present_holders_is_late() -> None:
    """The original answers old jobs from its old identity on a fresh connection while the new one informs."""
    broker = InMemoryBroker()
    client = broker.client()
    before = ready_original(broker, identity=b"manager-1")
    job = client.request(b"mail", JOB, b"reply-requested")
    before.leave()
    after = ready_original(broker, identity=b"manager-2")
    assert after.jobs() == [job]
    old = broker.worker(b"manager-1")
    old.reply(job, b'{"value": 1}')
    old.leave()
    after.reply(job, b'{"value": 2}')
    assert results(client) == [(job, b'{"value": 1}')]
    assert [fact["wire_id"] for fact in broker.facts("late")] == [job.decode()]
    assert [fact["reason"] for fact in broker.facts("closed")] == ["answered_late"]


def test_a_second_answer_to_a_settled_request_is_recorded_and_dropped() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    worker.reply(job, b"1")
    worker.reply(job, b"2")
    assert results(client) == [(job, b"1")]
    assert len(broker.facts("late")) == 1


def test_an_answer_to_a_request_that_nobody_was_ever_given_is_dropped() -> None:
    """Ids may be used again: an answer to the settled one must not settle its waiting namesake."""
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    client.request(b"mail", JOB, b"", b"same")
    worker.reply(b"same", b"1")
    client.request(b"mail", JOB, b"reply-requested", b"same")
    worker.reply(b"same", b"1 again")
    assert results(client) == []
    worker.ready()
    worker.reply(b"same", b"2")
    assert results(client) == [(b"same", b"2")]


def test_a_late_answer_with_an_endless_id_is_recorded_short() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    worker.reply(b"x" * 100_000)
    (fact,) = broker.facts("late")
    assert fact["wire_id"] == "x" * 255


def test_an_answer_from_a_stranger_to_something_unknown_is_only_counted() -> None:
    broker = InMemoryBroker()
    broker.client().say(b"REPLY", b"1", b"v", b"nosuch")
    assert broker.facts("late") == []
    assert notes(broker) == {"LATE_FROM_A_STRANGER": 1}


@pytest.mark.parametrize("word", [b"KBYE", b"KBAI", b"kbye"])
def test_after_kbye_a_worker_gets_nothing_new_and_may_still_answer_long_after_five_seconds(word: bytes) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=3)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    assert worker.jobs() == [job]
    worker.say(word, b"bye")
    client.request(b"mail", JOB)
    worker.ready()
    broker.pass_time(60)
    assert worker.jobs() == []
    worker.reply(job, b"v")
    assert results(client) == [(job, b"v")]
    assert broker.facts("released") == []


def test_a_job_of_a_worker_that_sent_kbye_goes_back_uncounted_when_its_connection_ends() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    job = broker.client().request(b"mail", JOB, b"retry-count:0")
    worker.say(b"KBYE", b"bye")
    worker.leave()
    assert [(fact["reason"], fact["retries_left"]) for fact in broker.facts("released")] == [("worker_left", 0)]
    assert ready_worker(broker, identity=b"next").jobs() == [job]


def test_disconnect_from_a_worker_means_that_it_leaves() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    worker.say(b"DISCONNECT", b"1")
    broker.client().request(b"mail")
    assert worker.jobs() == []
    assert not broker.outboxes.stop_requested


def test_a_stopping_broker_says_kbye_to_workers_and_schedulers_and_disconnect_to_nobody() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    scheduler = Worker(broker, "emqp.client", b"scheduler")
    scheduler.say(b"INFORM", b"1", b"", b"scheduler")
    client = broker.client()
    client.request(b"other")
    for end in (worker, scheduler, client):
        end.heard.clear()
    for session in list(broker.emqp.sessions.values()):
        session.say_goodbye()
    assert commands(worker) == [b"KBYE"]
    assert commands(scheduler) == [b"KBYE"]
    client.hear()
    assert client.heard == []


def test_a_draining_broker_refuses_new_requests_with_an_answer() -> None:
    broker = InMemoryBroker()
    broker.core.refusing = DRAINING
    client = broker.client()
    job = client.request(b"mail")
    ((answered, value),) = results(client)
    assert answered == job
    assert b'"DRAINING"' in value


def test_a_silent_peer_on_the_worker_port_is_freed_by_one_ack() -> None:
    """The original waits for ever for the ACK of an INFORM that a broker swallowed as it died."""
    broker = InMemoryBroker()
    silent = broker.worker()
    broker.pass_time(4.9)
    assert commands(silent) == []
    broker.pass_time(20)
    silent.hear()
    (frames,) = silent.heard
    assert frames[2] == b"ACK"
    assert len(frames) == 5


def test_a_silent_peer_on_the_client_port_is_left_alone() -> None:
    broker = InMemoryBroker()
    silent = broker.client()
    broker.pass_time(30)
    silent.hear()
    assert silent.heard == []
