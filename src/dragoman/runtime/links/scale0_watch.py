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

from dragoman.dialects.endpoint import EndpointSetup, MessageIds
from dragoman.dialects.scale0.endpoints import AGREED, Scale0ClientEndpoint
from dragoman.errors import PeerError
from dragoman.limits import TREE_SIZE_MAX

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker
    from dragoman.runtime.config import Config

FILE_LOOK_S = 1.0
ANSWER_S = 2.0
REST_S = 1.0  # between checks for other brokers while there are none
READ_SIZE = 65536

# A file's path, mtime in ns and size.
Mark = tuple[str, int, int]

log = structlog.get_logger("dragoman")


class Scale0File:
    """The configuration file, checked once per second. `changed` is called when the file has changed and stayed the same for one more check."""

    def __init__(self, config: Callable[[], Config], changed: Callable[[], object]) -> None:
        self._config = config
        self._changed = changed
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._look_on())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look_on(self) -> None:
        known = before = self._mark()
        while True:
            await asyncio.sleep(FILE_LOOK_S)
            seen = self._mark()
            if seen is not None and seen == before and seen != known:  # a file being written keeps changing
                self._changed()
                known = self._mark()
            before = seen

    def _mark(self) -> Mark | None:
        """Identifies a version of the file; None while there is no file."""
        path = self._config().dialects["scale0"].config_file.path
        if not path:
            return None
        try:
            found = Path(path).expanduser().stat()
        except OSError:
            return None
        return path, found.st_mtime_ns, found.st_size


class Scale0Fleet:
    """The other brokers: one task for all of them, until the broker stops."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = asyncio.ensure_future(self._look_on())

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()

    async def _look_on(self) -> None:
        scale0 = self.broker.dialects.scale0
        while True:
            look_s = self.broker.config.dialects["scale0"].look_s
            others = [other.address for other in scale0.documents.others] if look_s else []
            found = await asyncio.gather(*(look(address) for address in others))
            for address, load in zip(others, found, strict=True):
                self._tell(address, load)
            await asyncio.sleep(look_s if others else REST_S)

    def _tell(self, address: str, load: float | None) -> None:
        scale0 = self.broker.dialects.scale0
        was_live = any(other.is_live for other in scale0.documents.others if other.address == address)
        if was_live != (load is not None):
            log.info("another scale0 broker", broker=address, is_live=not was_live)
        scale0.note_check(address, load is not None, -1.0 if load is None else load)


async def look(address: str) -> float | None:
    """The load of the broker at `address`; negative if it does not report one, None if it does not answer or does not accept clients."""
    try:
        async with asyncio.timeout(ANSWER_S):
            place = urlsplit(address)
            reader, writer = await asyncio.open_connection(place.hostname, place.port)
            try:
                return await _ask(reader, writer)
            finally:
                writer.close()
    except (OSError, ValueError, PeerError):
        return None


async def _ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> float | None:
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
