"""Something sent that may be awaited, or left alone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator
from typing import Any

log = logging.getLogger("dragoman.client")


class Sent:
    """Awaiting it says that it got through; a failure nobody awaits is logged once."""

    def __init__(
        self, task: asyncio.Future[None] | None, later: Callable[[], Coroutine[Any, Any, None]] | None = None
    ) -> None:
        self._task = task
        self._later = later
        self._is_awaited = False
        if task is not None:
            task.add_done_callback(self._look)

    def __await__(self) -> Generator[Any, None, None]:
        self._is_awaited = True
        if self._task is not None:
            return self._task.__await__()
        return (self._later or nothing)().__await__()

    def _look(self, task: asyncio.Future[None]) -> None:
        if not task.cancelled():
            error = task.exception()
            if error is not None and not self._is_awaited:
                log.warning("not sent: %s", error)


async def nothing() -> None:
    """What is left to do for something that has been done."""
