"""The broker at a glance: how much comes and goes, how long it takes, what is stuck."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from dragoman.web.desk import Context, Desk, Query
from dragoman.web.history import SLOT_S, Point

BUSIEST_MAX: Final = 8
SLOTS_A_MINUTE: Final = 60 // SLOT_S


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    sampler = desk.sampler
    recent, hour = sampler.history.recent(), sampler.history.hour()
    return {
        "now": sampler.tallies,
        "status": await desk.link.ask("status"),
        "findings": sampler.findings,
        "last": sampler.history.seconds[-1] if sampler.history.seconds else None,
        "window": sampler.history.window(),
        "recent": curves(recent),
        "hour": curves(hour),
        "known_minutes": known_minutes(hour),
        "dialects": mix(sampler.before.dialects_with(sampler.tallies)),
        "since_ns": sampler.before.since_of(sampler.tallies),
        "busiest": busiest(sampler.queues),
        "trails": sampler.trails,
    }


def curves(points: Sequence[Point | None]) -> Context:
    """One list for each line that is drawn; what is not known interrupts it."""
    return {
        "accepted": [point and point.accepted_rate for point in points],
        "settled": [point and point.settled_rate for point in points],
        "waiting": [point and point.waiting for point in points],
        "leased": [point and point.leased for point in points],
        "wait_p95": [point and point.wait.p95_ns for point in points],
        "total_p95": [point and point.total.p95_ns for point in points],
    }


def known_minutes(hour: Sequence[Point | None]) -> int:
    """What is drawn is wider than what is known of a broker that has just begun."""
    return sum(point is not None for point in hour) // SLOTS_A_MINUTE


def mix(dialects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each dialect's part of what was accepted."""
    total = sum(one["accepted"] for one in dialects)
    found = [{**one, "part": one["accepted"] / total if total else 0.0} for one in dialects]
    return [one for one in found if one["dialect"] != "internal" or one["accepted"]]


def busiest(queues: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Those with the most to do now; then those that did the most."""

    def weight(queue: dict[str, Any]) -> tuple[int, int]:
        return -(queue["waiting"] + queue["leased"]), -queue["accepted"]

    return sorted(queues, key=weight)[:BUSIEST_MAX]
