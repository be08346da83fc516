"""The list of queues, and the page of one queue."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.errors import AdminRefused
from dragoman.web.dashboard import NOT_FOUND, Context, Dashboard, Query, one_part
from dragoman.web.samples.history import Trail
from dragoman.web.samples.samples import QueueSample, quantiles

MESSAGES_SHOWN: Final = 20
WORKERS_SHOWN: Final = 50


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    prefix = query.get("prefix", "")
    found = await one_part(dashboard, query, "queue_tallies", prefix=prefix)
    return {**found, "queues": [with_trail(dashboard, queue) for queue in found["queues"]], "prefix": prefix}


async def make_one(dashboard: Dashboard, query: Query, key: str) -> Context:
    name, link = query.get("name", ""), dashboard.link
    queue = with_trail(dashboard, await one_queue(dashboard, name))
    explained = await link.ask("explain", of=f"queue:{name}")
    workers = await link.ask("workers", queue=name, limit=WORKERS_SHOWN)
    messages = await link.ask("messages", queue=name, limit=MESSAGES_SHOWN)
    return {
        "title": name,
        "queue": queue,
        "lines": explained["lines"],
        "workers": workers["workers"],
        "workers_total": workers["total"],
        "messages": messages["messages"],
        "messages_total": messages["total"],
        "is_cut": messages["is_cut"],
    }


async def one_queue(dashboard: Dashboard, name: str) -> dict[str, Any]:
    """The queue with exactly this name, however many others it is a prefix of; raises `AdminRefused` if there is none."""
    if not name:
        raise AdminRefused(NOT_FOUND, "there is no queue without a name")
    found: dict[str, Any] = (await dashboard.link.ask("queue_tallies", queue=name))["queues"][0]
    return found


def with_trail(dashboard: Dashboard, queue: dict[str, Any]) -> dict[str, Any]:
    """The queue with its recent rates and depths, and with its durations across boots."""
    sampler = dashboard.sampler
    trail = sampler.trails.get(queue["queue_no"]) or Trail()
    times = sampler.pre_boot.times_with(msgspec.convert(queue, QueueSample), sampler.tallies["started_ns"])
    slots = queue["leased"] + queue["slots_free"]
    return {
        **queue,
        "in_rate": trail.in_rate,
        "out_rate": trail.out_rate,
        "trail": trail.waiting,
        "utilisation": queue["leased"] / slots if slots and queue["workers"] else None,
        "wait_spans": quantiles(times.wait),
        "total_spans": quantiles(times.total),
        "since_ns": times.since_ns,
    }
