"""The list of scheduled messages."""

from __future__ import annotations

from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    offset = offset_of(query)
    found = await desk.link.ask("schedules", offset=offset, limit=PAGE_SIZE)
    return {"schedules": found["schedules"], "turning": turning(offset, found["total"]), "now_ns": desk.now_ns}
