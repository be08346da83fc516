"""Message filter as arguments that several admin operations share, and its conversion to the core's filter."""

from __future__ import annotations

from typing import Annotated

import msgspec

from dragoman.core.core import Core
from dragoman.core.queries.matching import ANY, STATES, Wanted
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.model.peer import identities_of
from dragoman.model.units import SECOND_NS
from dragoman.model.words import INTERNAL, REASON_NAMES
from dragoman.runtime.admin.face import OperationRefused, known_queue, known_worker

Age = Annotated[float, msgspec.Meta(ge=0, le=1e9)]


class Filter(msgspec.Struct, frozen=True):
    """Every given field must match; an empty text, or an age of 0, matches any."""

    queue: str = ""
    state: str = ""
    dialect: str = ""
    reason: str = ""
    worker: str = ""
    client: str = ""
    older_than_s: float = 0.0
    newer_than_s: float = 0.0

    @property
    def says_something(self) -> bool:
        return self != Filter()

    def wanted(self, core: Core) -> Wanted:
        found = Wanted()
        if self.queue:
            found.queue_no = known_queue(core, self.queue).number
        if self.worker:
            found.worker = known_worker(core, self.worker)
        found.clients = identities_of(self.client)
        found.state = _number_of(self.state, STATES, "state")
        found.dialect = _number_of(self.dialect, _DIALECTS, "dialect")
        found.reason = _number_of(self.reason, _REASONS, "reason")
        if self.older_than_s:
            found.accepted_before_ns = core.now_ns - int(self.older_than_s * SECOND_NS)
        if self.newer_than_s:
            found.accepted_from_ns = core.now_ns - int(self.newer_than_s * SECOND_NS)
        return found


def _number_of(word: str, numbers: dict[str, int], what: str) -> int:
    if word not in numbers:
        known = ", ".join(name for name in numbers if name)
        raise OperationRefused("BAD_ARGUMENT", f"there is no {what} {word!r}; there are: {known}")
    return numbers[word]


_DIALECTS = {"": ANY, "internal": INTERNAL} | {described.name: described.number for described in DESCRIPTIONS}
_REASONS = {"": ANY} | {name: number for number, name in enumerate(REASON_NAMES)}
