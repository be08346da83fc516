"""All workers, and one of them."""

from __future__ import annotations

from dragoman.model.units import SECOND_NS
from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    queue, offset = query.get("queue", ""), offset_of(query)
    found = await desk.link.ask("workers", queue=queue, offset=offset, limit=PAGE_SIZE)
    now_ns = desk.now_ns
    return {
        "workers": [{**worker, "throughput": throughput(worker, now_ns)} for worker in found["workers"]],
        "queue": queue,
        "turning": turning(offset, found["total"]),
        "now_ns": now_ns,
    }


async def make_one(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    worker = await desk.link.ask("worker", worker=query.get("id", ""))
    return {
        "title": worker["id"],
        "worker": {**worker, "throughput": throughput(worker, desk.now_ns)},
        "now_ns": desk.now_ns,
    }


def throughput(worker: dict[str, int], now_ns: int) -> float:
    """Settled per second, since it joined."""
    span_s = (now_ns - worker["joined_ns"]) / SECOND_NS
    return (worker["settled"] + worker["failed"]) / span_s if span_s > 1 else 0.0
