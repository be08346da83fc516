"""Quarantined messages, why they are there, and actions on all that match a filter."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminRefused
from dragoman.model.words import REASON_NAMES
from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning
from dragoman.web.display.words import body_lines

FILTER_KEYS: Final = ("queue", "reason", "dialect", "older_than_s")
PREVIEW_SIZE: Final = 1024
AGE_S_MAX: Final = 1_000_000_000  # the broker's own limit


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    offset = offset_of(query)
    asked = {name: query.get(name, "") for name in FILTER_KEYS}
    found = await desk.link.ask("quarantine_list", offset=offset, limit=PAGE_SIZE, **filter_of(query))
    messages = found["messages"]
    with_bodies = query.get("bodies") == "1"
    if with_bodies:
        bodies = await asyncio.gather(*(preview(desk, message["id"]) for message in messages))
        messages = [{**message, "body": body} for message, body in zip(messages, bodies, strict=True)]
    return {
        "messages": messages,
        "asked": asked,
        "is_filtered": any(asked.values()),
        "with_bodies": with_bodies,
        "reasons": REASON_NAMES[1:],
        "dialects": list(DIALECTS_BY_NAME),
        "turning": turning(offset, found["total"]),
        "now_ns": desk.now_ns,
    }


def filter_of(query: Query) -> dict[str, Any]:
    """The filter as the broker's arguments, without empty fields."""
    found: dict[str, Any] = {name: query[name] for name in FILTER_KEYS[:3] if query.get(name)}
    older_s = seconds_of(query.get("older_than_s", ""))
    if older_s:
        found["older_than_s"] = older_s
    return found


def seconds_of(text: str) -> float:
    """Parse an age; 0 if the text is empty. Raises `AdminRefused` for anything else that is no age: ignoring a given filter would select
    more than requested."""
    if not text:
        return 0.0
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= AGE_S_MAX:
        raise AdminRefused(
            "BAD_ARGUMENT", f"an age is a number of seconds, above 0 and up to {AGE_S_MAX}; {text!r} is none"
        )
    return value


async def preview(desk: Desk, message_id: str) -> list[str]:
    try:
        found = await desk.link.ask("body", id=message_id, size_max=PREVIEW_SIZE)
    except AdminRefused:
        return ["(no longer open)"]
    lines = body_lines(base64.b64decode(found["body"]))
    return [*lines, "…"] if found["size"] > PREVIEW_SIZE else lines
