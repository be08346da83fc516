"""Liveness check of the broker by a client or a worker: any message counts as a heartbeat, silence triggers a PING."""

from __future__ import annotations

from typing import Final, final

QUIET: Final = 0
PING_DUE: Final = 1
DEAD: Final = 2


@final
class Pulse:
    """Requests a PING after each interval of silence; after `misses_max` intervals without a message the broker counts as dead."""

    def __init__(self, interval_s: float, misses_max: int) -> None:
        self.interval_s = interval_s
        self.misses_max = misses_max
        self.has_received: bool = True  # received a message since the last beat
        self.heard_s: float = 0.0
        self.misses: int = 0

    def beat(self, now_s: float) -> int:
        if self.has_received:
            self.has_received = False
            self.heard_s = now_s
            self.misses = 0
            return QUIET
        if now_s - self.heard_s < self.interval_s * (self.misses + 1):
            return QUIET
        self.misses += 1
        return DEAD if self.misses > self.misses_max else PING_DUE
