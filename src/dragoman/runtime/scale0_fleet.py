"""A look at the other Scale0 brokers of the configuration, every `scale0.look_s`: as a client that asks for the configuration and leaves.

A broker that does not answer is not recommended to anybody; one that is a dragoman tells its load with its CONFIG.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import structlog

from dragoman.dialects.scale0.accord import AGREED
from dragoman.dialects.scale0.client_side import Scale0ClientSide
from dragoman.errors import PeerError
from dragoman.limits import TREE_SIZE_MAX

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker

ANSWER_S = 2.0
REST_S = 1.0  # before it is looked whether there is anybody to look at
READ_SIZE = 65536

log = structlog.get_logger("dragoman")


class Scale0Fleet:
    """One task for all of them, until the broker stops."""

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
            look_s = self.broker.config.scale0.look_s
            fellows = [fellow.address for fellow in scale0.documents.fellows] if look_s else []
            found = await asyncio.gather(*(look(address) for address in fellows))
            for address, load in zip(fellows, found, strict=True):
                self._tell(address, load)
            await asyncio.sleep(look_s if fellows else REST_S)

    def _tell(self, address: str, load: float | None) -> None:
        scale0 = self.broker.dialects.scale0
        was_live = any(fellow.is_live for fellow in scale0.documents.fellows if fellow.address == address)
        if was_live != (load is not None):
            log.info("another scale0 broker", broker=address, is_live=not was_live)
        scale0.heard_of(address, load is not None, -1.0 if load is None else load)


async def look(address: str) -> float | None:
    """The load of the broker there; negative when it does not tell, None when it takes nobody."""
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
    side = Scale0ClientSide(b"", 2 * TREE_SIZE_MAX)
    writer.write(side.opening())
    while not side.is_over:
        data = await reader.read(READ_SIZE)
        if not data:
            return None
        side.receive(data)
        if side.accord.state == AGREED:
            return side.accord.load
        writer.write(side.take_out())
    return None
