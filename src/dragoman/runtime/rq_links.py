"""Links to other rq controllers: one outgoing connection each, made again whenever it ends. All that has a meaning is in dialects/rq/link."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from dragoman.dialects.registry import RQ_LINK
from dragoman.runtime.connection import Connection

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker

CONNECT_S = 10.0
ENDED = "the connection ended"

log = structlog.get_logger("dragoman")


class LinkConnection(Connection):
    """A connection that tells when it has ended."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, RQ_LINK)
        self.has_ended = asyncio.Event()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self.has_ended.set()


class RqLinks:
    """One task per controller in `rq.upstreams`, until the broker stops."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for place in self.broker.config.rq.upstreams:
            self._tasks.append(asyncio.ensure_future(self._keep(place)))

    def stop(self) -> None:
        """No new connections; those there are drain and end with all others."""
        for task in self._tasks:
            task.cancel()

    async def _keep(self, place: str) -> None:
        is_down = False
        while True:
            problem = await self._connect(place)
            if problem == ENDED or not is_down:  # once for each time it is down
                log.warning("link to another controller is down", controller=place, problem=problem)
            is_down = True
            await asyncio.sleep(self.broker.config.rq.upstream_retry_s)

    async def _connect(self, place: str) -> str:
        """One life of a link; why it ended."""
        host, _, port = place.rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            _, connection = await asyncio.wait_for(
                loop.create_connection(lambda: LinkConnection(self.broker), host.strip("[]"), int(port)), CONNECT_S
            )
        except TimeoutError:
            return f"no connection within {CONNECT_S:g} s"
        except OSError as error:
            return error.strerror or str(error)
        log.info("link to another controller is up", controller=place)
        await connection.has_ended.wait()
        return ENDED
