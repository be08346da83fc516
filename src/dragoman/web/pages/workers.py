"""The list of workers, and the page of one worker, connected or not."""

from __future__ import annotations

import asyncio
from typing import Any

from dragoman.errors import AdminRefused, DragomanError
from dragoman.model.units import SECOND_NS
from dragoman.runtime.search.trace import departed_worker_lines
from dragoman.web.dashboard import NOT_FOUND, Context, Dashboard, Query, one_part


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    queue = query.get("queue", "")
    found = await one_part(dashboard, query, "workers", queue=queue)
    workers = [with_throughput(worker, dashboard.now_ns) for worker in found["workers"]]
    return {**found, "workers": workers, "queue": queue}


async def make_one(dashboard: Dashboard, query: Query, key: str) -> Context:
    name = query.get("id", "")
    try:
        worker = await dashboard.link.ask("worker", worker=name)
    except AdminRefused as refused:
        lines = await departed_lines(dashboard, name)
        if refused.refusal != NOT_FOUND or not lines:
            raise
        return {"title": name, "worker": None, "lines": lines, "is_still": True}
    return {"title": worker["id"], "worker": with_throughput(worker, dashboard.now_ns)}


async def departed_lines(dashboard: Dashboard, name: str) -> list[str]:
    """Lines about a disconnected worker, from the journal."""
    try:
        return await asyncio.to_thread(departed_worker_lines, str(dashboard.journal), name, dashboard.now_ns)
    except (DragomanError, OSError):
        return []  # the journal's own tools report damage


def with_throughput(worker: dict[str, Any], now_ns: int) -> dict[str, Any]:
    """The worker with the messages that it settled per second since it joined."""
    span_s = (now_ns - worker["joined_ns"]) / SECOND_NS
    return {**worker, "throughput": (worker["settled"] + worker["failed"]) / span_s if span_s > 1 else 0.0}
