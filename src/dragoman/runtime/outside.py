"""What a broker needs from the world beside bytes, disk and clock: a loop, a thread for syncs, and one piece of chance.

Passed in, so that a whole broker can run where nothing of this is real (dragoman.testing.sim).
"""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from dragoman.runtime.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Outside:
    """`commit_thread` is None when the durability asks for no sync, `write_thread` when all is written on the loop; `id_seed` begins all
    message ids of a boot."""

    loop: asyncio.AbstractEventLoop
    commit_thread: Executor | None
    id_seed: bytes
    watchdog: Watchdog = field(default_factory=Watchdog)
    write_thread: Executor | None = None

    @classmethod
    def real(cls, durability: str) -> Outside:
        thread = ThreadPoolExecutor(1, "commit") if durability == "disk" else None
        writer = ThreadPoolExecutor(1, "write") if durability == "os" else thread
        return cls(asyncio.get_running_loop(), thread, secrets.token_bytes(10), write_thread=writer)
