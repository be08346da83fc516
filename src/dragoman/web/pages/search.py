"""Messages by id; open ones by queue, state, dialect, worker and age; queues and workers by name."""

from __future__ import annotations

from typing import Any, Final

from dragoman.errors import AdminRefused
from dragoman.model.words import DIALECT_NAMES
from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning
from dragoman.web.lives import lives_of
from dragoman.web.pages.quarantine import seconds_of

FILTER_KEYS: Final = ("queue", "state", "dialect", "worker", "older_than_s")
STATES: Final = ("waiting", "delayed", "leased", "quarantined")
NAMES_SHOWN: Final = 20


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    text = query.get("q", "").strip()
    asked = {name: query.get(name, "") for name in FILTER_KEYS}
    context: Context = {
        "text": text,
        "asked": asked,
        "states": STATES,
        "dialects": DIALECT_NAMES[1:],
        "now_ns": desk.now_ns,
        "is_asked": bool(text) or any(asked.values()),
        "queues": [],
        "workers": [],
        "messages": None,
    }
    if text:
        context |= await by_text(desk, text)
    if any(asked.values()):
        context |= await by_filter(desk, query, asked)
    return context


async def lives(desk: Desk, query: Query) -> Context:
    """Out of the journal and the lake: read once for a page, for either may be long."""
    text = query.get("q", "").strip()
    return {"lives": await lives_of(desk.journal, text, await desk.lake(), []) if text else []}


async def by_text(desk: Desk, text: str) -> Context:
    queues = await desk.link.ask("queues", prefix=text, limit=NAMES_SHOWN)
    workers: list[dict[str, Any]] = []
    try:
        workers = [await desk.link.ask("worker", worker=text)]
    except AdminRefused:
        pass  # not the name of a worker
    return {"queues": queues["queues"], "workers": workers}


async def by_filter(desk: Desk, query: Query, asked: dict[str, str]) -> Context:
    offset = offset_of(query)
    arguments: dict[str, Any] = {name: asked[name] for name in FILTER_KEYS[:4] if asked[name]}
    older_s = seconds_of(asked["older_than_s"])
    if older_s:
        arguments["older_than_s"] = older_s
    found = await desk.link.ask("messages", offset=offset, limit=PAGE_SIZE, **arguments)
    return {
        "messages": found["messages"],
        "is_cut": found["is_cut"],
        "turning": turning(offset, found["total"]),
    }
