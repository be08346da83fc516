"""The work on leased messages: how long it takes, and how it ends."""

from __future__ import annotations

from typing import Final

from dragoman.core.lifecycle import QUARANTINED
from dragoman.model.message import Message, fact_id_of
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman.model.words import PINGPONG, RQ
from dragoman_lab.generate.chance import BITS, NORMALS
from dragoman_lab.generate.crew import Crew, Worker
from dragoman_lab.generate.house import House
from dragoman_lab.generate.services import Service
from dragoman_lab.generate.wishes import Wishes

LONGEST: Final = 20.0  # times the median
CONFIRM_S: Final = 0.004  # rq: until the worker confirms delivery
DEADLY_S: Final = 1.5  # how long a worker survives a deadly message
STOPS_ODDS: Final = 0.5  # of a worker whose message was settled meanwhile: it drops the work without a reply
SWEEP_S: Final = 0.1  # how often the broker checks for overdue leases


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

    def __init__(self, house: House, crew: Crew, wishes: Wishes, services: list[Service]) -> None:
        self.house = house
        self.crew = crew
        self.wishes = wishes
        self.deadly: set[int] = set()
        self._trades = {s.name.encode(): Trade(s) for s in services if s.workers}
        self._by_no: dict[int, Trade] = {}

    def begin(self, peer: QuietPeer, m: Message, attempt: int) -> None:
        """Start the work on a message that a worker was given."""
        worker = peer.owner
        assert isinstance(worker, Worker), "whoever is given a message is a worker"
        if m.worker is not peer or m.attempt != attempt or not worker.is_here:
            return
        house = self.house
        if m.number in self.deadly:
            house.later(DEADLY_S * house.chance.unit(), self.crew.crash, worker)
            return
        trade = self._by_no.get(m.queue_no)
        if trade is None:
            trade = self._by_no[m.queue_no] = self._trades[m.queue]
        work_ns = int(trade.times_ns[house.chance.bits(BITS)] * worker.slowness)
        task = (worker, worker.life, peer, m, attempt, trade)
        if worker.dialect == RQ:
            house.later(CONFIRM_S * house.chance.unit(), self.confirm, task)
        end_ns = house.now_ns + work_ns
        house.at(end_ns, self.finish, task)
        if 0 < m.lease_until_ns < end_ns:
            house.at(m.lease_until_ns, self.overdue, (m, attempt))

    def confirm(self, task: tuple[Worker, int, QuietPeer, Message, int, Trade]) -> None:
        worker, life, peer, m, attempt, _ = task
        if worker.is_here and worker.life == life and m.attempt == attempt:
            self.house.core.delivered(peer, m)

    def finish(self, task: tuple[Worker, int, QuietPeer, Message, int, Trade]) -> None:
        """End the work: reply, fail, or settle late."""
        worker, life, peer, m, attempt, trade = task
        if not worker.is_here:
            return
        if worker.life != life:
            self.answer_anew(worker, m)
            return
        core = self.house.core
        if m.worker is peer and m.attempt == attempt:
            self.settle(peer, m, trade)
        elif m.state <= QUARANTINED and worker.dialect != PINGPONG:
            core.reply(peer, m, self.wishes.piece(30), False)  # the first reply wins, even a late one
        elif self.house.chance.unit() > STOPS_ODDS:
            core.late(peer, fact_id_of(m))
        if not peer.work.is_leaving:
            core.ready(peer, 1)
        elif not peer.work.held:
            self.crew.go((worker, life))

    def settle(self, peer: QuietPeer, m: Message, trade: Trade) -> None:
        chance = self.house.chance
        odds = chance.unit()
        core = self.house.core
        if odds >= trade.returns:
            core.reply(peer, m, self.wishes.piece(8 + chance.bits(8)), False)
        elif odds < trade.fails:
            core.reply(peer, m, self.wishes.piece(40), True)
        elif odds < trade.refuses:
            core.reject(peer, m, self.wishes.piece(20))
        else:
            core.give_back(peer, m)

    def answer_anew(self, worker: Worker, m: Message) -> None:
        """Reply over a new connection after the worker lost the one it took the message on; only some workers do."""
        peer = worker.peer
        if peer is None or worker.dialect == PINGPONG or self.house.chance.unit() < STOPS_ODDS:
            return
        if m.state <= QUARANTINED:
            self.house.core.reply(peer, m, self.wishes.piece(30), False)

    def overdue(self, what: tuple[Message, int]) -> None:
        """Run the broker's sweep for a lease that has expired."""
        m, attempt = what
        if m.attempt != attempt or m.lease_until_ns == 0:
            return
        now_ns = self.house.now_ns
        self.house.timers.sweep(now_ns, now_ns)
        if m.attempt == attempt and 0 < m.lease_until_ns <= now_ns:
            self.house.later(SWEEP_S, self.overdue, what)
