"""A checkpoint is encoded in steps, and is the state of the instant at which it began, byte for byte."""

from __future__ import annotations

import random

import pytest

from dragoman.core import operator
from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import Snapshot, encode
from dragoman.limits import CHECKPOINT_ROWS_MAX
from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import Client, InMemoryBroker, Worker

QUEUES = [b"a", b"b", b"c"]
HEADERS = [b"", b"priority:3", b"dedupe:k%d", b"delay:1", b"expires:2", b"retry-count:2,guarantee", b"reply-requested"]


class Life:
    """A broker to which anything may happen, by chance."""

    def __init__(self, seed: int, head_max: int = 2) -> None:
        self.rng = random.Random(seed)
        settings = CoreSettings()
        settings.head_max = head_max
        settings.quarantine_after = 1
        self.broker = InMemoryBroker(settings)
        self.clients: list[Client] = [self.broker.client(b"client%d" % no) for no in range(4)]
        self.workers: list[Worker] = []
        self.asked: list[bytes] = []
        self.count = 0

    def act(self) -> None:
        rng, broker = self.rng, self.broker
        kind = rng.randrange(12)
        if kind < 5:
            self.request()
        elif kind == 5 and len(self.workers) < 3:
            self.join()
        elif kind == 6 and self.workers:
            worker = rng.choice(self.workers)
            worker.ready(rng.randint(1, 3))
            for job in worker.jobs():
                if rng.random() < 0.7:
                    worker.reply(job, rng.choice([b'{"value":1}', b'{"error":{"type":"E","message":"m"}}']))
        elif kind == 7 and self.workers and rng.random() < 0.5:
            self.workers.pop(rng.randrange(len(self.workers))).leave()
        elif kind == 8 and self.asked:
            self.clients[0].say(b"CANCEL", broker.next_id(), rng.choice(self.asked))
        elif kind == 9:
            broker.pass_time(rng.choice([0.1, 0.3, 1.0]))
        elif kind == 10:
            self.operate()
        elif kind == 11:
            self.schedule()
        broker.commit()

    def request(self) -> None:
        self.count += 1
        headers = self.rng.choice(HEADERS)
        if b"%d" in headers:
            headers %= self.rng.randrange(50)
        client = self.rng.choice(self.clients)
        self.asked.append(client.request(self.rng.choice(QUEUES), b"body %d" % self.count, headers))

    def join(self) -> None:
        worker = self.broker.worker(b"worker%d" % self.rng.randrange(1000))
        worker.inform(*((10, queue) for queue in self.rng.sample(QUEUES, self.rng.randint(1, 3))))
        self.workers.append(worker)

    def operate(self) -> None:
        core = self.broker.core
        quarantined = list(core.state.quarantine.values())
        if quarantined and self.rng.random() < 0.5:
            operator.requeue(core, self.rng.choice(quarantined))
        elif core.state.queues:
            name = self.rng.choice(list(core.state.queues))
            self.rng.choice(
                [
                    lambda: operator.set_paused(core, name, True),
                    lambda: operator.set_paused(core, name, False),
                    lambda: operator.purge(core, name, 2),
                ]
            )()

    def schedule(self) -> None:
        body = b"scheduled %d" % self.rng.randrange(5)
        runs = self.rng.choice([b"", b"run_count:2"])
        self.clients[1].say(b"SCHEDULE", self.broker.next_id(), self.rng.choice(QUEUES), runs, b"1", body, b"")


@pytest.mark.parametrize("seed", range(60))
def test_whatever_happens_between_its_steps_the_bytes_are_those_of_its_beginning(seed: int) -> None:
    life = Life(seed)
    for _ in range(life.rng.randint(20, 150)):
        life.act()
    state = life.broker.core.state
    wanted = encode(state, None)
    snapshot = Snapshot(state, None, True)
    chunks: list[bytes] = []
    while not snapshot.is_done:
        chunks += snapshot.step(life.rng.randint(1, 12))
        for _ in range(life.rng.randint(0, 4)):
            life.act()
    assert chunks == wanted, f"seed {seed}"
    assert state.snapshot is None


@pytest.mark.parametrize("seed", range(3))
def test_long_lines_are_cut_into_the_same_chunks(seed: int) -> None:
    life = Life(seed, head_max=500)
    rng = random.Random(seed)
    client = life.clients[0]
    for first in range(0, CHECKPOINT_ROWS_MAX + 3000, 1000):
        many = [[b"", b"eMQP/1.0", b"REQUEST", b"id%d" % no, b"a", b"", b"{}"] for no in range(first, first + 1000)]
        client.give(b"".join(map(encode_message, many)))
    life.broker.commit()
    worker = life.broker.worker()
    worker.inform((10, b"a"))
    state = life.broker.core.state
    for number in rng.sample(list(range(min(state.messages), state.next_number)), 40):
        if (m := life.broker.core.fetch(number)) is not None:
            life.broker.core.cancel(m, 9)
    wanted = encode(state, None)
    snapshot = Snapshot(state, None, True)
    chunks: list[bytes] = []
    while not snapshot.is_done:
        chunks += snapshot.step(500)
        worker.ready(rng.randint(1, 60))
        for number in rng.sample(list(range(1 << 40, state.next_number)), 5):
            if (m := life.broker.core.fetch(number)) is not None:
                life.broker.core.cancel(m, 9)
        client.request(b"a")
    assert chunks == wanted, f"seed {seed}"


def test_one_that_is_given_up_leaves_nothing_behind() -> None:
    life = Life(7)
    for _ in range(100):
        life.act()
    state = life.broker.core.state
    snapshot = Snapshot(state, None, True)
    snapshot.step(1)
    snapshot.close()
    assert state.snapshot is None
    assert all(
        line.tail.departed is None
        for queue in state.queues.values()
        for lane in queue.lanes
        for line in lane.lines.values()
    )
    assert Snapshot(state, None, True).step(1 << 40) == encode(state, None)


def test_encoding_at_once_does_not_disturb_one_that_is_under_way() -> None:
    life = Life(11)
    for _ in range(120):
        life.act()
    state = life.broker.core.state
    wanted = encode(state, None)
    snapshot = Snapshot(state, None, True)
    chunks: list[bytes] = []
    while not snapshot.is_done:
        chunks += snapshot.step(3)
        life.act()
        encode(state, None)
    assert chunks == wanted
