"""Generated workers: they join, take messages, reply, fail, hang, die and come back; and their work: how long it takes, and how it ends."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dragoman.core.lifecycle import QUARANTINED
from dragoman.dialects.description import WORKER
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model.enums import DIALECT_NAMES, EBUS, EMQP, HEARTBEAT_LOST, PINGPONG, RQ
from dragoman.model.message import Message, fact_id_of
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.broker import BITS, NORMALS, GeneratedBroker
from dragoman_lab.generate.clients import MessageMaker
from dragoman_lab.generate.services import LONG_JOBS, Service

DOORS: Final = {described.number: described.by_role[WORKER] for described in DESCRIPTIONS}
SLOW_ODDS: Final = 0.12  # of a worker: it takes two to four times as long as the others
BOTH_ODDS: Final = 0.2  # of an emqp worker: it serves a second queue, too
LIFE_MEAN_S: Final = 2.5 * 86_400
SILENCE_S: Final = 15.0  # before a silent worker counts as lost
LEAVE_MAX_S: Final = 60.0  # how long a leaving worker may finish its messages
RANK: Final = 20
LONGEST: Final = 20.0  # times the median
CONFIRM_S: Final = 0.004  # rq: until the worker confirms delivery
DEADLY_S: Final = 1.5  # how long a worker survives a deadly message
STOPS_ODDS: Final = 0.5  # of a worker whose message was settled meanwhile: it drops the work without a reply
SWEEP_S: Final = 0.1  # how often the broker checks for overdue leases


@dataclass(slots=True, eq=False)
class Worker:
    """One worker program across all its connections. `life` counts the connections: messages leased on an earlier one are lost."""

    dialect: int
    name: str
    queues: list[tuple[int, bytes]]
    slots: int
    slowness: float
    life: int = 0
    is_here: bool = False
    peer: QuietPeer | None = None


class Crew:
    """All workers of a broker."""

    def __init__(self, broker: GeneratedBroker, staff: list[tuple[Service, int]]) -> None:
        self.broker = broker
        self.everybody: list[Worker] = []
        names = [service.name for service, count in staff if count > 0]
        for service, count in staff:
            self._hire(service, count, names)

    def start(self) -> None:
        for worker in self.everybody:
            self.broker.later(self.broker.chance.between(0.1, 5.0), self.join, worker)
            self._plan_end(worker)

    def join(self, worker: Worker) -> None:
        if worker.is_here:
            return
        broker = self.broker
        listener = DOORS[worker.dialect]
        peer = broker.connect(worker.dialect, listener.name, listener.number, worker.name.encode())
        peer.owner = worker
        peer.says_delivered = worker.dialect == RQ
        peer.is_chosen_by_load = worker.dialect == EBUS
        worker.peer, worker.is_here = peer, True
        worker.life += 1
        if worker.dialect == RQ:
            broker.core.consume(peer, worker.queues[0][1], RANK, False)
        else:
            broker.core.join(peer, worker.queues)
        broker.core.ready(peer, worker.slots)

    def crash(self, worker: Worker) -> None:
        """The worker dies with its leases; its connection ends."""
        if worker.is_here and worker.peer is not None:
            worker.is_here = False
            self.broker.core.goodbye(worker.peer)
            self.broker.later(self.broker.chance.between(1, 60), self.join, worker)

    def fall_silent(self, worker: Worker) -> None:
        """The worker hangs: it sends nothing until it counts as lost."""
        if worker.is_here and worker.peer is not None:
            worker.is_here = False
            self.broker.later(SILENCE_S, self.give_up, worker.peer)
            self.broker.later(SILENCE_S + self.broker.chance.between(5, 300), self.join, worker)

    def give_up(self, peer: QuietPeer) -> None:
        if peer.is_worker:
            self.broker.core.lose(peer, HEARTBEAT_LOST)
            self.broker.core.goodbye(peer)

    def leave(self, worker: Worker) -> None:
        """The worker announces that it leaves, and goes when it has no leases or after LEAVE_MAX_S."""
        if worker.is_here and worker.peer is not None and not worker.peer.work.is_leaving:
            self.broker.core.leave(worker.peer)
            self.broker.later(0.0 if not worker.peer.work.leases else LEAVE_MAX_S, self.go, (worker, worker.life))

    def go(self, who: tuple[Worker, int]) -> None:
        worker, life = who
        if worker.is_here and worker.life == life and worker.peer is not None:
            worker.is_here = False
            self.broker.core.goodbye(worker.peer)
            self.broker.later(self.broker.chance.between(2, 90), self.join, worker)

    def end(self, worker: Worker) -> None:
        """End the worker's connection, in one of several ways."""
        odds = self.broker.chance.unit()
        if odds < 0.25:
            self.crash(worker)
        elif odds < 0.4:
            self.fall_silent(worker)
        else:
            self.leave(worker)
        self._plan_end(worker)

    def deploy(self, _: object) -> None:
        """A deployment: the workers of one queue leave and come back, one after the other."""
        queue = self.broker.chance.one_of(self.everybody).queues[0][1]
        for i, worker in enumerate(w for w in self.everybody if w.queues[0][1] == queue):
            self.broker.later(20.0 * i, self.leave, worker)

    def start_again(self) -> None:
        """Reconnect the workers after a restart, each when it notices, some with a pending reply."""
        for worker in self.everybody:
            worker.is_here = False
            self.broker.later(self.broker.chance.between(0.3, 8.0), self.join, worker)

    def _hire(self, service: Service, count: int, names: list[str]) -> None:
        """Create `count` workers for a queue; some of them serve a second queue."""
        chance = self.broker.chance
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
        self.broker.later(LIFE_MEAN_S * self.broker.chance.exponential(), self.end, worker)


