"""Quarantined messages, why they are there, and actions on all that match a filter."""

from __future__ import annotations

import asyncio
import base64
from typing import Any, Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminRefused
from dragoman.model.enums import REASON_NAMES
from dragoman.web.dashboard import Context, Dashboard, Query, one_part
from dragoman.web.formatting import body_lines

FILTER_KEYS: Final = ("queue", "reason", "dialect", "older_than_s")
PREVIEW_SIZE: Final = 1024
AGE_S_MAX: Final = 1_000_000_000  # the broker's own limit


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    filters = {name: query.get(name, "") for name in FILTER_KEYS}
    found = await one_part(dashboard, query, "quarantine_list", **filter_arguments(query))
    with_bodies = query.get("bodies") == "1"
    if with_bodies:
        bodies = await asyncio.gather(*(preview(dashboard, message["id"]) for message in found["messages"]))
        found["messages"] = [{**one, "body": body} for one, body in zip(found["messages"], bodies, strict=True)]
    return {
        **found,
        "filters": filters,
        "is_filtered": any(filters.values()),
        "with_bodies": with_bodies,
        "reasons": REASON_NAMES[1:],
        "dialects": list(DIALECTS_BY_NAME),
    }


def filter_arguments(query: Query) -> dict[str, Any]:
    """The filter as the broker's arguments, without empty fields."""
    found: dict[str, Any] = {name: query[name] for name in FILTER_KEYS if query.get(name)}
    return found | {"older_than_s": age_s(found["older_than_s"])} if "older_than_s" in found else found


def age_s(text: str) -> float:
    """Parse an age. Raises `AdminRefused` for any other text: ignoring a given filter would select more than requested."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= AGE_S_MAX:
        refusal = f"an age is a number of seconds, above 0 and up to {AGE_S_MAX}; {text!r} is none"
        raise AdminRefused("BAD_ARGUMENT", refusal)
    return value


async def preview(dashboard: Dashboard, message_id: str) -> list[str]:
    try:
        found = await dashboard.link.ask("body", id=message_id, size_max=PREVIEW_SIZE)
    except AdminRefused:
        return ["(no longer open)"]
    lines = body_lines(base64.b64decode(found["body"]))
    return [*lines, "…"] if found["size"] > PREVIEW_SIZE else lines
