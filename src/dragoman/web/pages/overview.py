"""The pages of the whole broker: rates, durations and stuck messages at a glance; the matrix of crossings; the list of schedules."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.web.dashboard import Context, Dashboard, Query, one_part
from dragoman.web.samples.history import SLOT_S, Point
from dragoman.web.samples.samples import DialectSample

BUSIEST_MAX: Final = 8
SLOTS_A_MINUTE: Final = 60 // SLOT_S
SHADES: Final = 5


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    sampler = dashboard.sampler
    recent, hour = sampler.history.recent(), sampler.history.hour()
    return {
        "now": sampler.tallies,
        "status": await dashboard.link.ask("status"),
        "findings": sampler.findings,
        "last": sampler.history.latest(),
        "window": sampler.history.window(),
        "recent": curves(recent),
        "hour": curves(hour),
        "known_minutes": known_minutes(hour),
        "dialects": mix(sampler.totals.dialects),
        "since_ns": sampler.totals.since_ns,
        "busiest": busiest(sampler.queues),
        "trails": sampler.trails,
    }


def curves(points: Sequence[Point | None]) -> Context:
    """One list of values for each drawn line; None interrupts the line."""
    names = {"accepted": "accepted_rate", "settled": "settled_rate", "waiting": "waiting", "leased": "leased"}
    names |= {"wait_p95": "wait.p95_ns", "total_p95": "total.p95_ns"}
    return {line: [point and attrgetter(name)(point) for point in points] for line, name in names.items()}


def known_minutes(hour: Sequence[Point | None]) -> int:
    """Minutes with data: the chart is wider than the history of a broker that has just started."""
    return sum(point is not None for point in hour) // SLOTS_A_MINUTE


def mix(dialects: Sequence[DialectSample]) -> list[dict[str, Any]]:
    """Each dialect's share of accepted messages."""
    total = sum(one.accepted for one in dialects)
    return [
        {"dialect": one.dialect, "accepted": one.accepted, "part": one.accepted / total if total else 0.0}
        for one in dialects
        if one.dialect != "internal" or one.accepted
    ]


def busiest(queues: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """The queues with the most work now, then those that accepted the most."""

    def weight(queue: dict[str, Any]) -> tuple[int, int]:
        return -(queue["waiting"] + queue["leased"]), -queue["accepted"]

    return sorted(queues, key=weight)[:BUSIEST_MAX]


async def make_crossings(dashboard: Dashboard, query: Query, key: str) -> Context:
    """Matrix of messages settled, by the client's and the worker's dialect, before the broker started and since."""
    sampler = dashboard.sampler
    counts = {(one.client, one.worker): one.count for one in sampler.totals.crossings}
    dialects = list(DIALECTS_BY_NAME)
    clients = [*dialects, *(["internal"] if any(client == "internal" for client, _ in counts) else [])]
    highest = max(counts.values(), default=0)
    return {
        "dialects": dialects,
        "clients": clients,
        "counts": counts,
        "shades": {pair: shade(number, highest) for pair, number in counts.items()},
        "client_totals": {client: sum(counts.get((client, worker), 0) for worker in dialects) for client in clients},
        "worker_totals": {worker: sum(counts.get((client, worker), 0) for client in clients) for worker in dialects},
        "total": sum(counts.values()),
        "since_ns": sampler.totals.since_ns,
    }


def shade(number: int, highest: int) -> int:
    """Cell shade from 0 (none) to SHADES, by orders of magnitude, so that one busy pair does not hide the others."""
    if number == 0:
        return 0
    return max(SHADES - (highest // number).bit_length() // 2, 1)


async def make_schedules(dashboard: Dashboard, query: Query, key: str) -> Context:
    return await one_part(dashboard, query, "schedules")
