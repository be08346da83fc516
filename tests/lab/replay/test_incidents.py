"""Incidents at a real broker, exported, and played again by pytest in the simulator."""

from __future__ import annotations

import pytest

from tests.independent import rq_peers
from tests.independent.broker_with_peers import BrokerWithPeers
from tests.lab.replay.conftest import NewBroker
from tests.lab.replay.exporting import Exported
from tests.waiting import wait_for

DIALECTS = ("scale0", "pingpong", "emqp", "ebus", "rq")
QUICK = ("queues.backoff_initial_s=0.05", "queues.backoff_max_s=0.1")
FAILURE = b'{"error":{"type":"ValueError","message":"no"}}'
SLOW = ("queues.backoff_initial_s=600", "queues.backoff_max_s=600")  # nothing of it comes by itself


def lose_worker(broker: BrokerWithPeers, queue: str) -> bytes:
    """A worker takes the next message and dies with it; the id it knew it by."""
    worker = broker.worker("emqp", queue)
    taken, _ = worker.take()
    worker.close()
    wait_for("the worker to be gone", lambda: broker.daemon.ask("workers")["total"] == 0)
    assert isinstance(taken, bytes)
    return taken


def quarantine_one(broker: BrokerWithPeers, queue: str = "mail") -> str:
    """Two workers die with the same job."""
    broker.client("emqp").ask(queue, b"the one that kills")
    lose_worker(broker, queue)
    killer = lose_worker(broker, queue)
    wait_for("the quarantine", lambda: broker.daemon.ask("quarantine_list")["total"] == 1)
    return killer.decode()


def test_a_job_that_kills_its_workers_is_quarantined_again_in_the_replay(new_broker: NewBroker) -> None:
    broker = new_broker("queues.quarantine_after=2", *QUICK)
    killer = quarantine_one(broker)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    assert "quarantined 2: workers_died" in exported.text
    assert '"queues.quarantine_after": 2' in exported.text
    assert exported.play() == ""
    exported.edit('"queues.quarantine_after": 2', '"queues.quarantine_after": 3')
    failure = exported.play()
    assert f"message {killer!r}" in failure
    assert "should be 'quarantined 2: workers_died', and was 'released 2: worker_lost'" in failure


@pytest.mark.timeout(300)
def test_a_file_that_imports_replay_from_its_old_place_is_played(new_broker: NewBroker) -> None:
    broker = new_broker("queues.quarantine_after=2", *QUICK)
    killer = quarantine_one(broker)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    exported.edit("from dragoman_lab.replay import replay", "from dragoman.testing.replay import replay")
    assert exported.play() == ""
    exported.edit("quarantined 2: workers_died", "quarantined 3: workers_died")
    assert f"message {killer!r}" in exported.play()


def test_an_expectation_that_is_changed_fails_and_names_the_message_and_the_fact(new_broker: NewBroker) -> None:
    broker = new_broker()
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    asked = client.ask("mail", b"hello")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(asked)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    passed = exported.run()
    assert (passed.code, "1 passed" in passed.text) == (0, True), passed.text
    exported.edit('"closed 1: done, answered, by w1"', '"closed 1: rejected, failed, by w1"')
    failed = exported.run()
    assert failed.code == 1, failed.text
    should, was = "'closed 1: rejected, failed, by w1'", "'closed 1: done, answered, by w1'"
    assert f"message {asked.decode()!r}, fact 3: should be {should}, and was {was}" in failed.text


def test_a_worker_that_dies_in_the_story_and_lives_in_the_file_is_noticed(new_broker: NewBroker) -> None:
    broker = new_broker(*QUICK)
    client = broker.client("emqp")
    asked = client.ask("mail", b"hello")
    lose_worker(broker, "mail")
    worker = broker.worker("emqp", "mail")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(asked)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    assert exported.play() == ""
    exported.edit('"dies"),', '"parts"),')
    assert f"message {asked.decode()!r}, fact 3: should be 'released 1: worker_lost'" in exported.play()


