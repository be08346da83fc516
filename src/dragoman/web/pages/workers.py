"""The list of workers, and the page of one worker, connected or not."""

from __future__ import annotations

import asyncio

from dragoman.errors import AdminRefused, DragomanError
from dragoman.model.units import SECOND_NS
from dragoman.runtime.search.departed_workers import absentee_lines
from dragoman.web.desk import NOT_FOUND, PAGE_SIZE, Context, Desk, Query, offset_of, turning


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    queue, offset = query.get("queue", ""), offset_of(query)
    found = await desk.link.ask("workers", queue=queue, offset=offset, limit=PAGE_SIZE)
    now_ns = desk.now_ns
    return {
        "workers": [{**worker, "throughput": throughput(worker, now_ns)} for worker in found["workers"]],
        "kept_out": found["kept_out"],
        "queue": queue,
        "turning": turning(offset, found["total"]),
        "now_ns": now_ns,
    }


async def make_one(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    key = query.get("id", "")
    try:
        worker = await desk.link.ask("worker", worker=key)
    except AdminRefused as refused:
        lines = await absentee(desk, key)
        if refused.refusal != NOT_FOUND or not lines:
            raise
        return {"title": key, "worker": None, "lines": lines, "is_still": True}
    return {
        "title": worker["id"],
        "worker": {**worker, "throughput": throughput(worker, desk.now_ns)},
        "now_ns": desk.now_ns,
    }


async def absentee(desk: Desk, key: str) -> list[str]:
    """Lines about a disconnected worker, from the journal."""
    try:
        return await asyncio.to_thread(absentee_lines, str(desk.journal), key, desk.now_ns)
    except (DragomanError, OSError):
        return []  # the journal's own tools report damage


def throughput(worker: dict[str, int], now_ns: int) -> float:
    """Messages settled per second since the worker joined."""
    span_s = (now_ns - worker["joined_ns"]) / SECOND_NS
    return (worker["settled"] + worker["failed"]) / span_s if span_s > 1 else 0.0
