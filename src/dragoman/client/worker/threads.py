"""Threads for plain functions: as many as are busy at once, never more than the slots, and none holds up the program's end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable


class Threads:
    """Starts a thread when none is idle. Daemons: a job that outlives the drain must not keep the process."""

    def __init__(self, most: int, name: str) -> None:
        self._most = most
        self._name = name
        self._count = 0
        self._idle = threading.Semaphore(0)
        self._work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()

    def put(self, work: Callable[[], None]) -> None:
        """Called from one thread only."""
        self._work.put(work)
        if not self._idle.acquire(blocking=False) and self._count < self._most:
            self._count += 1
            threading.Thread(target=self._serve, name=f"{self._name} {self._count}", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self._work.get()()
            self._idle.release()
