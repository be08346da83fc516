"""Questions that dashboards and alarms ask again and again: numbers, and what does not move."""

from __future__ import annotations

from typing import Literal

from dragoman.core import stuck, tally_views
from dragoman.limits import LAKE_BEHIND_MAX
from dragoman.runtime.operations.face import BrokerFace, Limit, Offset, Operation, Tell, known_queue


class Tallies(Operation):
    """The counters, and since the start: how long things took, and who met whom."""

    async def run(self, face: BrokerFace, tell: Tell) -> object:
        return tally_views.tallies(face.core)


class QueueTallies(Operation):
    """Queues with their counts, the age of what waits, and how long things took: one, or a page of them in the order they were named or by depth."""

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
    """What does not move although it should, in sentences."""

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
