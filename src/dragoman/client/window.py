"""How many calls may be under way at once, and how many bytes: further callers wait their turn."""

from __future__ import annotations

import asyncio

from dragoman.errors import Refused
from dragoman.limits import MESSAGE_SIZE_MAX


class Window:
    """What callers of all dialects share; it lives in the loop it was made in."""

    def __init__(self, calls_max: int, size_max: int) -> None:
        self.loop = asyncio.get_running_loop()
        self.is_full = False
        self._is_closed = False
        self._size = 0
        self._calls_max = calls_max
        self._size_max = size_max
        self._waiters: list[asyncio.Future[None]] = []

    async def room(self) -> None:
        """Wait until another call may begin: backpressure for callers."""
        while self.is_full and not self._is_closed:
            waiter = self.loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


def too_long(size: int) -> Refused:
    return Refused("TOO_LONG", f"a message of {size} bytes; at most {MESSAGE_SIZE_MAX} are allowed")
