"""What this process gets from its machine: memory, and the sockets of listeners."""

from __future__ import annotations

import ctypes
import os
import socket
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Final

from dragoman.limits import LARGE_BLOCK_SIZE
from dragoman.runtime.config import Listener

ROOT = Path("/")
M_MMAP_THRESHOLD: Final = -3  # malloc.h


def memory_size(root: Path = ROOT) -> int:
    """Bytes of memory this process may use: the machine's, or less if one of its control groups (v1 or v2) says so; 0: unknown."""
    bounds = [*_of_machine(root), *_of_groups(root)]
    return min(bounds, default=0)


def resident_size() -> int:
    fields = Path("/proc/self/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE")


def map_large_blocks() -> None:
    """Have the C library map every block from LARGE_BLOCK_SIZE on by itself, so that freeing it returns it to the system. Left alone, glibc
    raises this size to that of the largest block freed, up to 32 MiB, and keeps what is freed below it between small blocks."""
    options = getattr(ctypes.CDLL(None), "mallopt", None)
    if options is not None:
        options(M_MMAP_THRESHOLD, LARGE_BLOCK_SIZE)


def return_free_memory() -> None:
    """Return freed memory between live objects to the system. A C library without `malloc_trim` does so by itself, or never."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _of_machine(root: Path) -> list[int]:
    with suppress(OSError, ValueError, IndexError):
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                return [int(line.split()[1]) * 1024]
    return []


def _of_groups(root: Path) -> list[int]:
    """The limits of every control group of this process and of their parents."""
    bounds: list[int] = []
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return bounds
    for line in lines:
        _, controllers, path = (line.split(":", 2) + ["", ""])[:3]
        if not controllers:
            folder, file = root / "sys/fs/cgroup", "memory.max"
        elif "memory" in controllers.split(","):
            folder, file = root / "sys/fs/cgroup/memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container the path may be the host's: missing files are skipped, and the root is the container's own group.
        within = PurePosixPath("/", path).relative_to("/")
        for group in (within, *within.parents):
            with suppress(OSError, ValueError):  # "max", or no such file
                bounds.append(int((folder / group / file).read_text()))
    return bounds


def bind(listener: Listener, backlog: int) -> socket.socket:
    """Bind and listen at once, because two processes can bind the same address until one listens. Raises `OSError` if the address is in use or
    not local."""
    family, _, _, _, address = socket.getaddrinfo(listener.host, listener.port, type=socket.SOCK_STREAM)[0]
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock
