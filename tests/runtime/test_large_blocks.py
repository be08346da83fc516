"""Blocks of megabytes are written in a thread: order, promises and trouble are as for any other."""

from __future__ import annotations

import pytest

from dragoman.limits import WRITTEN_ASIDE_SIZE
from tests.runtime.conftest import NewBroker
from tests.runtime.peers import Client, Worker
from tests.waiting import wait_for

LARGE = 3 * WRITTEN_ASIDE_SIZE
WAIT_S = 60.0


@pytest.mark.long
@pytest.mark.parametrize("durability", ["os", "disk", "memory"])
def test_large_and_small_messages_keep_their_order_and_come_whole(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker(durability=durability).start()
    bodies = [b"%d " % number + b"x" * (LARGE if number % 3 == 0 else 10) for number in range(9)]
    with Client(broker, identity=b"client") as client, Worker(broker, b"mixed", slots=20) as worker:
        asked = [client.request(b"mixed", b"reply-requested", body) for body in bodies]
        for request_id, body in zip(asked, bodies, strict=True):
            assert worker.take(WAIT_S) == (request_id, body)
            worker.answer(request_id, body)
        assert [client.result(request_id, WAIT_S) for request_id in asked] == bodies


@pytest.mark.long
@pytest.mark.parametrize("durability", ["os", "disk"])
def test_what_was_acknowledged_outlives_a_kill(new_broker: NewBroker, durability: str) -> None:
    broker = new_broker(durability=durability).start()
    with Client(broker, identity=b"client") as client:
        bodies = {client.request(b"kept", b"ack-requested", b"%d" % number * LARGE): number for number in range(3)}
        kept = {client.hear_word(b"ACK", wait_s=WAIT_S)[2] for _ in bodies}
        assert kept == set(bodies)
    broker.kill()
    broker.start()
    with Worker(broker, b"kept", slots=3) as worker:
        for request_id, number in bodies.items():
            assert worker.take(WAIT_S) == (request_id, b"%d" % number * LARGE)


def test_nothing_about_a_large_message_leaves_before_it_is_written(new_broker: NewBroker) -> None:
    """A broker that is stopped in the middle of it has either kept it, or told nobody of it."""
    broker = new_broker(durability="os").start()
    with Client(broker, identity=b"client") as client:
        for _ in range(3):
            client.request(b"kept", b"ack-requested", b"x" * LARGE)
        client.hear_word(b"ACK", wait_s=WAIT_S)
        broker.kill()
    broker.start()
    wait_for("the acknowledged", lambda: broker.ask("counters")["waiting"] >= 1)
