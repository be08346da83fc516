"""Decides which connections are accepted. Each listener has a guaranteed share of `limits.connections_max`; the rest is common to all.

listener's own share    always available to it, however many connections the others have
common part             first come, first served; when it is full, the oldest connection in it that has not finished its handshake
                        is dropped for the new one. If all have finished theirs, the new one is refused
one address             at most `limits.address_connections_max`, unless it is one of `limits.exempt_addresses`; open connections stay
"""

from __future__ import annotations

import resource
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

import structlog

from dragoman import limits
from dragoman.dialects.registry import LISTENERS_BY_NAME
from dragoman.runtime.config.listeners import HTTP

if TYPE_CHECKING:
    from dragoman.runtime.config import Config
    from dragoman.runtime.connection import Connection

ADMITTED: Final = 0
FULL: Final = 1
ADDRESS_FULL: Final = 2
NO_ADDRESS: Final = ""
# File descriptors that connections must not use, so that the journal can always open its next segment: segments open for reading, those
# being written, admin connections, listeners, and a few of the interpreter's own.
RESERVED_DESCRIPTORS: Final = limits.OPEN_SEGMENTS_MAX + limits.ADMIN_CONNECTIONS_MAX + 64

log = structlog.get_logger("dragoman")


class Admission:
    """The open connections of one broker by listener and address. Each connection is added once and removed once."""

    def __init__(self, drop: Callable[[Connection], None]) -> None:
        self.connections_max = 0
        self._address_max = 0
        self._exempt: list[IPv4Network | IPv6Network] = []
        self._drop = drop  # closes a connection to make space for another one
        self._addresses: dict[Connection, str] = {}  # of every counted connection
        self._by_listener: dict[str, int] = {}
        self._by_address: dict[str, int] = {}
        # Connections that had not finished their handshake at the last check, oldest first.
        self._unfinished: dict[str, dict[Connection, None]] = {}

    def apply(self, config: Config) -> None:
        self.connections_max = config.limits.connections_max
        self._address_max = config.limits.address_connections_max
        self._exempt = [ip_network(network) for network in config.limits.exempt_addresses]
        for name, listener in config.listen.items():
            if name != HTTP and not listener.is_off:
                self._by_listener.setdefault(name, 0)
                self._unfinished.setdefault(name, {})

    def admit(self, connection: Connection) -> int:
        """Add a new connection, or return which limit it exceeds."""
        if LISTENERS_BY_NAME[connection.listener].port == 0:
            return ADMITTED  # opened by the broker itself
        address = self._counted_address(connection.host)
        if address and self._by_address.get(address, 0) >= self._address_max:
            return ADDRESS_FULL
        if not self._has_capacity(connection.listener):
            oldest = self._oldest_unfinished()
            if oldest is None:
                return FULL
            self.leave(oldest)
            self._drop(oldest)
        self._addresses[connection] = address
        self._by_listener[connection.listener] = self._by_listener.get(connection.listener, 0) + 1
        self._unfinished.setdefault(connection.listener, {})[connection] = None
        if address:
            self._by_address[address] = self._by_address.get(address, 0) + 1
        return ADMITTED

    def leave(self, connection: Connection) -> None:
        address = self._addresses.pop(connection, None)
        if address is None:
            return
        self._by_listener[connection.listener] -= 1
        self._unfinished[connection.listener].pop(connection, None)
        if address:
            self._by_address[address] -= 1
            if not self._by_address[address]:
                del self._by_address[address]

    def late(self, before_ns: int) -> list[Connection]:
        """Connections opened before `before_ns` that have not finished their handshake."""
        found: list[Connection] = []
        for waiting in self._unfinished.values():
            for connection in list(waiting):
                if connection.is_greeted:
                    del waiting[connection]
                elif connection.opened_ns < before_ns:
                    found.append(connection)
                else:
                    break  # younger ones follow
        return found

    @property
    def share(self) -> int:
        """Connections that each listener may have regardless of the others."""
        listeners = max(len(self._by_listener), 1)
        wanted = max(
            self.connections_max * limits.LISTENER_SHARES_PERCENT // 100 // listeners, limits.LISTENER_SHARE_MIN
        )
        return min(wanted, self.connections_max // (2 * listeners))

    def _has_capacity(self, listener: str) -> bool:
        share = self.share
        if self._by_listener.get(listener, 0) < share:
            return True
        return sum(max(count, share) for count in self._by_listener.values()) < self.connections_max

    def _oldest_unfinished(self) -> Connection | None:
        """The oldest connection in the common part that has not finished its handshake."""
        share = self.share
        oldest: Connection | None = None
        for listener, waiting in self._unfinished.items():
            if self._by_listener[listener] <= share:
                continue
            while waiting:
                first = next(iter(waiting))
                if not first.is_greeted:
                    if oldest is None or first.opened_ns < oldest.opened_ns:
                        oldest = first
                    break
                del waiting[first]
        return oldest

    def _counted_address(self, host: str) -> str:
        """The key under which connections from a host are counted; empty if they are not counted."""
        if not self._address_max or not host:
            return NO_ADDRESS
        address = ip_address(host.partition("%")[0])
        if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
            address = address.ipv4_mapped
        if any(address in network for network in self._exempt):
            return NO_ADDRESS
        # A host with one IPv6 address usually controls the whole network around it.
        return (
            str(address) if address.version == 4 else str(ip_network((address, limits.ADDRESS_PREFIX_V6), strict=False))
        )


def room_for_connections(wanted: int) -> int:
    """How many connections are possible: `wanted` if the file descriptor limit allows it, else fewer. Raises the soft limit if necessary."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted + RESERVED_DESCRIPTORS and soft < hard:
        soft = min(wanted + RESERVED_DESCRIPTORS, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    room = max(soft - RESERVED_DESCRIPTORS, soft // 4)
    if room >= wanted:
        return wanted
    log.warning(
        "too few file descriptors for limits.connections_max; raise the limit (ulimit -n, LimitNOFILE=)",
        connections_max=wanted,
        connections_possible=room,
        descriptors=soft,
    )
    return room
