"""Read-only admin operations with more detail: open messages by filter, one worker with its leases, a message's body; and those that dashboards
and alerts poll: numbers, and what is stuck."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated, Literal

import msgspec

from dragoman.core.queries import explain, stuck, views
from dragoman.core.storage.stored import peek_body
from dragoman.limits import BODY_SHOWN_SIZE_MAX, HELD_SHOWN_MAX, LAKE_BEHIND_MAX
from dragoman.model.words import shown
from dragoman.runtime.admin.face import (
    BrokerFace,
    Limit,
    Name,
    Offset,
    Operation,
    Tell,
    known_queue,
    known_worker,
    open_message,
)
from dragoman.runtime.admin.filters import Age, Filter

BodySize = Annotated[int, msgspec.Meta(ge=0, le=BODY_SHOWN_SIZE_MAX)]


class Messages(Operation):
    """Open messages that match, by queue, oldest first in each. `is_cut`: not all messages were examined, and more may match."""

    queue: str = ""
    state: str = ""
    dialect: str = ""
    worker: str = ""
    client: str = ""
    older_than_s: Age = 0.0
    newer_than_s: Age = 0.0
    offset: Offset = 0
    limit: Limit = 100

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        which = Filter(
            queue=self.queue,
            state=self.state,
            dialect=self.dialect,
            worker=self.worker,
            client=self.client,
            older_than_s=self.older_than_s,
            newer_than_s=self.newer_than_s,
        )
        return views.messages(face.core, self.offset, self.limit, which.wanted(face.core))


class WorkerView(Operation):
    """One worker: its leases, its configuration (scale0), and why it gets no work."""

    worker: Name

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        peer = known_worker(face.core, self.worker)
        return {
            **views.worker_view(peer),
            "held": views.held_views(peer, HELD_SHOWN_MAX),
            "config_version": shown(peer.config_version),
            "explain": explain.explain_worker(face.core, peer),
        }


class Body(Operation):
    """The beginning of an open message's body."""

    id: Name
    size_max: BodySize = BODY_SHOWN_SIZE_MAX

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        message = open_message(face.core, self.id)
        await asyncio.sleep(0)  # lookup and read may each verify the whole record: yield between them
        body = peek_body(face.core.state, message, self.size_max)
        return {"size": max(message.body_size, len(body)), "body": base64.b64encode(body).decode()}


class Tallies(Operation):
    """The counters and, since start: durations, and settled messages by dialect of client and worker."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return views.tallies(face.core)


class QueueTallies(Operation):
    """Queues with their counts, the age of waiting messages, and durations: one queue, or a page of them in order of creation or by depth."""

    queue: str = ""

    offset: Offset = 0
    limit: Limit = 100
    prefix: str = ""
    order: Literal["named", "depth"] = "named"

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        if not self.queue:
            return views.queue_tallies(face.core, self.offset, self.limit, self.prefix, self.order == "depth")
        queue = known_queue(face.core, self.queue)
        return {"total": 1, "queues": [views.queue_tally(face.core, queue)]}


class Stuck(Operation):
    """Sentences about what is stuck."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return {"findings": [*stuck.findings(face.core), *_lake_findings(face)]}


def _lake_findings(face: BrokerFace) -> list[dict[str, object]]:
    if face.sealing is None:
        return []
    lake = face.sealing.view()
    if lake["trouble"]:
        line = f"the lake is not written: {lake['trouble']} ({lake['behind']} facts to come)"
    elif lake["behind"] > LAKE_BEHIND_MAX:
        line = f"the lake is {lake['behind']} facts behind"
    else:
        return []
    return [{"kind": "lake_behind", "queue": "", "worker": "", "line": line}]
