"""Incidents and operator actions: restarts, pauses, purges, deadly messages, quarantine, clock steps, published messages."""

from __future__ import annotations

from typing import Final

from dragoman.core.operator import purge, requeue, set_paused
from dragoman.model.enums import BY_OPERATOR, DROPPED, EMQP, GUARANTEED, KEPT_WANTED, NO_HASTE, TAKEN
from dragoman.model.message import Message
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.broker import DAY_NS, GeneratedBroker
from dragoman_lab.generate.clients import Clients, Stream
from dragoman_lab.generate.crew import Crew, Work
from dragoman_lab.generate.services import LONG_JOBS, UNSERVED

TOPICS: Final = (b"orders.paid", b"orders.shipped", b"stock.low", b"users.joined", b"config.changed")
ODDITIES: Final = ("UNKNOWN_COMMAND", "PINGPONG_SHAPE", "RESERVED_TOPIC")
NEWS_PART: Final = 0.003  # of all facts
DEADLY_PART: Final = 3e-5  # of all messages
DEADLY_RETRIES: Final = 9  # more than the worker deaths that lead to quarantine
FIRED_PART: Final = 0.004  # of all messages, made by the interval schedule
INTERVAL_S_MIN: Final = 60


class Troubles:
    """Schedules all incidents; each is one small event."""

    def __init__(self, broker: GeneratedBroker, clients: Clients, crew: Crew, work: Work) -> None:
        self.broker = broker
        self.clients = clients
        self.crew = crew
        self.work = work
        served = [stream for stream in clients.streams if stream.service.workers]
        self.served = [stream for stream in served if stream.service.name != LONG_JOBS.name]
        self.judged = 0  # quarantined messages the operator has handled
        self.long_jobs = clients.by_name[LONG_JOBS.name]

    def start(self) -> None:
        broker, crew = self.broker, self.crew
        plan = broker.plan
        days = plan.days
        for act, count in (
            (self.clients.cut, max(4, round(days * 3))),
            (lambda _: crew.crash(broker.chance.one_of(crew.everybody)), max(2, round(days / 2))),
            (lambda _: crew.fall_silent(broker.chance.one_of(crew.everybody)), max(2, round(days / 3))),
            (crew.deploy, max(1, round(days * 5 / 7))),
            (self.pause, max(2, round(days / 3))),
            (self.purge, max(1, round(days / 7))),
            (lambda _: broker.timers.clock_stepped(int(broker.chance.between(-30, 30) * SECOND_NS)), 2),
            (self.send_deadly, max(3, round(plan.messages * DEADLY_PART))),
            (self.publish_news, max(10, round(plan.facts * NEWS_PART))),
        ):
            broker.spread(count, act, None)
        broker.spread(2, self.send_deadly, None, 0.05, 0.2)
        broker.spread(max(3, round(days)), self.visit_quarantine, None, 0.25, 0.86)
        # Not in the last part: messages that stay open need time to reach their state before the end.
        broker.spread(2, self.send_deadly, None, 0.88, 0.94)
        broker.spread(3, lambda _: self.clients.send(self.long_jobs), None, 0.92, 0.97)
        broker.spread(3, self.send_far, None, 0.9, 0.97)
        self.make_schedules()

    def make_schedules(self) -> None:
        """One by interval, scaled to the size of the run; several by cron; one that ends after three runs, one that is removed."""
        plan = self.broker.plan
        interval_s = max(plan.days * 86_400 / max(plan.messages * FIRED_PART, 4), INTERVAL_S_MIN)
        self.schedule(self.served[0], b"every", int(interval_s * SECOND_NS), "", -1)
        self.schedule(self.served[-1], b"nightly", 0, "15 2 * * *", -1)
        self.schedule(self.served[1 % len(self.served)], b"weekdays", 0, "30 6 * * 1-5", -1)
        self.schedule(self.served[0], b"few", int(interval_s * 3 * SECOND_NS), "", 3)
        self.schedule(self.served[-1], b"withdrawn", 0, "@hourly", -1)
        self.broker.at(plan.start_ns + min(plan.span_ns // 3, DAY_NS), self.unschedule, b"withdrawn")

    def unschedule(self, key: bytes) -> None:
        self.broker.core.unschedule(key, BY_OPERATOR)

    def schedule(self, stream: Stream, key: bytes, interval_ns: int, cron: str, runs: int) -> None:
        template = self.stored(stream, key)
        template.flags |= NO_HASTE
        template.dedupe = key
        template.retries_left = 2
        assert self.broker.core.schedule(template, interval_ns, cron, runs) == TAKEN

    def send_deadly(self, _: object) -> None:
        """A message that kills every worker that takes it, until it is quarantined."""
        m = self.stored(self.broker.chance.one_of(self.served), b"deadly-%d" % self.broker.now_ns)
        m.flags |= GUARANTEED
        m.retries_left = DEADLY_RETRIES
        self.broker.core.submit(m)
        self.work.deadly.add(m.number)

    def send_far(self, _: object) -> None:
        """A message that is due only after the end of the run."""
        m = self.stored(self.broker.chance.one_of(self.served), b"far-%d" % self.broker.now_ns)
        m.due_ns = self.broker.end_ns + DAY_NS
        self.broker.core.submit(m)

    def stored(self, stream: Stream, client_id: bytes) -> Message:
        """A message whose client wants only a confirmation that it is stored."""
        m = Message(EMQP, stream.queue, client_id, b'["run",{}]')
        m.flags = KEPT_WANTED
        return m

    def visit_quarantine(self, _: object) -> None:
        """The operator retries some quarantined messages, drops some and leaves the rest for later."""
        core = self.broker.core
        for m in list(core.state.quarantine.values()):
            self.judged += 1
            if self.judged % 3 == 1:
                self.work.deadly.discard(m.number)  # the cause has been fixed
                requeue(core, m)
            elif self.judged % 3 == 2:
                core.cancel(m, DROPPED)

    def pause(self, _: object) -> None:
        stream = self.broker.chance.one_of(self.served)
        set_paused(self.broker.core, stream.queue, True)
        pause_s = self.broker.chance.between(60, 1500)
        self.broker.later(pause_s, lambda _: set_paused(self.broker.core, stream.queue, False), None)

    def purge(self, _: object) -> None:
        purge(self.broker.core, UNSERVED.name.encode(), 1 + self.broker.chance.below(5))

    def publish_news(self, _: object) -> None:
        """Publish messages and log oddities; their counts become facts a second later."""
        broker = self.broker
        peer = broker.chance.one_of(self.clients.everybody).peer
        for _i in range(1 + broker.chance.below(20)):
            broker.core.publish(peer, TOPICS[broker.chance.bits(2)], b"news")
        if broker.chance.unit() < 0.2:
            broker.core.note(peer, broker.chance.one_of(list(ODDITIES)))
        broker.later(1.0, lambda _: broker.timers.sweep(broker.now_ns, broker.now_ns), None)
