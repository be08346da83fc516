"""Read-only admin operations."""

from __future__ import annotations

import os

from dragoman.core.queries import explain, lookup, views
from dragoman.runtime.admin.face import (
    BrokerFace,
    Limit,
    Name,
    Offset,
    Operation,
    Tell,
    not_found,
    open_message,
)
from dragoman.runtime.admin.filters import Age, Filter
from dragoman.runtime.config import render_toml
from dragoman.version import build_flavour


class Status(Operation):
    """The broker as a whole: version, listeners, journal, counters."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        journal = face.journal
        trouble = journal.trouble
        return {
            "version": face.version,
            "build": build_flavour(),
            "pid": os.getpid(),
            "data": str(face.config.data),
            "durability": face.config.journal.durability,
            "listeners": face.listeners,
            "boot_no": face.core.state.boot_no,
            "connections": len(face.broker.connections),
            "memory": face.broker.memory.view(),
            "journal": {
                "segments": len(journal.segments()),
                "size": journal.size(),
                "size_max": journal.settings.size_max,
                "live_size": face.broker.upkeep.live_size,
                "next_lsn": journal.next_lsn,
                "synced_lsn": journal.synced_lsn,
                "uncommitted_size": journal.uncommitted_size,
                "damaged_blocks": journal.scrub.damaged_blocks,
                "proved_ns": journal.scrub.proved_ns,
                "trouble": str(trouble) if trouble is not None else "",
            },
            "loop": face.broker.watchdog.view(),
            "index": face.indexing.view() if face.indexing is not None else None,
            "lake": face.sealing.view() if face.sealing is not None else None,
            "otel": face.tracing.view() if face.tracing is not None else None,
            "web": face.webpage.view() if face.webpage is not None else None,
            "counters": views.counters(face.core),
        }


class Counters(Operation):
    """Only the counters: cheap enough for every second."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.counters(face.core)


class Queues(Operation):
    """Queues with their counts, in the order they were created."""

    offset: Offset = 0
    limit: Limit = 100
    prefix: str = ""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.queues(face.core, self.offset, self.limit, self.prefix)


class Workers(Operation):
    """Workers with their slots and leases; `queue` limits them to one queue."""

    offset: Offset = 0
    limit: Limit = 100
    queue: str = ""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.workers(face.core, self.offset, self.limit, self.queue)


class MessageView(Operation):
    """One open message, by client's id, wire id or number, without its body."""

    id: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.message_view(face.core, open_message(face.core, self.id))


class Explain(Operation):
    """Sentences that explain why something is not moving. `of` is a message's id, `queue:NAME` or `worker:ID`; without a prefix, a text that is no
    open message's id may name a queue or a worker too."""

    of: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        core = face.core
        kind, colon, key = self.of.partition(":")
        if not colon or kind not in ("queue", "worker"):
            kind, key = "", self.of
        m = lookup.find_message(core, key) if not kind else None
        if m is not None:
            return {"of": self.of, "kind": "message", "lines": explain.explain_message(core, m)}
        queue = lookup.find_queue(core, key) if kind != "worker" else None
        if queue is not None:
            return {"of": self.of, "kind": "queue", "lines": explain.explain_queue(core, queue)}
        peer = lookup.find_worker(core, key) if kind != "queue" else None
        if peer is not None:
            return {"of": self.of, "kind": "worker", "lines": explain.explain_worker(core, peer)}
        raise not_found(kind or "open message", key)


class QuarantineList(Operation):
    """Quarantined messages, oldest first."""

    offset: Offset = 0
    limit: Limit = 100
    queue: str = ""
    reason: str = ""
    dialect: str = ""
    older_than_s: Age = 0.0

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        which = Filter(queue=self.queue, reason=self.reason, dialect=self.dialect, older_than_s=self.older_than_s)
        return views.quarantine(face.core, self.offset, self.limit, which.wanted(face.core))


class Schedules(Operation):
    """Durable schedules with their next due instants."""

    offset: Offset = 0
    limit: Limit = 100

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.schedules(face.core, self.offset, self.limit)


class ConfigShow(Operation):
    """The effective settings, as a commented TOML file."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return {"toml": render_toml(face.config)}
