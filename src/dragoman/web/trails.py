"""One queue over the last two minutes: what is drawn beside its name."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from dragoman.model.steps import QueueSteps
from dragoman.model.units import SECOND_NS
from dragoman.web.history import CLOSE_NS

TRAIL_S: Final = 120
TRAIL_NS: Final = TRAIL_S * SECOND_NS
RATE_S: Final = 10  # a rate that was not seen is that of the last seconds

Answer = dict[str, Any]


class Trail(msgspec.Struct):
    """Fed with looks; what was before the first one is filled in from the journal's facts."""

    at_ns: int = 0
    accepted: int = 0
    settled: int = 0
    in_rate: float | None = None
    out_rate: float | None = None
    depths: deque[tuple[int, int]] = msgspec.field(default_factory=deque)  # when, and how many waited

    @property
    def waiting(self) -> list[int]:
        return [waiting for _, waiting in self.depths]

    def add(self, at_ns: int, queue: Answer) -> None:
        if 0 <= at_ns - self.at_ns < CLOSE_NS:
            return
        accepted, settled = queue["accepted"], settled_of(queue)
        span_s = (at_ns - self.at_ns) / SECOND_NS
        if self.at_ns and span_s > 0 and accepted >= self.accepted and settled >= self.settled:
            self.in_rate = (accepted - self.accepted) / span_s
            self.out_rate = (settled - self.settled) / span_s
        self.at_ns, self.accepted, self.settled = at_ns, accepted, settled
        self.depths.append((at_ns, queue["waiting"]))
        while not 0 <= at_ns - self.depths[0][0] < TRAIL_NS:
            self.depths.popleft()

    def fill(self, past: Past) -> None:
        """What was seen stays."""
        first_ns = self.depths[0][0] if self.depths else self.at_ns
        fitting = [depth for depth in past.depths if depth[0] < first_ns and self.at_ns - depth[0] < TRAIL_NS]
        self.depths.extendleft(reversed(fitting))
        if self.in_rate is None or self.out_rate is None:
            self.in_rate, self.out_rate = past.in_rate, past.out_rate


class Past(msgspec.Struct, frozen=True):
    """One queue's two minutes as the journal tells them, oldest first."""

    in_rate: float | None
    out_rate: float | None
    depths: list[tuple[int, int]]


def settled_of(queue: Answer) -> int:
    """What has left a queue: all it ever took but what is still in it."""
    inside = queue["waiting"] + queue["delayed"] + queue["leased"] + queue["quarantined"]
    return int(queue["accepted"] - inside)


def past_of(steps: QueueSteps, begin_ns: int, first_ns: int, waiting: int) -> Past:
    """Counted backwards from what waits now, in the last step, which is not over. `first_ns`: from when on all facts were read."""
    depths: list[tuple[int, int]] = []
    for step in range(len(steps.waiting) - 1, 0, -1):
        waiting = max(waiting - steps.waiting[step], 0)
        end_ns = begin_ns + step * SECOND_NS - 1
        if end_ns < first_ns:
            break
        depths.append((end_ns, waiting))
    depths.reverse()
    known_s = min(len(depths), RATE_S)
    return Past(rate(steps.accepted, known_s), rate(steps.settled, known_s), depths)


def rate(counts: Sequence[int], span_s: int) -> float | None:
    """Over the last whole seconds."""
    return sum(counts[-1 - span_s : -1]) / span_s if span_s else None
