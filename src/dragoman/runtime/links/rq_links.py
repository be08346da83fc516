"""Links to other rq controllers: one outgoing connection each, reopened whenever it ends. The protocol is in dialects/rq/link."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

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


async def keep_link(broker: Broker, address: str) -> None:
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
        lambda: LinkConnection(broker), host.strip("[]"), int(port)
    )
    try:
        _, connection = await asyncio.wait_for(connecting, CONNECT_S)
    except TimeoutError:
        return None, f"no connection within {CONNECT_S:g} s"
    except OSError as error:
        return None, error.strerror or str(error)
    log.info("link to another controller is up", controller=address)
    return connection, ""
