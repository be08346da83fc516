"""An eye on `scale0.config_file`: edited, it is read again and sent to every peer, without a signal."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dragoman.runtime.config import Config

LOOK_S = 1.0

Mark = tuple[str, int, int]


class Scale0File:
    """One look a second; `changed` is called when the file has become another one and stayed so for a look."""

    def __init__(self, config: Callable[[], Config], changed: Callable[[], object]) -> None:
        self._config = config
        self._changed = changed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._look_on())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look_on(self) -> None:
        known = before = self._mark()
        while True:
            await asyncio.sleep(LOOK_S)
            seen = self._mark()
            if seen is not None and seen == before and seen != known:  # one that is still being written changes on
                self._changed()
                known = self._mark()
            before = seen

    def _mark(self) -> Mark | None:
        """What tells one version of the file from another; None while there is none."""
        path = self._config().scale0.config_file.path
        if not path:
            return None
        try:
            found = Path(path).expanduser().stat()
        except OSError:
            return None
        return path, found.st_mtime_ns, found.st_size
