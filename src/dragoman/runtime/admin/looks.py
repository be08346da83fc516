"""Read-only admin operations with more detail: open messages by filter, one worker with its leases, a message's body."""

from __future__ import annotations

import asyncio
import base64
from typing import Annotated

import msgspec

from dragoman.core.queries import explain, views
from dragoman.core.queries.peek import peek_body
from dragoman.limits import BODY_SHOWN_SIZE_MAX, HELD_SHOWN_MAX
from dragoman.model.words import shown
from dragoman.runtime.admin.face import (
    BrokerFace,
    Limit,
    Name,
    Offset,
    Operation,
    Tell,
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
