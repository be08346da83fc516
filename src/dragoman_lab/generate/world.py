"""Main loop of the generator: runs due events; the facts of each instant make one block."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Final

from dragoman.model.enums import BROKER_STARTED
from dragoman.model.units import SECOND_NS
from dragoman.version import VERSION
from dragoman_lab.generate.broker import FACTS_PER_MESSAGE, GeneratedBroker, Plan
from dragoman_lab.generate.clients import Clients, MessageMaker
from dragoman_lab.generate.crew import Crew, Work
from dragoman_lab.generate.services import RateCurve, services_of, staffed
from dragoman_lab.generate.troubles import Troubles

NEVER: Final = 1 << 62
RESTART_EVERY_DAYS: Final = 4.0
DOWN_S: Final = (1.0, 45.0)
PACES: Final = 1000  # how often in a run the pace is corrected
SENT_MIN: Final = 500  # below this number of messages, the usual number of facts per message is assumed
SCALE: Final = (0.2, 8.0)
EARLY_PART: Final = 0.003  # of the run: better a little early than into the next day

Take = Callable[[bytes, int, int, int], None]  # records, first lsn, count, time_ns


class World:
    """One broker with its clients and workers, from its first start until there are enough facts."""

    def __init__(self, plan: Plan) -> None:
        self.broker = GeneratedBroker(plan)
        maker = MessageMaker(self.broker.chance)
        rate_curves = [(service, RateCurve(service, plan, self.broker.chance)) for service in services_of(plan)]
        staff = [staffed(service, rate_curve.peak) for service, rate_curve in rate_curves]
        services = [service for service, _ in staff]
        self.clients = Clients(
            self.broker, maker, list(zip(services, (rate_curve for _, rate_curve in rate_curves), strict=True))
        )
        self.crew = Crew(self.broker, staff)
        self.work = Work(self.broker, self.crew, maker, services)
        self.troubles = Troubles(self.broker, self.clients, self.crew, self.work)

    def run(self, take: Take) -> None:
        """Pass each block to `take`, until there are enough facts."""
        broker = self.broker
        self._begin()
        self._hand_over(take)
        core, timers, log, given, agenda = broker.core, broker.timers, broker.core.log, broker.given, broker.agenda
        delayed, expiries, begin = core.state.delayed, core.state.expiries, self.work.begin
        goal = broker.plan.facts
        while broker.facts < goal:
            due_ns = delayed[0][0] if delayed else NEVER
            expiry_ns = expiries.next_ns()
            if 0 < expiry_ns < due_ns:
                due_ns = expiry_ns
            if self.fires_ns < due_ns:
                due_ns = self.fires_ns
            if due_ns <= agenda[0][0]:
                now_ns = broker.now_ns = max(due_ns, broker.now_ns)
                timers.sweep(now_ns, now_ns)
                self._note_schedules()
            else:
                at_ns, _, act, what = heapq.heappop(agenda)
                now_ns = broker.now_ns = at_ns if at_ns > broker.now_ns else broker.now_ns  # late only after a restart
                core.set_time(now_ns)
                act(what)
            if given:
                for peer, m, attempt in given:
                    begin(peer, m, attempt)
                given.clear()
            if log.count:
                self._hand_over(take)

    def _hand_over(self, take: Take) -> None:
        broker = self.broker
        log = broker.core.log
        count = log.count
        take(log.take(), broker.facts + 1, count, broker.core.now_ns)
        broker.facts += count

    def _begin(self) -> None:
        broker = self.broker
        plan = broker.plan
        broker.core.set_time(broker.now_ns)
        self._boot()
        self.clients.start()
        self.crew.start()
        self.troubles.start()
        self._note_schedules()
        broker.spread(max(2, round(plan.days / RESTART_EVERY_DAYS)), self.restart, None, 0.1, 0.9)
        broker.at(broker.now_ns, self.keep_pace, None)

    def _boot(self) -> None:
        self.broker.boot_no += 1
        self.broker.core.start(self.broker.boot_no, VERSION.encode(), b"generated id key")

    def _note_schedules(self) -> None:
        """Compute when the next schedule is due."""
        schedules = self.broker.core.state.schedules.values()
        self.fires_ns = min((schedule.next_due_ns for schedule in schedules), default=NEVER)

    def keep_pace(self, _: object) -> None:
        """Adjust the clients' rate so that the planned number of facts is reached at the end of the run."""
        broker = self.broker
        per_message = broker.facts / broker.sent if broker.sent > SENT_MIN else FACTS_PER_MESSAGE
        early_ns = broker.now_ns + int(broker.plan.span_ns * EARLY_PART)
        to_come = sum(stream.rate_curve.to_come(early_ns) for stream in self.clients.streams) * per_message
        if to_come > 0:
            self.clients.scale = min(max((broker.plan.facts - broker.facts) / to_come, SCALE[0]), SCALE[1])
        broker.at(broker.now_ns + broker.plan.span_ns // PACES, self.keep_pace, None)

    def restart(self, _: object) -> None:
        """The broker dies with leases open and restarts after a while; events that were due meanwhile happen then."""
        broker = self.broker
        core = broker.core
        for peer in list(core.workers.values()):
            core.roster.drop_servings(peer, BROKER_STARTED)
            peer.is_worker, peer.is_connected, peer.work.leases, peer.work.timed_leases = False, False, {}, 0
        core.workers.clear()
        core.routes.peers.clear()
        core.routes.older.clear()
        core.topics.take_counts()
        core.notes = {}
        for m in core.state.messages.values():
            m.worker, m.client, m.lease_until_ns = None, None, 0
        broker.now_ns += int(broker.chance.between(*DOWN_S) * SECOND_NS)
        core.set_time(broker.now_ns)
        self._boot()
        self.clients.start_again()
        self.crew.start_again()
