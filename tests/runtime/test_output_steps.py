"""What waits for a commit, for one connection, is bounded by bytes: a worker that reads is never cut off for having many slots."""

from __future__ import annotations

import pytest

from tests.runtime.conftest import NewBroker
from tests.runtime.peers import Client, Worker

BODY = b"x" * 3_000_000
COUNT = 70


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_a_worker_with_many_slots_gets_all_large_bodies_in_one_life(new_broker: NewBroker, durability: str) -> None:
    """70 bodies of 3 MB are three times what may wait for a peer that does not read."""
    broker = new_broker("limits.memory_max=2000000000", f"journal.durability={durability}").start()
    with Client(broker, identity=b"c") as client:
        for _ in range(COUNT):
            client.keep(b"q", BODY)
    with Worker(broker, b"q", slots=COUNT, identity=b"w") as worker:
        for _ in range(COUNT):
            job, body = worker.take()
            assert body == BODY
            worker.answer(job)


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_a_worker_with_many_slots_gets_all_small_bodies_in_one_life(new_broker: NewBroker, durability: str) -> None:
    """Bodies that are copied into the output count, too."""
    count = 8_000
    broker = new_broker("limits.out_buffer_max=1000000", f"journal.durability={durability}").start()
    with Client(broker, identity=b"c") as client:
        for number in range(count):
            client.request(b"q", body=b"%08d" % number + bytes(10_000))
        client.keep(b"last")
    with Worker(broker, b"q", slots=count, identity=b"w") as worker:
        for number in range(count):
            job, body = worker.take()
            assert body[:8] == b"%08d" % number
            worker.answer(job)
