"""Admin operations that dashboards and alerts poll: numbers, and what is stuck."""

from __future__ import annotations

from typing import Literal

from dragoman.core.queries import stuck, tally_views
from dragoman.limits import LAKE_BEHIND_MAX
from dragoman.runtime.admin.face import BrokerFace, Limit, Offset, Operation, Tell, known_queue


class Tallies(Operation):
    """The counters and, since start: durations, and settled messages by dialect of client and worker."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return tally_views.tallies(face.core)


class QueueTallies(Operation):
    """Queues with their counts, the age of waiting messages, and durations: one queue, or a page of them in order of creation or by depth."""

    queue: str = ""

    offset: Offset = 0
    limit: Limit = 100
    prefix: str = ""
    order: Literal["named", "depth"] = "named"

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        if not self.queue:
            return tally_views.queue_tallies(face.core, self.offset, self.limit, self.prefix, self.order == "depth")
        queue = known_queue(face.core, self.queue)
        return {"total": 1, "queues": [tally_views.queue_tally(face.core, queue)]}


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