def test_expiry_and_pause_come_out_again(new_broker: NewBroker) -> None:
    broker = new_broker()
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    first = client.ask("mail", b"first")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(first)
    broker.daemon.ask("pause", queue="mail")
    lost = client.ask("mail", b"too late", "expires:0.3")
    kept = client.ask("mail", b"in time")
    assert client.outcome(lost)[0] == "refused"
    broker.daemon.ask("resume", queue="mail")
    worker.answer(worker.take()[0], b'{"value":2}')
    assert client.outcome(kept)[0] == "answered"
    exported = Exported(broker.daemon.data, "--queue", "mail")
    assert '"operator", "pauses", "mail"' in exported.text
    assert f'"{lost.decode()}": ["accepted", "closed 0: expired, past_expiry"]' in exported.text
    assert exported.play() == ""
    exported.edit("expires:0.3", "expires:30")
    assert f"message {lost.decode()!r}, fact 2: should be 'closed 0: expired, past_expiry'" in exported.play()


def test_a_drained_queue_and_a_retry_out_of_backoff_come_out_again(new_broker: NewBroker) -> None:
    broker = new_broker(*SLOW)
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    # A queue is made by what is asked of it, and one that is paused shows that a drain lets out what waits.
    made = client.ask("mail", b"first")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(made)
    broker.daemon.ask("pause", queue="mail")
    tried = client.ask("mail", b"fails once", "retry-count:3")
    broker.wait_waiting("mail", 1)
    broker.daemon.ask("drain_queue", queue="mail")
    worker.answer(worker.take()[0], FAILURE)
    refused = client.ask("mail", b"too late")
    assert client.outcome(refused)[0] == "refused"
    wait_for("the backoff", lambda: broker.daemon.ask("queues")["queues"][0]["leased"] == 0)
    broker.daemon.ask("retry", id=tried.decode())
    worker.answer(worker.take()[0], b'{"value":2}')
    assert client.outcome(tried)[0] == "answered"
    broker.daemon.ask("resume", queue="mail")
    last = client.ask("mail", b"taken again")
    worker.answer(worker.take()[0], b'{"value":3}')
    assert client.outcome(last)[0] == "answered"
    exported = Exported(broker.daemon.data, "--queue", "mail")
    assert refused.decode() not in exported.text
    for word in ("pauses", "drains", "resumes"):
        assert f'"operator", "{word}", "mail"' in exported.text
    assert '"released 1: failed", "requeued", "leased 2 to w1", "closed 2: done, answered, by w1"' in exported.text
    assert "not checked" not in exported.text
    assert "by hand" not in exported.text
    assert exported.play() == ""
    exported.edit('"operator", "requeues"', '"operator", "cancels"')
    assert f"message {tried.decode()!r}, fact 4: should be 'requeued'" in exported.play()


def test_a_broker_that_is_killed_in_the_middle_starts_again_in_the_replay(new_broker: NewBroker) -> None:
    broker = new_broker()
    client, worker = broker.client("emqp"), broker.worker("emqp", "mail")
    held, waiting = client.ask("mail", b"held"), client.ask("mail", b"waits")
    worker.take()
    broker.wait_waiting("mail", 1)
    broker.daemon.kill()  # before the worker goes: its leaving would be a fact of its own
    worker.close()
    broker.daemon.start()
    other = broker.worker("emqp", "mail")
    for _ in range(2):
        other.answer(other.take()[0], b'{"value":1}')
    wait_for("both to be done", lambda: broker.daemon.ask("queues")["queues"][0]["leased"] == 0)
    broker.wait_waiting("mail", 0)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    assert '"broker", "starts"' in exported.text
    assert "closed 1: done" in exported.text
    for name in (held, waiting):
        assert f'"{name.decode()}": ["accepted", "leased 1' in exported.text
    assert exported.play() == ""
    exported.edit('"broker", "ends"', '"operator", "resumes", "mail"')
    assert f"message {held.decode()!r}, fact 3: should be 'released 1: broker_started'" in exported.play()


