"""Pause, resume, purge, requeue, cancel: what an operator does is a fact, and holds over restarts."""

from __future__ import annotations

from dragoman.core.operator import purge, requeue, set_draining, set_paused
from dragoman.core.settings import CoreSettings
from dragoman.model.words import BY_CLIENT, BY_OPERATOR, DROPPED, NOT_FOUND, TAKEN, WRONG_STATE
from dragoman_lab.sim.checks.recount import recount
from tests.core.harness import House, Worker
from tests.core.replaying import check_replay, from_checkpoint, replayed


def served(house: House, slots: int = 1, identity: bytes = b"worker") -> Worker:
    worker = house.worker(identity)
    worker.inform((10, b"mail"))
    worker.ready(slots)
    return worker


def quarantined(house: House) -> bytes:
    """A message that killed three workers."""
    job = house.client().request(b"mail", headers=b"reply-requested")
    for n in range(3):
        served(house, identity=b"victim %d" % n).leave()
        house.pass_time(5)
    assert list(house.core.state.quarantine)
    return job


def test_a_paused_queue_accepts_and_gives_nothing_out_until_it_is_resumed() -> None:
    house = House()
    worker = served(house, 3)
    assert set_paused(house.core, b"mail", True) == TAKEN
    job = house.client().request(b"mail")
    assert worker.jobs() == []
    assert set_paused(house.core, b"mail", False) == TAKEN
    assert worker.jobs() == [job]
    recount(house.core)


def test_a_pause_holds_over_restart_and_checkpoint() -> None:
    house = House()
    house.client().request(b"mail")
    set_paused(house.core, b"mail", True)
    for core in (replayed(house), from_checkpoint(house)):
        assert core.state.queues[b"mail"].is_paused
    check_replay(house)


def test_pausing_twice_is_one_fact_and_an_unknown_queue_is_not_found() -> None:
    house = House()
    house.client().request(b"mail")
    set_paused(house.core, b"mail", True)
    set_paused(house.core, b"mail", True)
    assert len(house.facts("paused")) == 1
    assert set_paused(house.core, b"nowhere", True) == NOT_FOUND


def test_what_a_worker_gives_back_to_a_paused_queue_waits() -> None:
    house = House()
    job = house.client().request(b"mail")
    first = served(house)
    set_paused(house.core, b"mail", True)
    first.leave()
    second = served(house, identity=b"second")
    assert second.jobs() == []
    set_paused(house.core, b"mail", False)
    assert second.jobs() == [job]


def test_a_purge_takes_so_many_of_the_waiting_first_ones_first_also_from_disk() -> None:
    settings = CoreSettings()
    settings.head_max = 2
    house = House(settings)
    client = house.client()
    ids = [client.request(b"mail") for _ in range(10)]
    assert purge(house.core, b"mail", 6) == 6
    recount(house.core)
    check_replay(house)
    assert purge(house.core, b"nowhere", 6) == 0
    assert served(house, 10).jobs() == ids[6:]


def test_a_purge_takes_the_unfit_ones_too_and_leaves_the_leased() -> None:
    house = House()
    client = house.client()
    picky = house.worker(b"picky")
    picky.inform_as_original((10, b"mail"))
    picky.ready(1)
    leased = client.request(b"mail", b'["run", {}]')
    picky.ready(1)
    client.request(b"mail", b"\xff")
    assert picky.jobs() == [leased]
    assert purge(house.core, b"mail", 100) == 1
    assert house.core.state.queues[b"mail"].leased == 1
    recount(house.core)


def test_a_quarantined_message_is_requeued_with_a_clean_record_and_its_client_hears_no_second_answer() -> None:
    house = House()
    job = quarantined(house)
    message = house.core.state.by_wire_id[job]
    assert requeue(house.core, message) == TAKEN
    assert message.died_with is None
    check_replay(house)
    worker = served(house, identity=b"fourth")
    assert worker.jobs() == [job]
    worker.reply(job)
    assert [fact["outcome"] for fact in house.facts("closed")] == ["done"]
    recount(house.core)


def test_only_a_quarantined_message_can_be_requeued() -> None:
    house = House()
    job = house.client().request(b"mail")
    assert requeue(house.core, house.core.state.by_wire_id[job]) == WRONG_STATE


def test_a_quarantined_message_is_dropped_by_an_operator_and_by_nobody_else() -> None:
    house = House()
    message = house.core.state.by_wire_id[quarantined(house)]
    assert house.core.cancel(message, BY_CLIENT) == WRONG_STATE
    assert house.core.cancel(message, DROPPED) == TAKEN
    assert house.core.cancel(message, BY_OPERATOR) == NOT_FOUND
    assert house.core.state.messages == {}
    recount(house.core)
    check_replay(house)


def test_quarantine_and_its_evidence_survive_restart_and_checkpoint() -> None:
    house = House()
    job = quarantined(house)
    deaths = house.core.state.by_wire_id[job].died_with
    for core in (replayed(house), from_checkpoint(house)):
        (message,) = core.state.quarantine.values()
        assert message.died_with == deaths
        assert not message.is_answerable
        recount(core)


