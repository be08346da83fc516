"""Which dialect's messages were settled by which dialect's workers, before the broker started and since."""

from __future__ import annotations

from typing import Final

from dragoman.model.words import DIALECT_NAMES
from dragoman.web.desk import Context, Desk, Query

SHADES: Final = 5


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    sampler = desk.sampler
    counts = sampler.before.crossings_with(sampler.tallies)
    dialects = DIALECT_NAMES[1:]
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
        "since_ns": sampler.before.since_of(sampler.tallies),
        "now_ns": desk.now_ns,
    }


def shade(number: int, highest: int) -> int:
    """0 (none) to SHADES, by orders of magnitude: one busy pair must not hide the others."""
    if number == 0:
        return 0
    return max(SHADES - (highest // number).bit_length() // 2, 1)
