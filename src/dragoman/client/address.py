"""Where a broker is: one text for all its ports.

    emqp://127.0.0.1                                       the default port of each role
    emqp://a.example,b.example                             alternates: tried in turn until one answers
    emqp://127.0.0.1:6000                                  one port for clients, workers and publishing
    emqp://127.0.0.1:6000?worker=6001&publish=6002&subscribe=6003
    file:./data                                            what the broker with this data directory wrote into broker.json

An eMQP port of the broker takes every command, so one port is enough, except to subscribe: that is a PUB socket of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from dragoman.errors import BadAddress

CLIENT: Final = "client"
WORKER: Final = "worker"
PUBLISH: Final = "publish"
SUBSCRIBE: Final = "subscribe"
DEFAULT_PORTS: Final = {CLIENT: 47291, WORKER: 47290, PUBLISH: 47298, SUBSCRIBE: 47299}
BROKER_FILE: Final = "broker.json"
OTHER_DIALECTS: Final = ("scale0", "pingpong", "ebus", "rq")

Place = tuple[str, int]


@dataclass(frozen=True)
class Address:
    """The places of each role, or the file that names them."""

    text: str
    hosts: tuple[tuple[str, int], ...] = ()  # a port of 0: the role's default
    ports: tuple[tuple[str, int], ...] = ()
    file: Path | None = None

    def places(self, role: str) -> list[Place]:
        """Where to find a role now. A file is read anew each time: a restarted broker may listen elsewhere."""
        if self.file is not None:
            return [self._place_from_file(self.file, role)]
        named = dict(self.ports).get(role)
        return [(host, self._port(role, port, named)) for host, port in self.hosts]

    def _port(self, role: str, port: int, named: int | None) -> int:
        if named is not None:
            return named
        if port == 0 or port == DEFAULT_PORTS[CLIENT]:
            return port if port and role == CLIENT else DEFAULT_PORTS[role]
        if role == SUBSCRIBE:
            raise BadAddress(self.text, "names no port to subscribe at; add ?subscribe=PORT")
        return port

    def _place_from_file(self, file: Path, role: str) -> Place:
        try:
            listeners = json.loads(file.read_text())["listeners"]
        except FileNotFoundError:
            raise ConnectionError(f"{file} is not there: the broker does not run") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConnectionError(f"{file} cannot be read: {error}") from None
        told = listeners.get(f"emqp.{role}")
        if not told:
            raise BadAddress(self.text, f"the broker has no listener emqp.{role}")
        host, _, port = told.removeprefix("tcp://").rpartition(":")
        return host.strip("[]"), int(port)


def parse(text: str) -> Address:
    """Read an address; raises BadAddress."""
    scheme, colon, rest = text.partition(":")
    if not colon:
        raise BadAddress(text, "wants emqp://HOST or file:DIRECTORY")
    if scheme == "file":
        path = Path(unquote(rest.removeprefix("//")))
        return Address(text, file=path if path.suffix == ".json" else path / BROKER_FILE)
    if scheme in OTHER_DIALECTS:
        raise BadAddress(
            text, f"this client does not speak {scheme}; the broker's emqp listeners reach the same queues"
        )
    if scheme != "emqp" or not rest.startswith("//"):
        raise BadAddress(text, "wants emqp://HOST or file:DIRECTORY")
    places, _, query = rest[2:].partition("?")
    hosts = tuple(_host(text, place) for place in places.rstrip("/").split(","))
    ports = []
    for role, port in parse_qsl(query, keep_blank_values=True):
        if role not in DEFAULT_PORTS:
            raise BadAddress(text, f"{role!r} is not a role; there are {', '.join(DEFAULT_PORTS)}")
        ports.append((role, _number(text, port)))
    return Address(text, hosts, tuple(ports))


def _host(text: str, place: str) -> tuple[str, int]:
    if place.startswith("["):
        host, _, port = place[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = place.partition(":")
    if not host:
        raise BadAddress(text, "names no host")
    return host, _number(text, port) if port else 0


def _number(text: str, port: str) -> int:
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise BadAddress(text, f"{port!r} is not a port")
    return int(port)