def test_a_restart_releases_leases_without_counting_them() -> None:
    house = House()
    job = house.client().request(b"mail", headers=b"retry-count:0")
    served(house)
    for core in (replayed(house), from_checkpoint(house)):
        core.start(2, b"0.1.0", bytes(16))
        message = core.state.by_wire_id[job]
        assert (message.retries_left, message.died_with, message.attempt) == (0, None, 1)
        assert (core.state.queues[b"mail"].waiting, core.state.queues[b"mail"].leased) == (1, 0)
        recount(core)


def test_numbers_never_repeat_over_boots() -> None:
    house = House()
    house.client().request(b"mail")
    core = replayed(house)
    before = core.state.next_number
    core.start(2, b"0.1.0", bytes(16))
    assert core.state.next_number == (2 << 40) + 1 > before


def test_a_draining_queue_gives_out_what_waits_and_refuses_what_comes() -> None:
    house = House()
    client = house.client()
    job = client.request(b"mail")
    assert set_draining(house.core, b"mail") == TAKEN
    client.request(b"mail", headers=b"ack-requested")
    [[_, answer, *_]] = client.take(b"REPLY")
    assert b'"QUEUE_CLOSED"' in answer
    client.request(b"other")
    worker = served(house, 2)
    assert worker.jobs() == [job]
    assert house.core.state.accepted == 2
    assert set_paused(house.core, b"mail", False) == TAKEN
    assert worker.jobs() == []
    assert client.request(b"mail") == worker.jobs()[0]
    recount(house.core)


def test_a_drain_holds_over_restart_and_checkpoint_and_is_no_pause_in_the_facts() -> None:
    house = House()
    house.client().request(b"mail")
    set_draining(house.core, b"mail")
    for core in (replayed(house), from_checkpoint(house)):
        queue = core.state.queues[b"mail"]
        assert (queue.is_draining, queue.is_paused) == (True, False)
    assert house.facts("paused") == []
    assert house.facts("resumed")[0]["is_draining"] is True
    check_replay(house)


def test_the_last_word_counts_a_drain_ends_a_pause_and_a_pause_ends_a_drain() -> None:
    house = House()
    job = house.client().request(b"mail")
    worker = served(house)
    worker.reply(job)
    for _ in range(2):
        set_paused(house.core, b"mail", True)
    queue = house.core.state.queues[b"mail"]
    set_draining(house.core, b"mail")
    assert (queue.is_paused, queue.is_draining) == (False, True)
    set_paused(house.core, b"mail", True)
    assert (queue.is_paused, queue.is_draining) == (True, False)
    set_paused(house.core, b"mail", False)
    assert (queue.is_paused, queue.is_draining) == (False, False)
    assert set_draining(house.core, b"nowhere") == NOT_FOUND
    check_replay(house)


def test_a_schedule_makes_nothing_in_a_draining_queue_and_goes_on_afterwards() -> None:
    house = House()
    house.client().say(b"SCHEDULE", b"s", b"mail", b"nohaste", b"1", b'["run", {}]', b"")
    set_draining(house.core, b"mail")
    house.pass_time(3.5)
    assert [fact["message_no"] for fact in house.facts("fired")] == [0, 0, 0]
    set_paused(house.core, b"mail", False)
    house.pass_time(1)
    assert len(house.facts("accepted")) == 1
    check_replay(house)


def test_a_message_in_backoff_is_tried_again_at_once_when_the_operator_says_so() -> None:
    house = House()
    worker = served(house, 2)
    job = house.client().request(b"mail", headers=b"retry-count:3")
    assert worker.jobs() == [job]
    worker.reply(job, b'{"error":{}}')
    message = house.core.state.find(job)
    assert message is not None
    assert worker.jobs() == []
    assert requeue(house.core, message) == TAKEN
    assert worker.jobs() == [job]
    assert len(house.facts("requeued")) == 1
    recount(house.core)
    check_replay(house)


def test_a_message_in_backoff_that_is_hurried_waits_in_line_over_a_restart() -> None:
    house = House()
    worker = served(house, 1)
    job = house.client().request(b"mail", headers=b"retry-count:3")
    worker.reply(job, b'{"error":{}}')
    message = house.core.state.find(job)
    assert message is not None
    requeue(house.core, message)
    for core in (replayed(house), from_checkpoint(house)):
        queue = core.state.queues[b"mail"]
        assert (queue.waiting, queue.delayed) == (1, 0)
    check_replay(house)


def test_a_delay_its_client_asked_for_is_not_hurried() -> None:
    house = House()
    job = house.client().request(b"mail", headers=b"delay:60")
    message = house.core.state.find(job)
    assert message is not None
    assert requeue(house.core, message) == WRONG_STATE
    assert house.facts("requeued") == []
