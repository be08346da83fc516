"""Matrix of messages settled, by the client's and the worker's dialect, before the broker started and since."""

from __future__ import annotations

from typing import Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.web.desk import Context, Desk, Query

SHADES: Final = 5


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    sampler = desk.sampler
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
        "now_ns": desk.now_ns,
    }


def shade(number: int, highest: int) -> int:
    """Cell shade from 0 (none) to SHADES, by orders of magnitude, so that one busy pair does not hide the others."""
    if number == 0:
        return 0
    return max(SHADES - (highest // number).bit_length() // 2, 1)
