"""Bodies of the largest size that are on disk only reach their workers intact, and no callback holds the loop for them."""

from __future__ import annotations

from base64 import b64decode
from contextlib import ExitStack
from random import Random

import pytest

from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.version import build_flavour
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker
from tests.runtime.test_loop_at_limits import PURE_FACTOR, bound_ns

LARGE = MESSAGE_SIZE_MAX - 4096  # all frames of a message count
WAIT_S = 120.0


def large_body(number: int) -> bytes:
    piece = Random(number).randbytes(1 << 20)
    return (piece * (LARGE // len(piece) + 1))[:LARGE]


def kept(broker: Daemon, *bodies: bytes) -> list[bytes]:
    """They are accepted, and the broker is restarted: then they are nowhere but on disk. Their ids."""
    with Client(broker, identity=b"large") as client:
        ids = []
        for body in bodies:
            ids.append(client.request(b"large", b"ack-requested", body))
            client.hear_word(b"ACK", wait_s=WAIT_S)
        client.request(b"small", b"ack-requested", b"small")
        client.hear_word(b"ACK", wait_s=WAIT_S)
    broker.stop()
    broker.start()
    return ids


def check_loop(broker: Daemon) -> None:
    """Copying takes as long in plain Python as in compiled."""
    bound = bound_ns() / (PURE_FACTOR if build_flavour() == "pure" else 1.0)
    loop = broker.ask("status")["loop"]
    assert loop["longest_ns"] <= bound, f"{loop}, bound {bound / 1e6:.0f} ms"


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_a_worker_gets_the_largest_bodies_from_disk_intact(new_broker: NewBroker) -> None:
    broker = new_broker("limits.memory_max=2000000000").start()
    bodies = [large_body(1), large_body(2)]
    kept(broker, *bodies)
    with Worker(broker, b"large", slots=2) as worker:
        for body in bodies:
            job, got = worker.take(WAIT_S)
            assert got == body
            worker.answer(job)
    check_loop(broker)


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_others_are_served_while_a_large_body_comes_and_little_memory_ends_in_no_circle(new_broker: NewBroker) -> None:
    """No body may stay in memory, and three workers want one each."""
    broker = new_broker("limits.memory_max=536870912", "queues.head_max=1").start()
    bodies = [large_body(number) for number in range(3)]
    kept(broker, *bodies)
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(broker, b"large", identity=b"w%d" % no)) for no in range(3)]
        other = stack.enter_context(Worker(broker, b"small"))
        assert other.take(WAIT_S)[1] == b"small"
        assert sorted(worker.take(WAIT_S)[1] for worker in workers) == sorted(bodies)
    check_loop(broker)


@pytest.mark.alone
@pytest.mark.timeout(600)
def test_questions_about_the_largest_bodies_hold_nobody_up(new_broker: NewBroker) -> None:
    broker = new_broker("limits.memory_max=2000000000", "queues.head_max=1").start()
    bodies = [large_body(1), large_body(2)]
    for request_id, body in zip(kept(broker, *bodies), bodies, strict=True):
        shown = broker.ask("body", id=request_id.decode(), size_max=100)
        assert shown["size"] == LARGE
        assert b64decode(shown["body"]) == body[:100]
        broker.ask("explain", of=request_id.decode())
    check_loop(broker)
