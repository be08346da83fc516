"""The sync face's own loop: a daemon thread that runs the same coroutines the async face runs on the caller's loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Background:
    """Started by its first use; one per App and process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run to the end and return the result; an interrupt of the caller cancels the work."""
        if threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError("a sync call inside the App's own loop would wait for itself; await the async one")
        future = asyncio.run_coroutine_threadsafe(work, self._started())
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _started(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            # A fork copies the loop but not its thread.
            if self._loop is None or self._pid != os.getpid():
                self._pid = os.getpid()
                # Plain asyncio: its transports write at once, so what was sent survives an exit right after it.
                self._loop = asyncio.SelectorEventLoop()
                self._thread = threading.Thread(target=self._serve, args=(self._loop,), name="dragoman", daemon=True)
                self._thread.start()
            return self._loop

    def _serve(self, loop: asyncio.AbstractEventLoop) -> None:
        asyncio.set_event_loop(loop)
        try:
            loop.run_forever()
        finally:
            loop.close()

    @property
    def is_running(self) -> bool:
        return self._loop is not None and self._pid == os.getpid()

    def stop(self) -> None:
        with self._lock:
            loop, thread = self._loop, self._thread
            self._loop = self._thread = None
        if loop is not None and thread is not None and self._pid == os.getpid():
            loop.call_soon_threadsafe(loop.stop)
            thread.join()
