"""The listeners: names, default addresses, and parsing of addresses.

tcp://127.0.0.1:47291    an IPv4 address and a port; 0 takes a free port
tcp://[::1]:47291        an IPv6 address
tcp://*:47291            every interface (refused unless security.insecure = true)
off                      leaves the listener out

All but `http` are for peers and are served by the broker's own event loop.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Final

from dragoman.dialects.registry import LISTENERS_BY_NAME
from dragoman.runtime.config.kinds import Kind

LISTENERS: Final = {
    name: (f"tcp://127.0.0.1:{listener.port}", listener.about)
    for name, listener in LISTENERS_BY_NAME.items()
    if listener.port
}
HTTP: Final = "http"
ALL_LISTENERS: Final = LISTENERS | {
    HTTP: (
        "tcp://127.0.0.1:8484",
        "people and Prometheus: the web page; elsewhere than on loopback only with web.token",
    ),
}
EXPECTED_ADDRESS: Final = '"tcp://HOST:PORT" (port 0 takes a free one) or "off"'


@dataclass(frozen=True, slots=True)
class Listener:
    """The address of one listener. If a default port is in use the listener is switched off; if an explicit one is, the start fails."""

    name: str
    address: str
    host: str
    port: int
    is_off: bool
    is_explicit: bool

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach it. A host name other than localhost counts as reachable by others."""
        if self.host == "localhost":
            return True
        try:
            return ip_address(self.host).is_loopback
        except ValueError:
            return False


def parse_listener(name: str, address: object, *, is_explicit: bool) -> Listener:
    """Parse one listener's address; raises `ValueError` if it is invalid."""
    if address == "off":
        return Listener(name, "off", "", 0, True, is_explicit)
    scheme = "(?:tcp|http)" if name == HTTP else "tcp"  # the web page's address may be written as for a browser
    match = re.fullmatch(scheme + r"://(\[[0-9a-fA-F:.]+\]|\*|[A-Za-z0-9._-]+):([0-9]{1,5})", str(address))
    if match is None or not isinstance(address, str) or int(match[2]) > 65535:
        raise ValueError
    host = match[1]
    if host == "*":
        host = "0.0.0.0"
    elif host.startswith("["):
        host = str(ip_address(host[1:-1]))
    return Listener(name, address, host, int(match[2]), False, is_explicit)


def default_listeners() -> dict[str, Listener]:
    return {name: parse_listener(name, address, is_explicit=False) for name, (address, _) in ALL_LISTENERS.items()}


def listener_kind(name: str) -> Kind:
    return Kind(
        EXPECTED_ADDRESS,
        lambda value, _: parse_listener(name, value, is_explicit=True),
        lambda listener: listener.address,
    )
