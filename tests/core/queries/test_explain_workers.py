"""What a worker does, and why it gets nothing, provoked by peers and time alone."""

from __future__ import annotations

from dragoman.core import operator
from tests.core.harness import House
from tests.core.queries.explaining import serve, worker_lines
from tests.dialects.rq.nodes import Node, consumer, request


def test_an_idle_worker_says_that_nothing_waits_for_it(house: House) -> None:
    serve(house, b"mail", 2, b"w")
    lines = worker_lines(house, "w")
    assert lines[0] == "has 2 free slots, and nothing that may be given out waits in its queues"
    assert lines[1] == "serves `mail` (weight 10): 0 waiting, 0 leased"
    assert lines[-1].startswith("last sign of life from worker w1.")


def test_a_full_worker_says_what_it_has_held_the_longest(house: House) -> None:
    serve(house, b"mail", 2, b"w")
    client = house.client()
    job = client.request(b"mail")
    house.pass_time(1.5)
    client.request(b"mail")
    lines = worker_lines(house, "w")
    assert lines[0] == "takes nothing new: all its slots are taken (2 leased)"
    assert lines[1] == f"has held message {job.decode()} the longest: 1.5 s (attempt 1)"


def test_a_worker_without_ready_says_so(house: House) -> None:
    serve(house, b"mail", 0, b"w")
    assert worker_lines(house, "w")[0].startswith("takes nothing: it has joined but has not said that it has room")


def test_a_leaving_worker_says_so(house: House) -> None:
    worker = serve(house, b"mail", 1, b"w")
    house.client().request(b"mail")
    worker.say(b"KBYE", b"k")
    assert worker_lines(house, "w")[0] == "takes nothing new: it is leaving (1 leased; it may still answer them)"


def test_a_dismissed_worker_says_so_and_how_it_comes_back(house: House) -> None:
    serve(house, b"mail", 1, b"w")
    house.client().request(b"mail")
    peer = next(iter(house.core.workers.values()))
    house.core.roster.dismiss(peer)
    line = worker_lines(house, "w")[0]
    assert line.startswith("takes nothing new: the operator dismissed it (1 leased; it may still answer them); ")
    assert "`dragoman workers admit w1." in line


def test_a_worker_that_does_not_read_says_so(house: House) -> None:
    worker = serve(house, b"mail", 1, b"w")
    worker.session.is_blocked = True
    assert worker_lines(house, "w")[0] == "takes nothing new: it does not read what is sent to it (0 leased)"


def test_an_original_worker_with_unfit_work_says_what_it_is_offered(house: House) -> None:
    worker = house.worker(b"w")
    worker.inform_as_original((10, b"mail"))
    worker.ready(1)
    house.client().request(b"mail", body=b"\xff")
    lines = worker_lines(house, "w")
    assert lines[0] == "has 1 free slot; what waits in its queues is not for it or comes in a moment"
    assert "is an original EventMQ worker: it is offered JSON jobs only" in lines


def test_an_rq_message_is_called_by_its_number_as_everywhere(house: House) -> None:
    consumer(house, "mail")
    Node(house).say(request(7, "mail"))
    [number] = house.core.workers
    assert "has held message 7 the longest: 0.0 ms (attempt 1)" in worker_lines(house, f"w{number}")


def test_a_worker_of_a_paused_queue_shows_the_pause(house: House) -> None:
    serve(house, b"mail", 1, b"w")
    operator.set_paused(house.core, b"mail", True)
    assert "serves `mail` (weight 10): 0 waiting, 0 leased, paused" in worker_lines(house, "w")


def test_a_picky_worker_says_what_it_can_be_told_and_what_its_claim_waits_for(house: House) -> None:
    house.dialects.rq.settings.librq_safe = True
    consumer(house, "mail", flags="EXCLUSIVE")
    Node(house).say("CLEAR EXCLUSIVE QUEUE=mail MAX=1 CONSUME")
    lines = [line for number in list(house.core.workers) for line in worker_lines(house, f"w{number}")]
    assert "waits to serve `mail`: an exclusive claim stands between" in lines
    assert lines.count("can be told only bodies that are not empty") == 2
    assert lines[-1].endswith("0.0 ms ago")  # joining is a sign of life, before the first beat
