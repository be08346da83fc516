"""The generated queues: their purpose, clients and workers, and their load: a rate for every five minutes of the run, with day and night,
weekends, surges and lulls."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final

from dragoman.model.enums import EBUS, EMQP, PINGPONG, RQ, SCALE0
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.broker import DAY_NS, Chance, Plan

SLOT_S: Final = 300
SLOT_NS: Final = SLOT_S * SECOND_NS
WEEKDAY_OF_1970: Final = 3  # the epoch was a Thursday; Monday is 0
SURGES: Final = (0.05, 2.5, 4.0, 7.0)  # factors on the usual rate
SURGE_EVERY_DAYS: Final = 3.0
SURGE_SLOTS_MAX: Final = 6


@dataclass(frozen=True, slots=True)
class Service:
    """One queue. Shares are fractions of all messages; hours are UTC; odds are per message or per attempt."""

    name: str
    share: float
    clients: dict[int, float]  # dialect → share of the messages
    workers: dict[int, float]  # dialect → share of the workers; empty: no workers
    peak_hour: float = 13.0
    width_h: float = 3.5  # standard deviation of the busy time, in hours
    night: float = 0.12  # the quietest hour, as a fraction of the busiest
    weekend: float = 0.4  # as a fraction of a weekday
    work_s: float = 0.4  # median
    spread: float = 0.7  # sigma of the logarithm
    busy: float = 0.75  # utilisation of the workers in the busiest hour
    slots: int = 1  # messages a worker takes at a time
    body_size: float = 300.0
    fails: float = 0.01
    refuses: float = 0.001
    returns: float = 0.001
    is_cancelled: float = 0.002
    is_delayed: float = 0.01
    is_urgent: float = 0.05
    is_batched: float = 0.001  # sends many messages at the same instant
    retries: int = 2
    timeout_s: float = 0.0
    expires_s: float = 0.0


# In every world: a queue whose jobs take a good part of the run, so that some are leased at any time …
LONG_JOBS: Final = Service(
    "training", 0.0, {EMQP: 1}, {EMQP: 1}, peak_hour=9, night=0.3, spread=0.3, busy=0.5, fails=0.05,
    is_delayed=0, is_batched=0, is_cancelled=0,
)  # fmt: skip
LONG_JOBS_COUNT: Final = 20
LONG_JOB_PART: Final = 0.05  # of the run
# … and one without workers.
UNSERVED: Final = Service(
    "legacy.import", 0.0, {EMQP: 1, RQ: 1}, {}, night=0.5, is_cancelled=0.05, is_batched=0, expires_s=172_800
)
UNSERVED_COUNT_MIN: Final = 20

# A queue has as many workers as its busiest ordinary hour needs.
WORKERS_MAX: Final = 40
SLOWER_MAX: Final = 4.0
SLOWNESS: Final = 1.25  # of the average worker: see crew
BATCH_MEAN: Final = 44  # messages: see clients

SERVICES: Final = (
    Service(
        "orders", 0.24, {EBUS: 5, EMQP: 3, SCALE0: 1, RQ: 1}, {EBUS: 3, EMQP: 3, SCALE0: 1},
        peak_hour=15, weekend=0.9, work_s=0.25, expires_s=30, busy=0.7,
    ),
    Service(
        "emails", 0.18, {EMQP: 6, RQ: 2, EBUS: 1}, {EMQP: 4, RQ: 3}, peak_hour=9.5, weekend=0.25, work_s=0.9, spread=0.9,
        fails=0.03, retries=4, timeout_s=12, is_delayed=0.05, is_batched=0.002, busy=0.7,
    ),
    Service(
        "pingpong", 0.08, {PINGPONG: 8, RQ: 1, SCALE0: 1}, {PINGPONG: 4, SCALE0: 1}, peak_hour=20, weekend=1.4, work_s=0.05,
        retries=0, is_delayed=0, is_batched=0,
    ),
    Service(
        "payments", 0.11, {EBUS: 3, SCALE0: 2, EMQP: 2}, {EBUS: 2, SCALE0: 2}, peak_hour=16, weekend=0.8, work_s=1.2,
        timeout_s=15, fails=0.02, retries=3, expires_s=120, is_urgent=0.2, busy=0.65,
    ),
    Service(
        "thumbnails", 0.12, {RQ: 4, EMQP: 3}, {RQ: 4, EMQP: 1}, peak_hour=21, width_h=4.5, weekend=1.5, work_s=2.5, spread=1.0,
        body_size=900, timeout_s=60, busy=0.85, is_batched=0.002,
    ),
    Service(
        "search.index", 0.09, {SCALE0: 4, EBUS: 2, EMQP: 1}, {SCALE0: 3, EMQP: 1}, peak_hour=13, night=0.3, work_s=0.5,
        body_size=700, slots=4,
    ),
    Service(
        "invoices", 0.04, {EMQP: 4, EBUS: 1}, {EMQP: 2, RQ: 1}, peak_hour=2, width_h=2, night=0.02, weekend=0.5, work_s=4,
        retries=5, fails=0.04, busy=0.97,
    ),
    Service(
        "notify.push", 0.06, {RQ: 5, EBUS: 2}, {RQ: 3, EBUS: 1}, peak_hour=18, weekend=1.1, work_s=0.12, expires_s=60, slots=4,
    ),
    Service(
        "reports", 0.02, {EMQP: 3, SCALE0: 1}, {EMQP: 1, SCALE0: 1}, peak_hour=8, width_h=1.5, weekend=0.05, work_s=40,
        spread=1.0, timeout_s=300, retries=1, busy=0.9,
    ),
    Service(
        "audit.log", 0.05, {SCALE0: 2, EBUS: 1, EMQP: 1, RQ: 1, PINGPONG: 1}, {EBUS: 1, RQ: 1}, night=0.5, weekend=0.7, work_s=0.08,
        is_cancelled=0, fails=0.002,
    ),
)  # fmt: skip


def services_of(plan: Plan) -> list[Service]:
    """As many queues as planned, including the long jobs and the queue without workers; shares add up to one."""
    served = [_again(SERVICES[i % len(SERVICES)], i // len(SERVICES)) for i in range(plan.queues - 2)]
    total = sum(service.share for service in served)
    long_share = LONG_JOBS_COUNT / plan.messages
    open_share = max(plan.open_share, UNSERVED_COUNT_MIN / plan.messages)
    rest = 1 - open_share - long_share
    long_jobs = replace(LONG_JOBS, share=long_share, work_s=plan.days * 86_400 * LONG_JOB_PART)
    scaled = [replace(service, share=service.share / total * rest) for service in served]
    return [*scaled, long_jobs, replace(UNSERVED, share=open_share)]


def staffed(service: Service, peak: float) -> tuple[Service, int]:
    """The queue with as many workers as `peak` messages a second need; none if the service has no workers.

    If too many would be needed, the work is faster instead; if even the fewest (one of each dialect, plus one) would be idle, it is slower.
    """
    if not service.workers:
        return service, 0
    mean_s = service.work_s * math.exp(service.spread**2 / 2)
    needed = peak * (1 + service.is_batched * BATCH_MEAN) * mean_s * SLOWNESS / (service.slots * service.busy)
    fewest = len(service.workers) + 1
    factor = min(WORKERS_MAX / needed, max(fewest / needed, 1.0), SLOWER_MAX)
    count = min(max(math.ceil(needed * factor), fewest), WORKERS_MAX)
    return replace(service, work_s=service.work_s * factor, timeout_s=service.timeout_s * factor), count


def _again(service: Service, round_no: int) -> Service:
    """A copy of a service with another name and other busy hours."""
    if round_no == 0:
        return service
    return replace(service, name=f"{service.name}.{round_no + 1}", peak_hour=(service.peak_hour + 5 * round_no) % 24)


class RateCurve:
    """Messages per second of one queue, slot by slot; after the end of the run the last slot's rate applies."""

    def __init__(self, service: Service, plan: Plan, chance: Chance) -> None:
        self.start_ns = plan.start_ns
        count = max(math.ceil(plan.span_ns / SLOT_NS), 1)
        usual = [usual_rate(service, plan.start_ns + i * SLOT_NS) for i in range(count)]
        per_unit = plan.messages * service.share / sum(usual) / SLOT_S
        self.peak = max(usual) * per_unit  # of an ordinary day
        self.rates = [rate * per_unit for rate in usual]
        for _ in range(max(round(count * SLOT_NS / DAY_NS / SURGE_EVERY_DAYS), 1)):
            first, factor = chance.below(count), SURGES[chance.below(len(SURGES))]
            for i in range(first, min(first + 1 + chance.below(SURGE_SLOTS_MAX), count)):
                self.rates[i] *= factor
        planned = 0.0
        self.rest = [0.0] * (count + 1)  # messages still to come from this slot on
        for i in range(count - 1, -1, -1):
            planned += self.rates[i] * SLOT_S
            self.rest[i] = planned

    def at(self, now_ns: int) -> tuple[float, int]:
        """The rate now, and the instant until which it holds."""
        slot = (now_ns - self.start_ns) // SLOT_NS
        return self.rates[min(slot, len(self.rates) - 1)], self.start_ns + (slot + 1) * SLOT_NS

    def to_come(self, now_ns: int) -> float:
        """The number of messages from now to the end of the run."""
        slot, into_ns = divmod(now_ns - self.start_ns, SLOT_NS)
        if slot >= len(self.rates):
            return 0.0
        return self.rest[slot] - self.rates[slot] * into_ns / SECOND_NS


def usual_rate(service: Service, at_ns: int) -> float:
    """The rate of an ordinary week, relative to the busiest hour of a weekday."""
    hour = at_ns % DAY_NS / (DAY_NS / 24)
    weekday = (at_ns // DAY_NS + WEEKDAY_OF_1970) % 7
    away_h = abs(hour - service.peak_hour)
    away_h = min(away_h, 24 - away_h)
    bump = math.exp(-((away_h / service.width_h) ** 2) / 2)
    return (service.night + (1 - service.night) * bump) * (service.weekend if weekday >= 5 else 1.0)
