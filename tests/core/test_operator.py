"""Pause, resume, purge, requeue, cancel: what an operator does is a fact, and holds over restarts."""

from __future__ import annotations

from dragoman.core.operator import purge, requeue, set_draining, set_paused
from dragoman.core.settings import CoreSettings
from dragoman.model.enums import BY_CLIENT, BY_OPERATOR, DROPPED, NOT_FOUND, TAKEN, WRONG_STATE
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import InMemoryBroker, Worker
from tests.core.replaying import check_replay, from_checkpoint, replayed


def served(broker: InMemoryBroker, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = broker.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def quarantined(broker: InMemoryBroker) -> bytes:
    """A message that killed three workers."""
    job = broker.client().request(b"mail", headers=b"reply-requested")
    for n in range(3):
        served(broker, identity=b"victim %d" % n).leave()
        broker.pass_time(5)
    assert list(broker.core.state.quarantine)
    return job


def test_a_paused_queue_accepts_and_gives_nothing_out_until_it_is_resumed() -> None:
    broker = InMemoryBroker()
    worker = served(broker, 3)
    assert set_paused(broker.core, b"mail", True) == TAKEN
    job = broker.client().request(b"mail")
    assert worker.jobs() == []
    assert set_paused(broker.core, b"mail", False) == TAKEN
    assert worker.jobs() == [job]
    recount(broker.core)


def test_a_pause_holds_over_restart_and_checkpoint() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail")
    set_paused(broker.core, b"mail", True)
    for core in (replayed(broker), from_checkpoint(broker)):
        assert core.state.queues[b"mail"].is_paused
    check_replay(broker)


def test_pausing_twice_is_one_fact_and_an_unknown_queue_is_not_found() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail")
    set_paused(broker.core, b"mail", True)
    set_paused(broker.core, b"mail", True)
    assert len(broker.facts("paused")) == 1
    assert set_paused(broker.core, b"nowhere", True) == NOT_FOUND


def test_what_a_worker_gives_back_to_a_paused_queue_waits() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail")
    first = served(broker)
    set_paused(broker.core, b"mail", True)
    first.leave()
    second = served(broker, identity=b"second")
    assert second.jobs() == []
    set_paused(broker.core, b"mail", False)
    assert second.jobs() == [job]


def test_a_purge_takes_so_many_of_the_waiting_first_ones_first_also_from_disk() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    broker = InMemoryBroker(settings)
    client = broker.client()
    ids = [client.request(b"mail") for _ in range(10)]
    assert purge(broker.core, b"mail", 6) == 6
    recount(broker.core)
    check_replay(broker)
    assert purge(broker.core, b"nowhere", 6) == 0
    assert served(broker, 10).jobs() == ids[6:]


def test_a_purge_takes_the_unfit_ones_too_and_leaves_the_leased() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    picky = broker.worker(b"picky")
    picky.inform_as_original((10, b"mail"))
    picky.ready(1)
    leased = client.request(b"mail", b'["run", {}]')
    picky.ready(1)
    client.request(b"mail", b"\xff")
    assert picky.jobs() == [leased]
    assert purge(broker.core, b"mail", 100) == 1
    assert broker.core.state.queues[b"mail"].leased == 1
    recount(broker.core)


def test_a_quarantined_message_is_requeued_with_a_clean_record_and_its_client_hears_no_second_answer() -> None:
    broker = InMemoryBroker()
    job = quarantined(broker)
    message = broker.core.state.by_wire_id[job]
    assert requeue(broker.core, message) == TAKEN
    assert message.died_with is None
    check_replay(broker)
    worker = served(broker, identity=b"fourth")
    assert worker.jobs() == [job]
    worker.reply(job)
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["done"]
    recount(broker.core)


def test_only_a_quarantined_message_can_be_requeued() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail")
    assert requeue(broker.core, broker.core.state.by_wire_id[job]) == WRONG_STATE


def test_a_quarantined_message_is_dropped_by_an_operator_and_by_nobody_else() -> None:
    broker = InMemoryBroker()
    message = broker.core.state.by_wire_id[quarantined(broker)]
    assert broker.core.cancel(message, BY_CLIENT) == WRONG_STATE
    assert broker.core.cancel(message, DROPPED) == TAKEN
    assert broker.core.cancel(message, BY_OPERATOR) == NOT_FOUND
    assert broker.core.state.messages == {}
    recount(broker.core)
    check_replay(broker)


def test_quarantine_and_its_evidence_survive_restart_and_checkpoint() -> None:
    broker = InMemoryBroker()
    job = quarantined(broker)
    deaths = broker.core.state.by_wire_id[job].died_with
    for core in (replayed(broker), from_checkpoint(broker)):
        (message,) = core.state.quarantine.values()
        assert message.died_with == deaths
        assert not message.is_answerable
        recount(core)


def test_a_restart_releases_leases_without_counting_them() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail", headers=b"retry-count:0")
    served(broker)
    for core in (replayed(broker), from_checkpoint(broker)):
        core.start(2, b"0.1.0", bytes(16))
        message = core.state.by_wire_id[job]
        assert (message.retries_left, message.died_with, message.attempt) == (0, None, 1)
        assert (core.state.queues[b"mail"].waiting, core.state.queues[b"mail"].leased) == (1, 0)
        recount(core)


def test_numbers_never_repeat_over_boots() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail")
    core = replayed(broker)
    before = core.state.next_number
    core.start(2, b"0.1.0", bytes(16))
    assert core.state.next_number == (2 << 40) + 1 > before


def test_a_draining_queue_gives_out_what_waits_and_refuses_what_comes() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail")
    assert set_draining(broker.core, b"mail") == TAKEN
    client.request(b"mail", headers=b"ack-requested")
    [[_, answer, *_]] = client.take(b"REPLY")
    assert b'"QUEUE_CLOSED"' in answer
    client.request(b"other")
    worker = served(broker, 2)
    assert worker.jobs() == [job]
    assert broker.core.state.accepted == 2
    assert set_paused(broker.core, b"mail", False) == TAKEN
    assert worker.jobs() == []
    assert client.request(b"mail") == worker.jobs()[0]
    recount(broker.core)


def test_a_drain_holds_over_restart_and_checkpoint_and_is_no_pause_in_the_facts() -> None:
    broker = InMemoryBroker()
    broker.client().request(b"mail")
    set_draining(broker.core, b"mail")
    for core in (replayed(broker), from_checkpoint(broker)):
        queue = core.state.queues[b"mail"]
        assert (queue.is_draining, queue.is_paused) == (True, False)
    assert broker.facts("paused") == []
    assert broker.facts("resumed")[0]["is_draining"] is True
    check_replay(broker)


def test_the_last_word_counts_a_drain_ends_a_pause_and_a_pause_ends_a_drain() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail")
    worker = served(broker)
    worker.reply(job)
    for _ in range(2):
        set_paused(broker.core, b"mail", True)
    queue = broker.core.state.queues[b"mail"]
    set_draining(broker.core, b"mail")
    assert (queue.is_paused, queue.is_draining) == (False, True)
    set_paused(broker.core, b"mail", True)
    assert (queue.is_paused, queue.is_draining) == (True, False)
    set_paused(broker.core, b"mail", False)
    assert (queue.is_paused, queue.is_draining) == (False, False)
    assert set_draining(broker.core, b"nowhere") == NOT_FOUND
    check_replay(broker)


def test_a_schedule_makes_nothing_in_a_draining_queue_and_goes_on_afterwards() -> None:
    broker = InMemoryBroker()
    broker.client().say(b"SCHEDULE", b"s", b"mail", b"nohaste", b"1", b'["run", {}]', b"")
    set_draining(broker.core, b"mail")
    broker.pass_time(3.5)
    assert [fact["message_no"] for fact in broker.facts("fired")] == [0, 0, 0]
    set_paused(broker.core, b"mail", False)
    broker.pass_time(1)
    assert len(broker.facts("accepted")) == 1
    check_replay(broker)


def test_a_message_in_backoff_is_tried_again_at_once_when_the_operator_says_so() -> None:
    broker = InMemoryBroker()
    worker = served(broker, 2)
    job = broker.client().request(b"mail", headers=b"retry-count:3")
    assert worker.jobs() == [job]
    worker.reply(job, b'{"error":{}}')
    message = broker.core.state.find(job)
    assert message is not None
    assert worker.jobs() == []
    assert requeue(broker.core, message) == TAKEN
    assert worker.jobs() == [job]
    assert len(broker.facts("requeued")) == 1
    recount(broker.core)
    check_replay(broker)


def test_a_message_in_backoff_that_is_hurried_waits_in_line_over_a_restart() -> None:
    broker = InMemoryBroker()
    worker = served(broker, 1)
    job = broker.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{}}')
    message = broker.core.state.find(job)
    assert message is not None
    requeue(broker.core, message)
    for core in (replayed(broker), from_checkpoint(broker)):
        queue = core.state.queues[b"mail"]
        assert (queue.waiting, queue.delayed) == (1, 0)
    check_replay(broker)


def test_a_delay_its_client_asked_for_is_not_hurried() -> None:
    broker = InMemoryBroker()
    job = broker.client().request(b"mail", headers=b"delay:60")
    message = broker.core.state.find(job)
    assert message is not None
    assert requeue(broker.core, message) == WRONG_STATE
    assert broker.facts("requeued") == []
