"""Dependencies of a broker other than network, disk and clock: event loop, threads, random seed, watchdog.

They are passed in, so that a whole broker can run in a simulation (dragoman_lab.sim).
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, field

from dragoman.runtime.process import machine
from dragoman.runtime.watchdog import Watchdog


@dataclass(frozen=True, slots=True)
class Environment:
    """`commit_thread` is None when the durability needs no sync, `write_thread` when everything is written on the event loop. `id_seed` is the
    prefix of all message ids of a boot. `resident_size` returns the resident bytes of this process; None: freed memory is not returned to the
    system."""

    loop: asyncio.AbstractEventLoop
    commit_thread: Executor | None
    id_seed: bytes
    watchdog: Watchdog = field(default_factory=Watchdog)
    write_thread: Executor | None = None
    resident_size: Callable[[], int] | None = None

    @classmethod
    def real(cls, durability: str) -> Environment:
        thread = ThreadPoolExecutor(1, "commit") if durability == "disk" else None
        writer = ThreadPoolExecutor(1, "write") if durability == "os" else thread
        return cls(
            asyncio.get_running_loop(), thread, secrets.token_bytes(10), Watchdog(), writer, machine.resident_size
        )
