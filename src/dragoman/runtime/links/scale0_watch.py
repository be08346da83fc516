"""Watches two things for Scale0: the configuration file, and the other brokers named in it.

- `scale0.config_file`: when it is edited, it is read again and sent to every peer, without a signal.
- The other brokers, every `scale0.look_s`: as a client that requests the configuration and disconnects. A broker that does not answer is
  not recommended to any peer; one that is a dragoman sends its load with its CONFIG.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from dragoman.dialects.scale0.endpoints import Scale0ClientEndpoint
from dragoman.dialects.scale0.negotiated_session import AGREED
from dragoman.errors import PeerError
from dragoman.limits import TREE_SIZE_MAX

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker
    from dragoman.runtime.config import Config

FILE_LOOK_S = 1.0
ANSWER_S = 2.0
REST_S = 1.0  # between checks for other brokers while there are none
READ_SIZE = 65536

log = structlog.get_logger("dragoman")


async def watch_file(config: Callable[[], Config], on_change: Callable[[], object]) -> None:
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


async def watch_brokers(broker: Broker) -> None:
    """Ask the other brokers again and again whether they are live, and for their load."""
    scale0 = broker.dialects.scale0
    while True:
        look_s = broker.config.dialects["scale0"].look_s
        addresses = [fellow.address for fellow in scale0.documents.fellows] if look_s else []
        loads = await asyncio.gather(*(load_of(address) for address in addresses))
        for address, load in zip(addresses, loads, strict=True):
            was_live = any(fellow.is_live for fellow in scale0.documents.fellows if fellow.address == address)
            if was_live != (load is not None):
                log.info("another scale0 broker", broker=address, is_live=not was_live)
            scale0.heard_of(address, load is not None, -1.0 if load is None else load)
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
    endpoint = Scale0ClientEndpoint(b"", 2 * TREE_SIZE_MAX)
    writer.write(endpoint.opening())
    while not endpoint.is_over:
        data = await reader.read(READ_SIZE)
        if not data:
            return None
        endpoint.receive(data)
        if endpoint.accord.state == AGREED:
            return endpoint.accord.load
        writer.write(endpoint.data_to_send())
    return None
