"""Ports for a broker that stops and restarts on the same ones. The system's ports for port 0 come from its dynamic range, and while the
broker is down it could assign the same number to an outgoing connection; these ports are below that range."""

from __future__ import annotations

import itertools
import socket
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

HOST: Final = "127.0.0.1"
FIRST: Final = 10_240
BLOCK_SIZE: Final = 512
RANGE_FILE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
RANGE_ELSEWHERE: Final = 49_152  # where IANA's dynamic ports begin

# The block's first port stays bound while this process runs, so that no other takes the block.
_reserved: list[int] = []
_ports: Iterator[int] = iter(())


def lasting_addresses(names: Iterable[str]) -> dict[str, str]:
    """An address for each listener. If there are too few ports below the system's range, the system chooses."""
    if _system_range_begins() < FIRST + BLOCK_SIZE:
        return dict.fromkeys(names, f"tcp://{HOST}:0")
    return {name: f"tcp://{HOST}:{lasting_port()}" for name in names}


def lasting_port() -> int:
    """A port without a listener, which no other caller in any process gets before about a hundred more calls."""
    global _ports
    if not _reserved:
        _ports = itertools.cycle(_claim_block())
    for _ in range(BLOCK_SIZE):
        port = next(_ports)
        probe = _bound(port)
        if probe is not None:
            probe.close()
            return port
    raise OSError(f"every port from {FIRST} up that this process may use is in use")


def _claim_block() -> range:
    for first in range(FIRST, _system_range_begins() - BLOCK_SIZE + 1, BLOCK_SIZE):
        listener = _bound(first)
        if listener is not None:
            _reserved.append(listener.detach())
            return range(first + 1, first + BLOCK_SIZE)
    raise OSError(f"no block of {BLOCK_SIZE} ports is free between {FIRST} and {_system_range_begins()}")


def _bound(port: int) -> socket.socket | None:
    probe = socket.socket()
    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the broker does: a port in TIME_WAIT is free
    try:
        probe.bind((HOST, port))
        probe.listen()  # two sockets may be bound with REUSEADDR, but only one listens
    except OSError:
        probe.close()
        return None
    return probe


def _system_range_begins() -> int:
    try:
        return int(RANGE_FILE.read_text().split()[0])
    except (OSError, ValueError, IndexError):
        return RANGE_ELSEWHERE
