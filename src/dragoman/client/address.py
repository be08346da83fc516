"""The address of a broker: one text with its dialect, its hosts and the ports of all roles.

emqp://127.0.0.1                                       the default port of each role
rq://a.example,b.example                               alternates: the next one when one is full, refuses or is silent
emqp://127.0.0.1:6000                                  one port for the roles that can share one
ebus://127.0.0.1:6000?worker=6001&publish=6002&subscribe=6003
pingpong://127.0.0.1?queue=orders                      the queue that the broker's configuration assigns to pingpong
file:./data                                            the listeners in the broker.json of this data directory
file:./data?dialect=rq                                 the same, for another dialect than emqp
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, unquote

from dragoman.dialects.description import CLIENT, DialectDescription
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import BadAddress

BROKER_FILE: Final = "broker.json"
DEFAULT_DIALECT: Final = "emqp"  # it has every feature
EXPECTED: Final = f"wants DIALECT://HOST with one of {', '.join(DIALECTS_BY_NAME)}, or file:DIRECTORY"

HostPort = tuple[str, int]


@dataclass(frozen=True)
class Address:
    """The hosts and ports of each role, or the file that lists them."""

    text: str
    profile: DialectDescription
    hosts: tuple[tuple[str, int], ...] = ()  # port 0: the role's default
    ports: tuple[tuple[str, tuple[int, ...]], ...] = ()  # per role: one port for all hosts, or one for each
    file: Path | None = None
    queue: str = ""  # the only queue of the dialect; empty: any

    def host_ports(self, role: str) -> list[HostPort]:
        """The (host, port) pairs of a role now. A file is read each time: a restarted broker may listen elsewhere."""
        if self.file is not None:
            return [self._host_port_from_file(self.file, role)]
        named = dict(self.ports).get(role)
        if named is None:
            return [(host, self._port(role, port)) for host, port in self.hosts]
        return [(host, named[at % len(named)]) for at, (host, _) in enumerate(self.hosts)]

    def _port(self, role: str, port: int) -> int:
        listeners = self.profile.by_role
        if role not in listeners:
            raise BadAddress(self.text, f"{self.profile.name} has no port to {role} at")
        if port in (0, listeners[CLIENT].port, listeners[role].port):
            return listeners[role].port
        if role not in self.profile.shared:
            raise BadAddress(self.text, f"names no {role} port; add ?{role}=PORT")
        return port

    def _host_port_from_file(self, file: Path, role: str) -> HostPort:
        try:
            listeners = json.loads(file.read_text())["listeners"]
        except FileNotFoundError:
            raise ConnectionError(f"{file} is not there: the broker does not run") from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConnectionError(f"{file} cannot be read: {error}") from None
        name = self.profile.by_role[role].name if role in self.profile.by_role else f"{self.profile.name}.{role}"
        text = listeners.get(name)
        if not text:
            raise BadAddress(self.text, f"the broker has no listener {name}")
        host_port = host_port_of(text)
        assert host_port is not None
        return host_port


def host_port_of(text: str) -> HostPort | None:
    """Parse `tcp://HOST:PORT` or `HOST:PORT`; None when it is neither."""
    host, _, port = text.removeprefix("tcp://").rpartition(":")
    return (host.strip("[]"), int(port)) if host and _is_port(port) else None


def parse(text: str) -> Address:
    """Parse an address; raises BadAddress."""
    scheme, colon, rest = text.partition(":")
    rest, _, query = rest.partition("?")
    options = parse_qsl(query, keep_blank_values=True)
    if colon and scheme == "file":
        return _file_address(text, unquote(rest.removeprefix("//")), dict(options))
    profile = DIALECTS_BY_NAME.get(scheme)
    if not colon or profile is None or not rest.startswith("//"):
        raise BadAddress(text, EXPECTED)
    hosts = tuple(_host(text, host_port) for host_port in rest[2:].rstrip("/").split(","))
    queue = profile.queue
    ports: list[tuple[str, tuple[int, ...]]] = []
    for key, value in options:
        if key == "queue" and profile.queue:
            queue = _queue(text, value)
        elif key in profile.by_role:
            ports.append((key, tuple(_number(text, port) for port in value.split(","))))
            if len(ports[-1][1]) not in (1, len(hosts)):
                raise BadAddress(text, f"names {len(ports[-1][1])} ports for {len(hosts)} hosts")
        else:
            raise BadAddress(text, f"{key!r} is not a role of {scheme}; there are {', '.join(profile.by_role)}")
    return Address(text, profile, hosts, tuple(ports), None, queue)


def _file_address(text: str, file: str, options: dict[str, str]) -> Address:
    path = Path(file)
    name = options.pop("dialect", DEFAULT_DIALECT)
    if name not in DIALECTS_BY_NAME:
        raise BadAddress(text, f"{name!r} is not a dialect; there are {', '.join(DIALECTS_BY_NAME)}")
    profile = DIALECTS_BY_NAME[name]
    queue = _queue(text, options.pop("queue")) if profile.queue and "queue" in options else profile.queue
    if options:
        raise BadAddress(text, f"{next(iter(options))!r} means nothing here; ?dialect=NAME does")
    return Address(text, profile, file=path if path.suffix == ".json" else path / BROKER_FILE, queue=queue)


def _queue(text: str, name: str) -> str:
    if not name:
        raise BadAddress(text, "names an empty queue")
    return name


def _host(text: str, host_port: str) -> tuple[str, int]:
    if host_port.startswith("["):
        host, _, port = host_port[1:].partition("]")
        port = port.removeprefix(":")
    else:
        host, _, port = host_port.partition(":")
    if not host:
        raise BadAddress(text, "names no host")
    return host, _number(text, port) if port else 0


def _number(text: str, port: str) -> int:
    if not _is_port(port):
        raise BadAddress(text, f"{port!r} is not a port")
    return int(port)


def _is_port(text: str) -> bool:
    return text.isdigit() and 0 < int(text) < 65536
