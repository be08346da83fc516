"""What counts as a failure, and what `guarantee`, `retry-count` and `timeout` make of it."""

from __future__ import annotations

import pytest

from dragoman.core.settings import CoreSettings
from tests.core.harness import InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, error_type, ready_worker, results

FAILURE = b'{"error": {"type": "ValueError", "message": "no"}}'
TIMEOUT = b'{"value": "TimeoutError"}'


def alive(broker: InMemoryBroker, worker: Worker, seconds: int) -> None:
    for _ in range(seconds):
        broker.pass_time(1)
        worker.heartbeat()


@pytest.mark.parametrize("value", [FAILURE, TIMEOUT, b'{"value":"TimeoutError"}'])
def test_a_failure_is_tried_again_as_often_as_retry_count_says(value: bytes) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=9)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested,retry-count:2")
    for _ in range(3):
        worker.reply(job, value)
        alive(broker, worker, 5)
    assert worker.jobs() == [job] * 3
    assert results(client) == [(job, value)]
    (closed,) = broker.facts("closed")
    assert (closed["outcome"], closed["reason"], closed["attempt"]) == ("rejected", "retries_used_up", 3)


@pytest.mark.parametrize("value", [b'{"value": "kaboom"}', b'{"value": null}', b"", b'{"value": "TimeoutError: x"}'])
def test_any_other_value_is_a_success_even_an_exceptions_text(value: bytes) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested,retry-count:2")
    worker.reply(job, value)
    assert results(client) == [(job, value)]
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["done"]


def test_a_failure_without_retry_count_or_guarantee_is_the_end_and_passed_on() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    worker.reply(job, FAILURE)
    assert results(client) == [(job, FAILURE)]
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["rejected"]


def test_a_failure_is_not_sent_to_a_client_that_asked_for_no_result() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB)
    worker.reply(job, FAILURE)
    assert results(client) == []


def test_guarantee_alone_tries_until_a_success() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=9)
    client = broker.client()
    job = client.request(b"mail", JOB, b"guarantee,reply-requested")
    for wait_s in (2, 3, 5, 9):
        worker.reply(job, FAILURE)
        alive(broker, worker, wait_s)
    assert worker.jobs() == [job] * 5
    worker.reply(job, b"at last")
    assert results(client) == [(job, b"at last")]


def test_a_guaranteed_job_that_used_up_its_retries_is_set_aside_never_settled() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=9)
    client = broker.client()
    job = client.request(b"mail", JOB, b"guarantee,retry-count:0,reply-requested")
    worker.reply(job, FAILURE)
    ((answered, value),) = results(client)
    assert answered == job
    assert error_type(value) == "FAILED"
    assert broker.facts("closed") == []
    assert len(broker.facts("quarantined")) == 1


def test_retries_wait_longer_each_time() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=9)
    job = broker.client().request(b"mail", JOB, b"retry-count:3")
    for wait_s in (1, 2, 4):
        worker.jobs()
        worker.reply(job, FAILURE)
        for _ in range(wait_s * 10 - 1):
            broker.pass_time(0.1)
            worker.heartbeat()
        assert worker.jobs() == []
        broker.pass_time(0.2)
        assert worker.jobs() == [job]


def test_a_lost_worker_uses_up_a_retry() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested,retry-count:1")
    ready_worker(broker, identity=b"first").leave()
    second = ready_worker(broker, identity=b"second")
    assert second.jobs() == [job]
    second.leave()
    ((answered, value),) = results(client)
    assert answered == job
    assert error_type(value) == "RETRIES_USED_UP"


def test_a_plain_job_whose_worker_is_lost_is_run_elsewhere() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    ready_worker(broker, identity=b"first").leave()
    second = ready_worker(broker, identity=b"second")
    assert second.jobs() == [job]
    second.reply(job, b"v")
    assert results(client) == [(job, b"v")]


def test_a_job_that_outlives_three_workers_is_set_aside_whatever_it_asked_for() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB, b"reply-requested,retry-count:100")
    for n in range(3):
        ready_worker(broker, identity=b"w%d" % n).leave()
        broker.pass_time(10)
    ((_, value),) = results(client)
    assert error_type(value) == "WORKERS_DIED"
    assert len(broker.facts("quarantined")) == 1


def test_timeout_is_a_hard_bound_on_an_attempt_however_alive_the_worker_is() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    client.request(b"mail", JOB, b"timeout:5,reply-requested")
    alive(broker, worker, 4)
    assert results(client) == []
    alive(broker, worker, 2)
    ((_, value),) = results(client)
    assert error_type(value) == "TIMED_OUT"


def test_a_timeout_uses_up_a_retry() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    job = broker.client().request(b"mail", JOB, b"timeout:2,retry-count:1")
    alive(broker, worker, 5)
    assert worker.jobs() == [job, job]
    alive(broker, worker, 5)
    assert [fact["reason"] for fact in broker.facts("closed")] == ["retries_used_up"]


def test_a_success_after_the_timeout_still_counts_while_the_retry_waits() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"timeout:2,retry-count:1,reply-requested")
    alive(broker, worker, 3)
    worker.reply(job, b"late but there")
    assert results(client) == [(job, b"late but there")]


def test_a_failure_from_one_who_no_longer_holds_the_job_is_late() -> None:
    broker = InMemoryBroker()
    first = ready_worker(broker, identity=b"first")
    client = broker.client()
    job = client.request(b"mail", JOB, b"timeout:2,retry-count:5,reply-requested")
    alive(broker, first, 3)
    second = ready_worker(broker, identity=b"second")
    broker.pass_time(1)
    assert second.jobs() == [job]
    first.reply(job, FAILURE)
    assert len(broker.facts("late")) == 1
    second.reply(job, b"v")
    assert results(client) == [(job, b"v")]


def test_a_default_timeout_of_the_broker_applies_where_the_client_gave_none() -> None:
    settings = CoreSettings()
    settings.timeout_ns = 3 * 1_000_000_000
    broker = InMemoryBroker(settings)
    worker = ready_worker(broker)
    client = broker.client()
    client.request(b"mail", JOB, b"reply-requested")
    alive(broker, worker, 4)
    ((_, value),) = results(client)
    assert error_type(value) == "TIMED_OUT"


def test_a_client_that_asked_is_notified_why_there_will_be_no_answer() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested,expires:3")
    broker.pass_time(4)
    ((answered, value),) = results(client)
    assert (answered, error_type(value)) == (job, "PAST_EXPIRY")
