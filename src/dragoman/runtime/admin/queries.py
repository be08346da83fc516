"""Admin operations that change nothing."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import Annotated, Literal

import msgspec

from dragoman.core.queries import lookup, views
from dragoman.core.queries.explain import explain_message, explain_queue, explain_worker
from dragoman.core.queries.stuck import findings
from dragoman.core.storage.stored import peek_body
from dragoman.limits import BODY_SHOWN_SIZE_MAX, HELD_SHOWN_MAX, LAKE_BEHIND_MAX
from dragoman.model.enums import shown
from dragoman.runtime.admin import operation as admin
from dragoman.runtime.admin.operation import Limit, Name, Offset, Server, operation
from dragoman.runtime.config import render_toml
from dragoman.version import build_flavour

BodySize = Annotated[int, msgspec.Meta(ge=0, le=BODY_SHOWN_SIZE_MAX)]


@operation
def status(server: Server) -> object:
    """The broker as a whole: version, listeners, journal, counters."""
    journal, broker = server.journal, server.broker
    return {
        "version": server.version,
        "build": build_flavour(),
        "pid": os.getpid(),
        "data": str(server.config.data),
        "durability": server.config.journal.durability,
        "listeners": server.listeners,
        "boot_no": server.core.state.boot_no,
        "connections": len(broker.connections),
        "memory": broker.memory.view(),
        "journal": {
            "segments": len(journal.segments()),
            "size": journal.size(),
            "size_max": journal.settings.size_max,
            "live_size": broker.upkeep.live_size,
            "next_lsn": journal.next_lsn,
            "synced_lsn": journal.synced_lsn,
            "uncommitted_size": journal.unsynced_size,
            "damaged_blocks": journal.scrub.damaged_blocks,
            "proved_ns": journal.scrub.proved_ns,
            "trouble": str(journal.trouble) if journal.trouble is not None else "",
        },
        "loop": broker.watchdog.view(),
        **{key: server.followers[key].view() if key in server.followers else None for key in ("index", "lake", "otel")},
        "web": server.webpage.view() if server.webpage is not None else None,
        "counters": views.counters(server.core),
    }


@operation
def counters(server: Server) -> object:
    """Only the counters: cheap enough for every second."""
    return views.counters(server.core)


@operation
def tallies(server: Server) -> object:
    """The counters and, since start: durations, and settled messages by dialect of client and worker."""
    return views.tallies(server.core)


@operation
def queues(server: Server, *, offset: Offset = 0, limit: Limit = 100, prefix: str = "") -> object:
    """Queues with their counts, in the order they were created."""
    return views.queues(server.core, offset, limit, prefix)


@operation
def queue_tallies(
    server: Server,
    *,
    queue: str = "",
    offset: Offset = 0,
    limit: Limit = 100,
    prefix: str = "",
    order: Literal["named", "depth"] = "named",
) -> object:
    """Queues with their counts, the age of waiting messages, and durations: one queue, or a page of them in order of creation or by depth."""
    if not queue:
        return views.queue_tallies(server.core, offset, limit, prefix, order == "depth")
    return {"total": 1, "queues": [views.queue_tally(server.core, admin.known_queue(server.core, queue))]}


@operation
def workers(server: Server, *, offset: Offset = 0, limit: Limit = 100, queue: str = "") -> object:
    """Workers with their slots and leases; `queue` limits them to one queue."""
    return views.workers(server.core, offset, limit, queue)


@operation
def worker(server: Server, *, worker: Name) -> object:
    """One worker: its leases, its configuration (scale0), and why it gets no work."""
    peer = admin.known_worker(server.core, worker)
    return {
        **views.worker_view(peer),
        "held": views.held_views(peer, HELD_SHOWN_MAX),
        "config_version": shown(peer.config_version),
        "explain": explain_worker(server.core, peer),
    }


@operation
def messages(server: Server, which: admin.MessageFilter, *, offset: Offset = 0, limit: Limit = 100) -> object:
    """Open messages that match, by queue, oldest first in each. `is_cut`: not all messages were examined, and more may match."""
    return views.messages(server.core, offset, limit, which.wanted(server.core))


@operation
def message(server: Server, *, id_: Name) -> object:
    """One open message, by client's id, wire id or number, without its body."""
    return views.message_view(server.core, admin.open_message(server.core, id_))


@operation
async def body(server: Server, *, id_: Name, size_max: BodySize = BODY_SHOWN_SIZE_MAX) -> object:
    """The beginning of an open message's body."""
    m = admin.open_message(server.core, id_)
    await asyncio.sleep(0)  # lookup and read may each verify the whole record: yield between them
    start = peek_body(server.core.state, m, size_max)
    return {"size": max(m.body_size, len(start)), "body": base64.b64encode(start).decode()}


@operation
def explain(server: Server, *, of: Name) -> object:
    """Sentences that explain why something is not moving. `of` is a message's id, `queue:NAME` or `worker:ID`; without a prefix, a text that is no
    open message's id may name a queue or a worker too."""
    core = server.core
    kind, colon, key = of.partition(":")
    if not colon or kind not in ("queue", "worker"):
        kind, key = "", of
    m = lookup.find_message(core, key) if not kind else None
    if m is not None:
        return {"of": of, "kind": "message", "lines": explain_message(core, m)}
    queue = lookup.find_queue(core, key) if kind != "worker" else None
    if queue is not None:
        return {"of": of, "kind": "queue", "lines": explain_queue(core, queue)}
    peer = lookup.find_worker(core, key) if kind != "queue" else None
    return {"of": of, "kind": "worker", "lines": explain_worker(core, admin.found(peer, kind or "open message", key))}


@operation
def quarantine_list(server: Server, which: admin.QuarantineFilter, *, offset: Offset = 0, limit: Limit = 100) -> object:
    """Quarantined messages, oldest first."""
    return views.quarantine(server.core, offset, limit, which.wanted(server.core))


@operation
def schedules(server: Server, *, offset: Offset = 0, limit: Limit = 100) -> object:
    """Durable schedules with their next due instants."""
    return views.schedules(server.core, offset, limit)


@operation
def config(server: Server) -> object:
    """The effective settings, as a commented TOML file."""
    return {"toml": render_toml(server.config)}


@operation
def stuck(server: Server) -> object:
    """Sentences about what is stuck."""
    return {"findings": [*findings(server.core), *_lake_findings(server)]}


def _lake_findings(server: Server) -> list[dict[str, object]]:
    if "lake" not in server.followers:
        return []
    lake = server.followers["lake"].view()
    if lake["trouble"]:
        line = f"the lake is not written: {lake['trouble']} ({lake['behind']} facts to come)"
    elif lake["behind"] > LAKE_BEHIND_MAX:
        line = f"the lake is {lake['behind']} facts behind"
    else:
        return []
    return [{"kind": "lake_behind", "queue": "", "worker": "", "line": line}]
