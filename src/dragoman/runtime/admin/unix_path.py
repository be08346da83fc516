"""Unix sockets in directories with long names.

The kernel accepts at most 107 bytes of path. A longer one is reached through the open directory
(`/proc/self/fd/N/name`), for binding as for connecting.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

PATH_SIZE_MAX: Final = 107


@contextmanager
def reachable(path: Path) -> Iterator[str]:
    """A path that the kernel accepts for the socket at `path`; valid inside the block only."""
    whole = os.fspath(path)
    if len(os.fsencode(whole)) <= PATH_SIZE_MAX:
        yield whole
        return
    directory = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def bind_private(path: Path) -> socket.socket:
    """A bound socket that only its owner can connect to. A socket left by a killed process is removed: the caller holds the directory's
    lock, so no other process uses it."""
    path.unlink(missing_ok=True)
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)  # the mode must be right from creation on, not only after a chmod
    try:
        with reachable(path) as address:
            sock.bind(address)
    except OSError:
        sock.close()
        raise
    finally:
        os.umask(before)
    return sock


def connect(path: Path, timeout_s: float) -> socket.socket:
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    sock.settimeout(timeout_s)
    try:
        with reachable(path) as address:
            sock.connect(address)
    except OSError:
        sock.close()
        raise
    return sock
