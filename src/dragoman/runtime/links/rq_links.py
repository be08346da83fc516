"""Links to other rq controllers: one outgoing connection each, reopened whenever it ends. The protocol is in dialects/rq/link."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import structlog

from dragoman.dialects.rq.description import LINK
from dragoman.dialects.rq.link import RqLink
from dragoman.runtime.connection import Connection

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker

CONNECT_S = 10.0
ENDED = "the connection ended"

log = structlog.get_logger("dragoman")


class LinkConnection(Connection):
    """A connection that sets an event when it has ended."""

    def __init__(self, broker: Broker) -> None:
        super().__init__(broker, LINK)
        self.has_ended = asyncio.Event()
        self.problem = ENDED
        self.is_replaced_at_once = False

    def connection_lost(self, exc: Exception | None) -> None:
        link = self.session
        if isinstance(link, RqLink) and link.is_winding_down:
            self.problem, self.is_replaced_at_once = link.problem, link.is_replaced_at_once
        super().connection_lost(exc)
        self.has_ended.set()


class RqLinks:
    """One task per controller in `rq.upstreams`, until the broker stops."""

    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for place in self.broker.config.dialects["rq"].upstreams:
            self._tasks.append(asyncio.ensure_future(self._keep(place)))

    def stop(self) -> None:
        """Open no new connections; open ones drain and close with all others."""
        for task in self._tasks:
            task.cancel()

    async def _keep(self, place: str) -> None:
        is_down = False
        while True:
            connection, problem = await self._connect(place)
            if connection is not None:
                is_down = False
                if await self._is_replaced_at_once(connection, place):
                    continue
                problem = connection.problem
            if not is_down:  # log each outage once
                log.warning("link to another controller is down", controller=place, problem=problem)
            is_down = True
            await asyncio.sleep(self.broker.config.dialects["rq"].upstream_retry_s)

    async def _connect(self, place: str) -> tuple[LinkConnection | None, str]:
        """A connection to a controller, or why there is none."""
        host, _, port = place.rpartition(":")
        loop = asyncio.get_running_loop()
        try:
            _, connection = await asyncio.wait_for(
                loop.create_connection(
                    lambda: cast(asyncio.Protocol, LinkConnection(self.broker)), host.strip("[]"), int(port)
                ),
                CONNECT_S,
            )
        except TimeoutError:
            return None, f"no connection within {CONNECT_S:g} s"
        except OSError as error:
            return None, error.strerror or str(error)
        log.info("link to another controller is up", controller=place)
        return cast(LinkConnection, connection), ""

    async def _is_replaced_at_once(self, connection: LinkConnection, place: str) -> bool:
        """Wait for the end of a link. Return whether nothing is wrong, so that the next one is opened at once."""
        await connection.has_ended.wait()
        if connection.is_replaced_at_once:
            log.info("link to another controller is made anew", controller=place, reason=connection.problem)
        return connection.is_replaced_at_once
