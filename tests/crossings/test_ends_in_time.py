"""Timeouts, expiry and cancelling across dialects: the client is told, and a late answer answers nothing."""

from __future__ import annotations

from typing import Any

import pytest

from dragoman.dialects.features import CANCEL, EXPIRY, TIMEOUT
from tests.crossings.cells import cells_with, expiring
from tests.independent.broker_with_peers import BrokerWithPeers


def assert_next_answer_is_its_own(client: Any, worker: Any, queue: str, job: object) -> None:
    """The worker answers, too late, what it had, and then the next message."""
    worker.answer(job, b"too late")
    asked = client.ask(queue, b"next")
    job, body = worker.take()
    assert body == b"next"
    worker.answer(job, b"in time")
    assert client.outcome(asked) == ("answered", b"in time")


@pytest.mark.parametrize(("speaks", "works"), cells_with(TIMEOUT))
def test_a_timeout_bounds_an_attempt_at_any_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    asked = client.ask(queue, b"slow", "timeout:0.3")
    job, _ = worker.take()
    kind, value = client.outcome(asked, 2.0)
    assert kind == "refused"
    assert b"TIMED_OUT" in value
    if works == "ebus":
        assert_cancelled(worker, job)
    assert_next_answer_is_its_own(client, worker, queue, job)


@pytest.mark.parametrize(("speaks", "works"), cells_with(EXPIRY))
def test_an_expiry_in_the_queue_is_reported_and_reaches_no_worker(
    broker: BrokerWithPeers, speaks: str, works: str
) -> None:
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    stale = client.ask(queue, b"stale", *expiring(speaks))
    assert client.outcome(stale, 3.0)[0] == "refused"
    fresh = client.ask(queue, b"fresh")
    worker = broker.worker(works, queue)
    job, body = worker.take()
    assert body == b"fresh"
    worker.answer(job, b"done")
    assert client.outcome(fresh) == ("answered", b"done")


@pytest.mark.parametrize(("speaks", "works"), [cell for cell in cells_with(EXPIRY) if cell.values[0] == "ebus"])
def test_an_ebus_request_expires_in_the_hands_of_any_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    asked = client.ask(queue, b"slow", 500)
    job, _ = worker.take()
    assert client.outcome(asked, 2.0)[0] == "refused"
    if works == "ebus":
        assert_cancelled(worker, job)
    assert_next_answer_is_its_own(client, worker, queue, job)


@pytest.mark.parametrize("works", ["scale0", "emqp", "rq"])
def test_an_rq_timeout_runs_until_the_message_is_delivered(broker: BrokerWithPeers, works: str) -> None:
    """An rq consumer that has it but does not confirm it loses it; any other worker has it delivered by being given it."""
    queue = broker.queue(works)
    client, worker = broker.client("rq"), broker.worker(works, queue)
    asked = client.ask(queue, b"slow", *expiring("rq"))
    job, _ = worker.take()
    if works == "rq":
        assert client.outcome(asked, 3.0)[0] == "refused"
        assert_next_answer_is_its_own(client, worker, queue, job)
        return
    with pytest.raises(TimeoutError):
        client.outcome(asked, 1.5)
    assert asked in client.handed_over
    worker.answer(job, b"done")
    assert client.outcome(asked) == ("answered", b"done")


@pytest.mark.parametrize(("speaks", "works"), cells_with(CANCEL))
def test_a_cancelled_message_ends_at_any_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    """Its client is told; an ebus worker is, too."""
    queue = broker.queue(speaks, works)
    client, worker = broker.client(speaks), broker.worker(works, queue)
    asked = client.ask(queue, b"unwanted")
    job, _ = worker.take()
    client.cancel(asked)
    assert client.outcome(asked, 2.0)[0] == "refused"
    if works == "ebus":
        assert_cancelled(worker, job)
    assert_next_answer_is_its_own(client, worker, queue, job)


@pytest.mark.parametrize(("speaks", "works"), cells_with(CANCEL))
def test_what_was_cancelled_in_the_line_reaches_no_worker(broker: BrokerWithPeers, speaks: str, works: str) -> None:
    queue = broker.queue(speaks, works)
    client = broker.client(speaks)
    unwanted = client.ask(queue, b"unwanted")
    client.cancel(unwanted)
    assert client.outcome(unwanted, 2.0)[0] == "refused"
    wanted = client.ask(queue, b"wanted")
    worker = broker.worker(works, queue)
    job, body = worker.take()
    assert body == b"wanted"
    worker.answer(job, b"done")
    assert client.outcome(wanted) == ("answered", b"done")


def assert_cancelled(worker: Any, job: bytes) -> None:
    while not worker.cancelled:
        with pytest.raises(TimeoutError):
            worker.take(0.1)
    assert worker.cancelled == [job]
