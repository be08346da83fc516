"""What does not move although it should: each finding provoked by peers and time alone, and none where all is well."""

from __future__ import annotations

from typing import Any

from dragoman.core import operator
from dragoman.core.queries import stuck
from dragoman.limits import FINDINGS_MAX, IDLE_NS_MAX, OLD_MESSAGE_NS
from dragoman.model.enums import DRAINING
from dragoman.model.phrases import number_text
from dragoman.model.units import SECOND_NS
from tests.core.harness import InMemoryBroker, Worker
from tests.core.queries.explaining import serve

IDLE_S = IDLE_NS_MAX / SECOND_NS
OLD_S = OLD_MESSAGE_NS / SECOND_NS


def pass_time(broker: InMemoryBroker, seconds: float, *workers: Worker) -> None:
    """Time in which workers live."""
    for _ in range(int(seconds) + 1):
        broker.pass_time(1)
        for worker in workers:
            worker.heartbeat()


def findings(broker: InMemoryBroker) -> Any:
    return stuck.findings(broker.core)


def test_a_busy_broker_has_no_findings(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    client = broker.client()
    client.request(b"mail")
    client.request(b"mail")
    pass_time(broker, IDLE_S + 1, worker)
    assert findings(broker) == []


def test_a_queue_with_waiting_messages_and_no_worker_is_found_at_once(broker: InMemoryBroker) -> None:
    for _ in range(3):
        broker.client().request(b"mail")
    assert findings(broker) == [
        {
            "kind": "queue_without_worker",
            "queue": "mail",
            "worker": "",
            "line": "queue `mail` has 3 waiting and no worker",
        }
    ]


def test_a_paused_queue_with_waiting_messages_is_found_and_not_called_one_without_worker(
    broker: InMemoryBroker,
) -> None:
    broker.client().request(b"mail")
    operator.set_paused(broker.core, b"mail", True)
    [found] = findings(broker)
    assert (found["kind"], found["line"]) == ("paused_with_waiting", "queue `mail` is paused with 1 waiting")


def test_a_message_that_waits_too_long_beside_busy_workers_is_found(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail")
    broker.client().request(b"mail")
    broker.client().request(b"mail")
    pass_time(broker, OLD_S, worker)
    [found] = findings(broker)
    assert found["kind"] == "old_message"
    assert found["line"] == "queue `mail` has 1 waiting, the oldest for 5 min; 1 worker there, 1 leased"


def test_a_worker_with_free_slots_and_matching_work_that_takes_nothing_is_found(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 2)
    worker.session.is_blocked = True
    broker.client().request(b"mail")
    worker.session.is_blocked = False  # and nobody feeds it: a fault of the broker's own, which this finding is for
    pass_time(broker, IDLE_S, worker)
    [found] = findings(broker)
    assert (found["kind"], found["queue"]) == ("idle_worker", "mail")
    assert found["worker"] == "w" + number_text(worker.session.number)
    assert found["line"].startswith(
        f"worker {found['worker']} (worker) has free slots and matching work in `mail` but took"
    )


def test_a_message_that_came_a_moment_ago_makes_no_worker_idle(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 2)
    pass_time(broker, IDLE_S, worker)
    worker.session.is_blocked = True
    broker.client().request(b"mail")
    worker.session.is_blocked = False
    assert findings(broker) == []


def test_a_worker_whose_only_work_is_not_fit_for_it_is_not_idle(broker: InMemoryBroker) -> None:
    worker = broker.worker()
    worker.inform_as_original((10, b"mail"))
    worker.ready(1)
    broker.client().request(b"mail", body=b"\xff no json")
    pass_time(broker, IDLE_S, worker)
    assert findings(broker) == []


def test_a_worker_that_does_not_read_is_found(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 2)
    worker.session.is_blocked = True
    broker.client().request(b"mail")
    pass_time(broker, IDLE_S, worker)
    [found] = findings(broker)
    assert found["kind"] == "blocked_worker"
    assert "does not read what is sent to it and took nothing for" in found["line"]
    assert found["line"].endswith("; 1 wait in `mail`")


def test_a_worker_that_never_offered_a_slot_is_found(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 0)
    broker.client().request(b"mail")
    pass_time(broker, IDLE_S, worker)
    [found] = findings(broker)
    assert found["kind"] == "blocked_worker"
    assert "has never said that it has room and took nothing for" in found["line"]


def test_a_broker_that_refuses_says_why_and_one_that_stops_finds_nothing_else(broker: InMemoryBroker) -> None:
    broker.client().request(b"mail")
    broker.core.refusing = DRAINING
    broker.core.dispatch.is_stopped = True
    [found] = findings(broker)
    assert found["kind"] == "refusing"
    assert found["line"] == "new work is refused: the broker is draining and takes no new work"


def test_many_findings_of_one_kind_do_not_hide_another_kind(broker: InMemoryBroker) -> None:
    for number in range(FINDINGS_MAX + 5):
        broker.client().request(b"queue %d" % number)
    broker.client().request(b"paused")
    operator.set_paused(broker.core, b"paused", True)
    kinds = [found["kind"] for found in findings(broker)]
    assert kinds.count("queue_without_worker") == FINDINGS_MAX
    assert kinds.count("paused_with_waiting") == 1
