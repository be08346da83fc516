"""Messages that live at random, written down as the broker writes them: facts to count, and what really was."""

from __future__ import annotations

import random

from dragoman.model.message import Message
from dragoman.model.records import NO_DIALECT, STARTED, FactLog
from dragoman.model.units import SECOND_NS
from dragoman.model.words import (
    ANSWERED,
    BROKER_STARTED,
    BY_CLIENT,
    BY_OPERATOR,
    DIALECTS,
    DROPPED,
    FAILED,
    TIMED_OUT,
    WORKERS_DIED,
)

BEGIN_NS = 1_700_000_000 * SECOND_NS
TICK_NS = SECOND_NS // 10
DONE, CANCELLED = 3, 6
QUEUES = (1, 2, 3)
WORKER_NO = 77

Block = tuple[bytes, int]


class World:
    """One block a tick. Each message is in one of four places."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.now_ns = BEGIN_NS
        self.log = FactLog()
        self.blocks: list[Block] = []
        self.boot_no = 0
        self.next_number = 1
        self.waiting: list[Message] = []
        self.delayed: list[Message] = []
        self.leased: list[Message] = []
        self.aside: list[Message] = []
        self.levels: list[tuple[int, dict[int, int]]] = []  # when, and how many waited in each queue

    def live(self, seconds: int) -> None:
        for _ in range(seconds * SECOND_NS // TICK_NS):
            self.come_due()
            for _ in range(self.chance.randint(0, 4)):
                self.chance.choice(
                    [self.accept, self.accept, self.lease, self.lease, self.end, self.end, self.interfere]
                )()
            self.commit()

    def commit(self) -> None:
        if self.log.count:
            self.blocks.append((self.log.take(), self.now_ns))
        self.levels.append((self.now_ns, self.depths()))
        self.now_ns += TICK_NS

    def depths(self) -> dict[int, int]:
        return {queue_no: sum(m.queue_no == queue_no for m in self.waiting) for queue_no in QUEUES}

    def come_due(self) -> None:
        self.waiting += [m for m in self.delayed if m.due_ns <= self.now_ns]
        self.delayed = [m for m in self.delayed if m.due_ns > self.now_ns]

    def start(self) -> None:
        self.come_due()
        self.boot_no += 1
        self.log.numbered(STARTED, self.boot_no, 0, b"1.0")
        for m in self.leased:
            self.log.released(m, m.worker_no, NO_DIALECT, m.retries_left, m.due_ns, BROKER_STARTED, False)
        self.waiting += self.leased
        self.leased = []
        self.commit()

    # -- what may happen ------------------------------------------------------------------------------------------------------

    def accept(self) -> None:
        m = Message(self.chance.randrange(DIALECTS), b"q", b"", b"body")
        m.number, m.queue_no = self.next_number, self.chance.choice(QUEUES)
        self.next_number += 1
        m.accepted_ns = self.now_ns
        if self.chance.random() < 0.2:
            m.due_ns = m.asked_due_ns = self.now_ns + self.chance.randint(1, 30) * SECOND_NS
        self.log.accepted(m)
        (self.delayed if m.due_ns > self.now_ns else self.waiting).append(m)

    def lease(self) -> None:
        m = self.taken(self.waiting)
        if m is not None:
            m.attempt += 1
            m.worker_no, m.leased_ns = WORKER_NO, self.now_ns
            m.first_leased_ns = m.first_leased_ns or self.now_ns
            self.log.leased(m, WORKER_NO)
            self.leased.append(m)

    def end(self) -> None:
        """Mostly an answer; else again, at once or later, or quarantine."""
        m = self.taken(self.leased)
        if m is None:
            return
        part = self.chance.random()
        if part < 0.6:
            self.log.closed(m, WORKER_NO, self.chance.randrange(1, DIALECTS), 0, DONE, ANSWERED, WORKER_NO)
        elif part < 0.7:
            self.log.closed(m, 0, 0, 0, CANCELLED, BY_CLIENT, WORKER_NO)
        elif part < 0.9:
            m.due_ns = self.now_ns + SECOND_NS * 3 if part < 0.8 else 0
            self.log.released(m, WORKER_NO, 3, 5, m.due_ns, FAILED if part < 0.8 else TIMED_OUT, False)
            (self.delayed if m.due_ns else self.waiting).append(m)
        else:
            self.log.quarantined(m, WORKER_NO, 3, WORKERS_DIED, WORKER_NO)
            self.aside.append(m)

    def interfere(self) -> None:
        """What an operator or a late answer does to what nobody holds."""
        part = self.chance.random()
        if part < 0.4:
            m = self.taken(self.aside)
            if m is not None and part < 0.1:
                self.log.requeued(m, is_in_line=False)
                self.waiting.append(m)
            elif m is not None and part < 0.3:
                self.log.closed(m, 0, 0, 0, CANCELLED, BY_OPERATOR if part < 0.2 else DROPPED, 0)
            elif m is not None:
                self.log.closed(m, WORKER_NO, 3, 0, DONE, ANSWERED, 0)
            return
        fresh = [m for m in self.delayed if m.attempt == 0]  # a retry's delay is in no fact of its end
        m = self.taken(fresh if part < 0.6 else self.waiting)
        if m is not None:
            if m in self.delayed:
                self.delayed.remove(m)
            is_late = m.attempt > 0 and part > 0.8
            self.log.closed(m, WORKER_NO if is_late else 0, 3, 0, DONE if is_late else CANCELLED, BY_OPERATOR, 0)

    def taken(self, place: list[Message]) -> Message | None:
        return place.pop(self.chance.randrange(len(place))) if place else None


def lived(seed: int, *boots_s: int) -> World:
    """A world that started once for each number of seconds."""
    world = World(seed)
    for seconds in boots_s:
        world.start()
        world.live(seconds)
    return world