class Trade:
    """A queue's work durations and odds, precomputed."""

    def __init__(self, service: Service) -> None:
        self.times_ns = [
            int(min(2.718281828459045 ** (service.spread * normal), LONGEST) * service.work_s * SECOND_NS)
            for normal in NORMALS
        ]
        self.fails = service.fails
        self.refuses = self.fails + service.refuses
        self.returns = self.refuses + service.returns


class Work:
    """All running work. `deadly`: messages that kill the workers that take them."""

    def __init__(self, broker: GeneratedBroker, crew: Crew, maker: MessageMaker, services: list[Service]) -> None:
        self.broker = broker
        self.crew = crew
        self.maker = maker
        self.deadly: set[int] = set()
        self._trades = {s.name.encode(): Trade(s) for s in services if s.workers}
        self._by_no: dict[int, Trade] = {}

    def begin(self, peer: QuietPeer, m: Message, attempt: int) -> None:
        """Start the work on a message that a worker was given."""
        worker = peer.owner
        assert isinstance(worker, Worker), "only a worker is given a message"
        if m.worker is not peer or m.attempt != attempt or not worker.is_here:
            return
        broker = self.broker
        if m.number in self.deadly:
            broker.later(DEADLY_S * broker.chance.unit(), self.crew.crash, worker)
            return
        trade = self._by_no.get(m.queue_no)
        if trade is None:
            trade = self._by_no[m.queue_no] = self._trades[m.queue]
        work_ns = int(trade.times_ns[broker.chance.bits(BITS)] * worker.slowness)
        task = (worker, worker.life, peer, m, attempt, trade)
        if worker.dialect == RQ:
            broker.later(CONFIRM_S * broker.chance.unit(), self.confirm, task)
        end_ns = broker.now_ns + work_ns
        broker.at(end_ns, self.finish, task)
        if 0 < m.lease_until_ns < end_ns:
            broker.at(m.lease_until_ns, self.overdue, (m, attempt))

    def confirm(self, task: tuple[Worker, int, QuietPeer, Message, int, Trade]) -> None:
        worker, life, peer, m, attempt, _ = task
        if worker.is_here and worker.life == life and m.attempt == attempt:
            self.broker.core.delivered(peer, m)

    def finish(self, task: tuple[Worker, int, QuietPeer, Message, int, Trade]) -> None:
        """End the work: reply, fail, or settle late."""
        worker, life, peer, m, attempt, trade = task
        if not worker.is_here:
            return
        if worker.life != life:
            self.answer_anew(worker, m)
            return
        core = self.broker.core
        if m.worker is peer and m.attempt == attempt:
            self.settle(peer, m, trade)
        elif m.state <= QUARANTINED and worker.dialect != PINGPONG:
            core.reply(peer, m, self.maker.piece(30), False)  # the first reply wins, even a late one
        elif self.broker.chance.unit() > STOPS_ODDS:
            core.late(peer, fact_id_of(m))
        if not peer.work.is_leaving:
            core.ready(peer, 1)
        elif not peer.work.leases:
            self.crew.go((worker, life))

    def settle(self, peer: QuietPeer, m: Message, trade: Trade) -> None:
        chance = self.broker.chance
        odds = chance.unit()
        core = self.broker.core
        if odds >= trade.returns:
            core.reply(peer, m, self.maker.piece(8 + chance.bits(8)), False)
        elif odds < trade.fails:
            core.reply(peer, m, self.maker.piece(40), True)
        elif odds < trade.refuses:
            core.reject(peer, m, self.maker.piece(20))
        else:
            core.give_back(peer, m)

    def answer_anew(self, worker: Worker, m: Message) -> None:
        """Reply over a new connection after the worker lost the one it took the message on; only some workers do."""
        peer = worker.peer
        if peer is None or worker.dialect == PINGPONG or self.broker.chance.unit() < STOPS_ODDS:
            return
        if m.state <= QUARANTINED:
            self.broker.core.reply(peer, m, self.maker.piece(30), False)

    def overdue(self, what: tuple[Message, int]) -> None:
        """Run the broker's sweep for a lease that has expired."""
        m, attempt = what
        if m.attempt != attempt or m.lease_until_ns == 0:
            return
        now_ns = self.broker.now_ns
        self.broker.timers.sweep(now_ns, now_ns)
        if m.attempt == attempt and 0 < m.lease_until_ns <= now_ns:
            self.broker.later(SWEEP_S, self.overdue, what)
