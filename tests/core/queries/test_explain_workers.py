"""What a worker does, and why it gets nothing, provoked by peers and time alone."""

from __future__ import annotations

from dragoman.core import operator
from tests.core.harness import InMemoryBroker
from tests.core.queries.explaining import serve, worker_lines
from tests.dialects.rq.nodes import Node, consumer, request


def test_an_idle_worker_says_that_nothing_waits_for_it(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 2, b"w")
    lines = worker_lines(broker, "w")
    assert lines[0] == "has 2 free slots, and nothing that may be given out waits in its queues"
    assert lines[1] == "serves `mail` (weight 10): 0 waiting, 0 leased"
    assert lines[-1].startswith("last sign of life from worker w1.")


def test_a_full_worker_says_what_it_has_held_the_longest(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 2, b"w")
    client = broker.client()
    job = client.request(b"mail")
    broker.pass_time(1.5)
    client.request(b"mail")
    lines = worker_lines(broker, "w")
    assert lines[0] == "takes nothing new: all its slots are taken (2 leased)"
    assert lines[1] == f"has held message {job.decode()} the longest: 1.5 s (attempt 1)"


def test_a_worker_without_ready_says_so(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 0, b"w")
    assert worker_lines(broker, "w")[0].startswith("takes nothing: it has joined but has not said that it has room")


def test_a_leaving_worker_says_so(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1, b"w")
    broker.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    assert worker_lines(broker, "w")[0] == "takes nothing new: it is leaving (1 leased; it may still answer them)"


def test_a_dismissed_worker_says_so_and_how_it_comes_back(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1, b"w")
    broker.client().request(b"mail")
    peer = next(iter(broker.core.workers.values()))
    broker.core.roster.dismiss(peer)
    line = worker_lines(broker, "w")[0]
    assert line.startswith("takes nothing new: the operator dismissed it (1 leased; it may still answer them); ")
    assert "`dragoman workers admit w1." in line


def test_a_worker_that_does_not_read_says_so(broker: InMemoryBroker) -> None:
    worker = serve(broker, b"mail", 1, b"w")
    worker.session.is_blocked = True
    assert worker_lines(broker, "w")[0] == "takes nothing new: it does not read what is sent to it (0 leased)"


def test_an_original_worker_with_unfit_work_says_what_it_is_offered(broker: InMemoryBroker) -> None:
    worker = broker.worker(b"w")
    worker.inform_as_original((10, b"mail"))
    worker.ready(1)
    broker.client().request(b"mail", body=b"\xff")
    lines = worker_lines(broker, "w")
    assert lines[0] == "has 1 free slot; what waits in its queues is not for it or comes in a moment"
    assert "is an original EventMQ worker: it is offered JSON jobs only" in lines


def test_an_rq_message_is_called_by_its_number_as_everywhere(broker: InMemoryBroker) -> None:
    consumer(broker, "mail")
    Node(broker).say(request(7, "mail"))
    [number] = broker.core.workers
    assert "has held message 7 the longest: 0.0 ms (attempt 1)" in worker_lines(broker, f"w{number}")


def test_a_worker_of_a_paused_queue_shows_the_pause(broker: InMemoryBroker) -> None:
    serve(broker, b"mail", 1, b"w")
    operator.set_paused(broker.core, b"mail", True)
    assert "serves `mail` (weight 10): 0 waiting, 0 leased, paused" in worker_lines(broker, "w")


def test_a_worker_with_a_body_constraint_is_shown_with_it_and_with_what_its_claim_waits_for(
    broker: InMemoryBroker,
) -> None:
    broker.dialects.rq.settings.librq_safe = True
    consumer(broker, "mail", flags="EXCLUSIVE")
    Node(broker).say("CLEAR EXCLUSIVE QUEUE=mail MAX=1 CONSUME")
    lines = [line for number in list(broker.core.workers) for line in worker_lines(broker, f"w{number}")]
    assert "waits to serve `mail`: an exclusive claim stands between" in lines
    assert lines.count("can be sent only bodies that are not empty") == 2
    assert lines[-1].endswith("0.0 ms ago")  # joining is a sign of life, before the first beat
