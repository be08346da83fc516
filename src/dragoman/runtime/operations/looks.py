"""Closer looks: open messages by what they have in common, one worker with what it holds, a message's body."""

from __future__ import annotations

import base64
from typing import Annotated

import msgspec

from dragoman.core import explain, views
from dragoman.core.peek import peek_body
from dragoman.core.phrases import shown
from dragoman.limits import BODY_SHOWN_SIZE_MAX, HELD_SHOWN_MAX
from dragoman.runtime.operations.face import (
    BrokerFace,
    Limit,
    Name,
    Offset,
    Operation,
    Tell,
    known_worker,
    open_message,
)
from dragoman.runtime.operations.filters import Age, Filter

BodySize = Annotated[int, msgspec.Meta(ge=0, le=BODY_SHOWN_SIZE_MAX)]


class Messages(Operation):
    """Open messages that match, by queue, the oldest of each first. `is_cut`: not all were looked at, and more might match."""

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
    """One worker: what it holds, the configuration it goes by (scale0), and why it takes nothing."""

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
        body = peek_body(face.core.state, open_message(face.core, self.id))
        return {"size": len(body), "body": base64.b64encode(body[: self.size_max]).decode()}
