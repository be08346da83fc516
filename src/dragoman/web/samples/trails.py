"""One queue over the last two minutes: the sparkline and rates beside its name."""

from __future__ import annotations

from typing import Final

import msgspec

from dragoman.model.units import SECOND_NS
from dragoman.web.samples.history import CLOSE_NS
from dragoman.web.samples.samples import QueueSample

TRAIL_NS: Final = 120 * SECOND_NS


class Trail(msgspec.Struct, array_like=True):
    """Rates and depths, updated from samples; saved as is."""

    at_ns: int = 0
    accepted: int = 0
    settled: int = 0
    in_rate: float | None = None
    out_rate: float | None = None
    depths: list[tuple[int, int]] = []  # instant, messages waiting

    @property
    def waiting(self) -> list[int]:
        return [waiting for _, waiting in self.depths]

    def add(self, at_ns: int, queue: QueueSample) -> None:
        if 0 <= at_ns - self.at_ns < CLOSE_NS:
            return
        accepted, settled = queue.accepted, queue.settled
        span_s = (at_ns - self.at_ns) / SECOND_NS
        if self.at_ns and span_s > 0 and accepted >= self.accepted and settled >= self.settled:
            self.in_rate = (accepted - self.accepted) / span_s
            self.out_rate = (settled - self.settled) / span_s
        self.at_ns, self.accepted, self.settled = at_ns, accepted, settled
        self.depths.append((at_ns, queue.waiting))
        while not 0 <= at_ns - self.depths[0][0] < TRAIL_NS:
            self.depths.pop(0)