def test_every_dialect_comes_out_on_both_sides(new_broker: NewBroker) -> None:
    broker = new_broker()
    queue = broker.queue(*DIALECTS)
    for worker_dialect in DIALECTS:
        worker = broker.worker(worker_dialect, queue)
        for client_dialect in DIALECTS:
            client = broker.client(client_dialect)
            asked = client.ask(queue, b"between us")
            worker.answer(worker.take()[0], b'{"value":1}')
            assert client.outcome(asked)[0] == "answered"
        worker.close()
        wait_for("the worker to be gone", lambda: broker.daemon.ask("workers")["total"] == 0)
    exported = Exported(broker.daemon.data)
    assert exported.text.count("closed 1: done, answered, by") == len(DIALECTS) ** 2
    assert "not checked" not in exported.text
    assert "by hand" not in exported.text
    assert exported.play() == ""
    exported.edit('"w3", "answers"', '"w3", "rejects"')
    assert "emqp has no message for it" in exported.play()


def test_options_that_only_some_dialects_have_are_encoded_again(new_broker: NewBroker) -> None:
    """ebus refuses, rq gives back, eMQP's client cancels, Scale0's is in a trace."""
    broker = new_broker(*QUICK)
    ebus, rq = broker.client("ebus"), broker.client("rq")
    refusing = broker.worker("ebus", "offices")
    asked = ebus.ask("offices", b"please")
    refusing.refuse(refusing.take()[0], b"no")
    assert ebus.outcome(asked)[0] != "answered"
    first = broker.add(rq_peers.Worker(broker.listeners, "papers", priority=30))
    other = broker.worker("rq", "papers")
    number = rq.ask("papers", b"sign this")
    first.give_back(first.take()[0])
    other.answer(other.take()[0], b"signed")
    assert rq.outcome(number)[0] == "answered"
    emqp = broker.client("emqp")
    unwanted = emqp.ask("nobody", b"never mind")
    broker.wait_waiting("nobody", 1)
    emqp.cancel(unwanted)
    broker.wait_waiting("nobody", 0)
    traceparent = "traceparent:00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    broker.client("scale0").ask("papers", b"sign that", traceparent)
    first.answer(first.take()[0], b"signed")
    wait_for("all ends", lambda: broker.daemon.ask("counters")["settled"] == 4)
    exported = Exported(broker.daemon.data)
    for told in ("rejected, refused_by_worker", "released 1: returned", "cancelled, by_client", traceparent):
        assert told in exported.text
    assert exported.play() == ""


def test_a_worker_that_fell_silent_and_a_job_that_timed_out_come_out_again(new_broker: NewBroker) -> None:
    broker = new_broker("emqp.heartbeat_s=1", "emqp.worker_lost_s=3", *QUICK)
    client, silent = broker.client("emqp"), broker.worker("emqp", "mail")
    first = client.ask("mail", b"nobody hears of it")
    silent.take()
    wait_for("the worker to be missed", lambda: broker.daemon.ask("workers")["total"] == 0)
    worker = broker.worker("emqp", "mail")
    worker.answer(worker.take()[0], b'{"value":1}')
    client.outcome(first)
    slow = client.ask("mail", b"takes too long", "timeout:0.3", "retry-count:1")
    worker.take()
    worker.answer(worker.take()[0], b'{"value":2}')
    client.outcome(slow)
    exported = Exported(broker.daemon.data, "--queue", "mail")
    for told in ('"w1", "falls silent"', '"w1", "is lost"', f'"{slow.decode()}", "times out"', "released 1: timed_out"):
        assert told in exported.text
    assert exported.play() == ""
    exported.edit('"emqp.worker_lost_s": 3.0', '"emqp.worker_lost_s": 30.0')
    assert f"message {first.decode()!r}, fact 3: should be 'released 1: worker_lost'" in exported.play()
