"""Generated workers: they join, take messages, reply, fail, hang, die and come back."""

from __future__ import annotations

from typing import Final

from dragoman.dialects.description import WORKER
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.words import DIALECT_NAMES, EBUS, EMQP, HEARTBEAT_LOST, RQ
from dragoman_lab.generate.house import House
from dragoman_lab.generate.services import LONG_JOBS, Service

DOORS: Final = {described.number: described.by_role[WORKER] for described in DESCRIPTIONS}
SLOW_ODDS: Final = 0.12  # of a worker: it takes two to four times as long as the others
BOTH_ODDS: Final = 0.2  # of an emqp worker: it serves a second queue, too
LIFE_MEAN_S: Final = 2.5 * 86_400
SILENCE_S: Final = 15.0  # before a silent worker counts as lost
LEAVE_MAX_S: Final = 60.0  # how long a leaving worker may finish its messages
RANK: Final = 20


class Worker:
    """One worker program across all its connections. `life` counts the connections: messages leased on an earlier one are lost."""

    def __init__(self, dialect: int, name: str, queues: list[tuple[int, bytes]], slots: int, slowness: float) -> None:
        self.dialect = dialect
        self.name = name
        self.queues = queues
        self.slots = slots
        self.slowness = slowness
        self.life = 0
        self.is_here = False
        self.peer: QuietPeer | None = None


class Crew:
    """All workers of a broker."""

    def __init__(self, house: House, staff: list[tuple[Service, int]]) -> None:
        self.house = house
        self.everybody: list[Worker] = []
        names = [service.name for service, count in staff if count > 0]
        for service, count in staff:
            self._hire(service, count, names)

    def start(self) -> None:
        for worker in self.everybody:
            self.house.later(self.house.chance.between(0.1, 5.0), self.join, worker)
            self._plan_end(worker)

    def join(self, worker: Worker) -> None:
        if worker.is_here:
            return
        house = self.house
        listener = DOORS[worker.dialect]
        peer = house.connect(worker.dialect, listener.name, listener.number, worker.name.encode())
        peer.owner = worker
        peer.says_delivered = worker.dialect == RQ
        peer.is_chosen_by_load = worker.dialect == EBUS
        worker.peer, worker.is_here = peer, True
        worker.life += 1
        if worker.dialect == RQ:
            house.core.consume(peer, worker.queues[0][1], RANK, False)
        else:
            house.core.join(peer, worker.queues)
        house.core.ready(peer, worker.slots)

    # -- ways to end ----------------------------------------------------------------------------------------------------

    def crash(self, worker: Worker) -> None:
        """The worker dies with its leases; its connection ends."""
        if worker.is_here and worker.peer is not None:
            worker.is_here = False
            self.house.core.goodbye(worker.peer)
            self.house.later(self.house.chance.between(1, 60), self.join, worker)

    def fall_silent(self, worker: Worker) -> None:
        """The worker hangs: it sends nothing until it counts as lost."""
        if worker.is_here and worker.peer is not None:
            worker.is_here = False
            self.house.later(SILENCE_S, self.give_up, worker.peer)
            self.house.later(SILENCE_S + self.house.chance.between(5, 300), self.join, worker)

    def give_up(self, peer: QuietPeer) -> None:
        if peer.is_worker:
            self.house.core.lose(peer, HEARTBEAT_LOST)
            self.house.core.goodbye(peer)

    def leave(self, worker: Worker) -> None:
        """The worker announces that it leaves, and goes when it has no leases or after LEAVE_MAX_S."""
        if worker.is_here and worker.peer is not None and not worker.peer.is_leaving:
            self.house.core.leave(worker.peer)
            self.house.later(0.0 if not worker.peer.held else LEAVE_MAX_S, self.go, (worker, worker.life))

    def go(self, who: tuple[Worker, int]) -> None:
        worker, life = who
        if worker.is_here and worker.life == life and worker.peer is not None:
            worker.is_here = False
            self.house.core.goodbye(worker.peer)
            self.house.later(self.house.chance.between(2, 90), self.join, worker)

    def end(self, worker: Worker) -> None:
        """End the worker's connection, in one of several ways."""
        odds = self.house.chance.unit()
        if odds < 0.25:
            self.crash(worker)
        elif odds < 0.4:
            self.fall_silent(worker)
        else:
            self.leave(worker)
        self._plan_end(worker)

    def one_crashes(self, _: object) -> None:
        self.crash(self.house.chance.one_of(self.everybody))

    def one_falls_silent(self, _: object) -> None:
        self.fall_silent(self.house.chance.one_of(self.everybody))

    def deploy(self, _: object) -> None:
        """A deployment: the workers of one queue leave and come back, one after the other."""
        queue = self.house.chance.one_of(self.everybody).queues[0][1]
        for i, worker in enumerate(w for w in self.everybody if w.queues[0][1] == queue):
            self.house.later(20.0 * i, self.leave, worker)

    def start_again(self) -> None:
        """Reconnect the workers after a restart, each when it notices, some with a pending reply."""
        for worker in self.everybody:
            worker.is_here = False
            self.house.later(self.house.chance.between(0.3, 8.0), self.join, worker)

    # -- creating workers -----------------------------------------------------------------------------------------------

    def _hire(self, service: Service, count: int, names: list[str]) -> None:
        """Create `count` workers for a queue; some of them serve a second queue."""
        chance = self.house.chance
        for i, dialect in enumerate(chance.mix(service.workers, count)):
            queues = [(10, service.name.encode())]
            if dialect == EMQP and service.name != LONG_JOBS.name and chance.unit() < BOTH_ODDS:
                other = chance.one_of(names)
                if other not in (service.name, LONG_JOBS.name):
                    queues.append((5, other.encode()))
            slowness = chance.between(2.0, 4.0) if chance.unit() < SLOW_ODDS else chance.between(0.8, 1.2)
            name = f"{service.name}-{DIALECT_NAMES[dialect]}-w{i}"
            self.everybody.append(Worker(dialect, name, queues, service.slots, slowness))

    def _plan_end(self, worker: Worker) -> None:
        self.house.later(LIFE_MEAN_S * self.house.chance.exponential(), self.end, worker)
