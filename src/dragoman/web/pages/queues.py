"""The list of queues, and the page of one queue."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from dragoman.errors import AdminRefused
from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning
from dragoman.web.samples.samples import QueueSample, quantiles

MESSAGES_SHOWN: Final = 20
WORKERS_SHOWN: Final = 50


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    prefix, offset = query.get("prefix", ""), offset_of(query)
    found = await desk.link.ask("queue_tallies", prefix=prefix, offset=offset, limit=PAGE_SIZE)
    return {
        "queues": [with_trail(desk, queue) for queue in found["queues"]],
        "prefix": prefix,
        "turning": turning(offset, found["total"]),
        "now_ns": desk.now_ns,
    }


async def make_one(desk: Desk, query: Query, key: str) -> Context:
    name = query.get("name", "")
    await desk.sampler.fresh()
    queue = with_trail(desk, await one_queue(desk, name))
    explained = await desk.link.ask("explain", of=f"queue:{name}")
    workers = await desk.link.ask("workers", queue=name, limit=WORKERS_SHOWN)
    messages = await desk.link.ask("messages", queue=name, limit=MESSAGES_SHOWN)
    return {
        "title": name,
        "queue": queue,
        "lines": explained["lines"],
        "workers": workers["workers"],
        "workers_total": workers["total"],
        "messages": messages["messages"],
        "messages_total": messages["total"],
        "is_cut": messages["is_cut"],
        "now_ns": desk.now_ns,
    }


async def one_queue(desk: Desk, name: str) -> dict[str, Any]:
    """The queue with exactly this name, however many others it is a prefix of; raises `AdminRefused` if there is none."""
    if not name:
        raise AdminRefused("NOT_FOUND", "there is no queue without a name")
    found: dict[str, Any] = (await desk.link.ask("queue_tallies", queue=name))["queues"][0]
    return found


def with_trail(desk: Desk, queue: dict[str, Any]) -> dict[str, Any]:
    sampler = desk.sampler
    trail = sampler.trails.get(queue["queue_no"])
    sample = msgspec.convert(queue, QueueSample)
    times = sampler.pre_boot.times_with(sample, sampler.tallies["started_ns"])
    slots = queue["leased"] + queue["slots_free"]
    return {
        **queue,
        "in_rate": trail.in_rate if trail is not None else None,
        "out_rate": trail.out_rate if trail is not None else None,
        "trail": trail.waiting if trail is not None else [],
        "utilisation": queue["leased"] / slots if slots and queue["workers"] else None,
        "wait_spans": quantiles(times.wait),
        "total_spans": quantiles(times.total),
        "since_ns": times.since_ns,
    }
