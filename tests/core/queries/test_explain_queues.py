"""Why a queue does not move, provoked by peers and time alone."""

from __future__ import annotations

import pytest

from dragoman.core import operator
from dragoman.limits import MESSAGES_LOOKED_AT_MAX
from dragoman.model.enums import DRAINING
from tests.core.harness import START_NS, InMemoryBroker
from tests.core.queries.explaining import JOB, queue_lines, serve
from tests.core.replaying import check_replay, restart
from tests.dialects.rq.nodes import Node, consumer
from tests.dialects.rq.spelling import risp


def test_an_idle_queue_counts_its_workers_and_their_free_slots(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 3)
    assert queue_lines(broker, "mail") == ["nothing waits; 1 worker with 3 free slots"]


def test_an_idle_queue_without_workers_says_since_when(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0).leave()
    broker.pass_time(60)
    [line] = queue_lines(broker, "mail")
    assert line.startswith("nothing waits; no worker serves `mail`; the last one left 22:13:20 UTC, 60.0 s ago (")


def test_a_queue_that_waits_says_why_and_what_else_is_in_it(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    client = broker.client()
    client.request(b"mail")
    client.request(b"mail")
    client.request(b"mail", headers=b"delay:10")
    assert worker.jobs()
    assert queue_lines(broker, "mail") == [
        "waits: 1 worker serves `mail` and all their slots are taken (1 leased)",
        "1 message waiting",
        "1 message leased",
        "1 message delayed, the next until 22:13:30 UTC (in 10.0 s)",
    ]


def test_the_next_delayed_message_is_not_named_where_there_are_very_many(broker: InMemoryBroker) -> None:
    client = broker.client()
    client.request(b"mail", headers=b"delay:10")
    assert queue_lines(broker, "mail")[-1] == "1 message delayed, the next until 22:13:30 UTC (in 10.0 s)"
    broker.core.state.delayed.extend([(START_NS, 0)] * MESSAGES_LOOKED_AT_MAX)
    assert queue_lines(broker, "mail")[-1] == "1 message delayed"


def test_a_paused_queue_says_so_empty_or_not(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    operator.set_paused(broker.core, b"mail", True)
    assert queue_lines(broker, "mail") == ["nothing waits, and the queue is paused"]
    broker.client().request(b"mail")
    assert queue_lines(broker, "mail")[0].startswith("waits: the queue `mail` is paused")


def test_a_queue_counts_the_bodies_original_workers_are_not_offered(broker: InMemoryBroker) -> None:
    worker = broker.worker()
    worker.inform_as_original((10, b"mail"))
    client = broker.client()
    client.request(b"mail", body=b"\xff")
    client.request(b"mail", body=JOB)
    worker.ready(1)
    client.request(b"mail", body=JOB)
    lines = queue_lines(broker, "mail")
    assert "1 of them are not JSON jobs: original EventMQ workers are not offered them" in lines


def test_a_queue_counts_its_quarantined_messages(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    job = broker.client().request(b"mail", headers=b"guarantee,retry-count:0")
    worker.reply(job, b'{"error":{}}')
    assert queue_lines(broker, "mail")[-1] == "1 message quarantined: `dragoman quarantine list` shows them"


def test_a_draining_broker_is_the_first_thing_a_queue_tells(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    broker.core.refusing = DRAINING
    assert queue_lines(broker, "mail")[0] == "takes no new work: the broker is draining and takes no new work"


def test_a_queue_whose_workers_have_free_slots_moves(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1)
    worker.session.is_blocked = True
    broker.client().request(b"mail")
    worker.session.is_blocked = False
    assert queue_lines(broker, "mail") == ["moves: 1 message waiting, and workers with free slots take them"]


def test_a_queue_counts_the_bodies_that_some_dialects_would_misunderstand(broker: InMemoryBroker) -> None:
    broker.dialects.rq.settings.librq_safe = True
    client = broker.client()
    client.request(b"mail", body=b"")
    consumer(broker, "mail")
    serve(broker, b"other", 0)
    for _ in range(2):
        client.request(b"mail", body=b"x")
    assert queue_lines(broker, "mail")[2] == (
        "1 of them cannot be sent to every worker: some dialects would take such a body for a command of their own"
    )


def test_a_draining_queue_says_so_first_and_how_to_end_it(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1)
    operator.set_draining(broker.core, b"mail")
    assert queue_lines(broker, "mail") == [
        "takes no new messages: it is being drained; `dragoman queues resume mail` ends that",
        "nothing waits; 1 worker with 1 free slot",
    ]


@pytest.mark.parametrize("name", ["a\t--5 x", "a\t- x", "a\t5", "\t", "a\t\t-", "-1 a", "a\t+5 x"])
def test_a_worker_of_a_queue_with_an_odd_name_is_remembered_over_a_start(broker: InMemoryBroker, name: str) -> None:
    Node(broker).give(risp(f"CLEAR QUEUE={name.replace(' ', '~')} MAX=1 CONSUME").replace(b"~", b" "))
    check_replay(broker)
    after = restart(broker, by_checkpoint=False)
    [line] = queue_lines(after, name)
    assert line.endswith(
        "; the last one left 22:13:20 UTC, 0.0 ms ago (the broker started anew, and it did not come back)"
    )
