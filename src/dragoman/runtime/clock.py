"""The broker's clock: wall time at boot, advanced by the monotonic clock, so that it never jumps."""

from __future__ import annotations

import time

from mypy_extensions import mypyc_attr


@mypyc_attr(allow_interpreted_subclasses=True)
class Clock:
    """`now_ns` for leases and expiries; `wall_ns` for cron; `step_ns` reports when the two diverge."""

    def __init__(self, not_before_ns: int = 0) -> None:
        self._offset_ns = max(time.time_ns(), not_before_ns) - time.monotonic_ns()
        self._apart_ns = self.wall_ns() - self.now_ns()

    def now_ns(self) -> int:
        return time.monotonic_ns() + self._offset_ns

    def wall_ns(self) -> int:
        return time.time_ns()

    def step_ns(self, least_ns: int) -> int:
        """How far the wall clock jumped since the last call; 0 if less than `least_ns`."""
        apart_ns = self.wall_ns() - self.now_ns()
        step_ns = apart_ns - self._apart_ns
        if abs(step_ns) < least_ns:
            return 0
        self._apart_ns = apart_ns
        return step_ns
