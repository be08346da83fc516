"""Connections that the broker opens itself, and a file that it watches, each by a task that runs until the broker stops.

- rq: one connection to each of `rq.upstreams`, reopened whenever it ends. The protocol is in dialects/rq/link.
- `scale0.config_file`: when it is edited, it is read again and sent to every peer, without a signal.
- The other Scale0 brokers, every `scale0.look_s`: as a client that requests the configuration and disconnects. A broker that does not answer is
  not recommended to any peer; one that is a dragoman sends its load with its CONFIG.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

import structlog

from dragoman.dialects.endpoint import EndpointSetup, MessageIds
from dragoman.dialects.rq.description import LINK
from dragoman.dialects.rq.link import RqLink
from dragoman.dialects.scale0.endpoints import AGREED, Scale0ClientEndpoint
from dragoman.errors import PeerError
from dragoman.limits import TREE_SIZE_MAX
from dragoman.runtime.connection import Connection

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker
    from dragoman.runtime.config import Config

CONNECT_S = 10.0
FILE_LOOK_S = 1.0
ANSWER_S = 2.0
REST_S = 1.0  # between checks for other brokers while there are none
READ_SIZE = 65536

log = structlog.get_logger("dragoman")


class LinkConnection(Connection):
    """A connection that sets an event when it has ended."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, LINK)
        self.has_ended = asyncio.Event()
        self.problem = "the connection ended"
        self.is_replaced_at_once = False

    def connection_lost(self, exc: Exception | None) -> None:
        link = self.session
        if isinstance(link, RqLink) and link.is_winding_down:
            self.problem, self.is_replaced_at_once = link.problem, link.is_replaced_at_once
        super().connection_lost(exc)
        self.has_ended.set()


async def keep_rq_link(broker: Broker, address: str) -> None:
    """Keep a connection to the controller at `address`, one of `rq.upstreams`, until this is cancelled."""
    is_down = False
    while True:
        connection, problem = await _connect(broker, address)
        if connection is not None:
            is_down = False
            await connection.has_ended.wait()
            problem = connection.problem
            if connection.is_replaced_at_once:
                log.info("link to another controller is made anew", controller=address, reason=problem)
                continue
        if not is_down:  # log each outage once
            log.warning("link to another controller is down", controller=address, problem=problem)
        is_down = True
        await asyncio.sleep(broker.config.dialects["rq"].upstream_retry_s)


async def _connect(broker: Broker, address: str) -> tuple[LinkConnection | None, str]:
    """A connection to a controller, or why there is none."""
    host, _, port = address.rpartition(":")
    connecting = asyncio.get_running_loop().create_connection(
        lambda: cast(asyncio.Protocol, LinkConnection(broker)), host.strip("[]"), int(port)
    )
    try:
        _, connection = await asyncio.wait_for(connecting, CONNECT_S)
    except TimeoutError:
        return None, f"no connection within {CONNECT_S:g} s"
    except OSError as error:
        return None, error.strerror or str(error)
    log.info("link to another controller is up", controller=address)
    return cast(LinkConnection, connection), ""


async def watch_scale0_file(config: Callable[[], Config], on_change: Callable[[], object]) -> None:
    """Check the configuration file once per second. `on_change` is called when it has changed and stayed the same for one more check."""
    known = before = _file_version(config())
    while True:
        await asyncio.sleep(FILE_LOOK_S)
        seen = _file_version(config())
        if seen is not None and seen == before and seen != known:  # a file being written keeps changing
            on_change()
            known = _file_version(config())
        before = seen


def _file_version(config: Config) -> tuple[str, int, int] | None:
    """The file's path, mtime in ns and size; None while there is no file."""
    path = config.dialects["scale0"].config_file.path
    if not path:
        return None
    try:
        found = Path(path).expanduser().stat()
    except OSError:
        return None
    return path, found.st_mtime_ns, found.st_size


async def watch_scale0_brokers(broker: Broker) -> None:
    """Ask the other brokers again and again whether they are live, and for their load."""
    scale0 = broker.dialects.scale0
    while True:
        look_s = broker.config.dialects["scale0"].look_s
        addresses = [other.address for other in scale0.documents.others] if look_s else []
        loads = await asyncio.gather(*(load_of(address) for address in addresses))
        for address, load in zip(addresses, loads, strict=True):
            was_live = any(other.is_live for other in scale0.documents.others if other.address == address)
            if was_live != (load is not None):
                log.info("another scale0 broker", broker=address, is_live=not was_live)
            scale0.note_check(address, load is not None, -1.0 if load is None else load)
        await asyncio.sleep(look_s if addresses else REST_S)


async def load_of(address: str) -> float | None:
    """The load of the broker at `address`; negative if it does not report one, None if it does not answer or does not accept clients."""
    try:
        async with asyncio.timeout(ANSWER_S):
            url = urlsplit(address)
            reader, writer = await asyncio.open_connection(url.hostname, url.port)
            try:
                return await _request_load(reader, writer)
            finally:
                writer.close()
    except (OSError, ValueError, PeerError):
        return None


async def _request_load(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float | None:
    setup = EndpointSetup(b"", MessageIds(bytes(24)))
    setup.message_size_max = 2 * TREE_SIZE_MAX
    endpoint = Scale0ClientEndpoint(setup)
    writer.write(endpoint.opening())
    while not endpoint.is_over:
        data = await reader.read(READ_SIZE)
        if not data:
            return None
        endpoint.receive(data)
        if endpoint.negotiated.state == AGREED:
            return endpoint.negotiated.load
        writer.write(endpoint.data_to_send())
    return None
