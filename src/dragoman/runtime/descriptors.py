"""File descriptors: connections must not take those that the journal needs for its next segment."""

from __future__ import annotations

import resource
from typing import Final

import structlog

from dragoman.limits import ADMIN_CONNECTIONS_MAX, OPEN_SEGMENTS_MAX

# Segments held open for reading, the ones being written, admin connections, listeners, and a few of the interpreter's own.
RESERVED: Final = OPEN_SEGMENTS_MAX + ADMIN_CONNECTIONS_MAX + 64

log = structlog.get_logger("dragoman")


def room_for_connections(wanted: int) -> int:
    """How many connections there may be: all that are wanted if the system gives enough descriptors, else what is left."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted + RESERVED and soft < hard:
        soft = min(wanted + RESERVED, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(soft - RESERVED, soft // 4)
    if room >= wanted:
        return wanted
    log.warning(
        "too few file descriptors for limits.connections_max; raise the limit (ulimit -n, LimitNOFILE=)",
        connections_max=wanted,
        connections_possible=room,
        descriptors=soft,
    )
    return room
