"""A connection to the broker that reconnects whenever it is lost.

    wait (0.05 s, doubling to 5 s, each with jitter) ──► connect and handshake (5 s) ──► up ──► lost ──► wait …

Each attempt uses the next host of the list, so a host that is full, refuses or is silent is skipped. If the broker redirects to another
address, the next attempt goes there, once. The wait is reset once a connection has stayed up for a second, so a broker that accepts and
drops connections is not flooded. Jitter spreads the clients of a restarted broker.

Who calls what; the owner is a `Caller`, a `WorkerConnection`, a publisher or a subscriber:

    ReconnectingConnection                Link                                               owner
    connect  _connect ───────────────────────────────────────────────────────────────────► _make: a link with a new endpoint
             create_connection ─────────► connection_made: sends endpoint.opening()
             awaits link.opened           (sets `opened` now, if the owner gave `readied`)
    ready                                 data_received ──────────────────────────────────► _receive ─► endpoint.receive
                                          _look, endpoint.is_ready: sets `opened`, or ────► _readied
             _live ───────────────────────────────────────────────────────────────────────► _up
             awaits link.left
    closing                               _look, endpoint.is_closing or is_over ─► _end ──► _over: `abort` if the broker is silent; sets
                                                                                            `left` to keep the link for pending work; or
                                          leave: closes, sets `left` ◄──────────────────────  `leave`
    lost                                  connection_lost: sets `lost`, `left` ───────────► _gone
             _live goes on when `left` is set ────────────────────────────────────────────► _down; then it connects again
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
import uuid
from collections.abc import Callable
from typing import Final, Generic

from dragoman.client.address import Address, HostPort
from dragoman.client.link import E, Link
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.endpoint import EndpointSetup, MessageIds
from dragoman.errors import BadAddress
from dragoman.limits import ERROR_TEXT_SIZE_MAX
from dragoman.printable import printable

WAIT_FIRST_S: Final = 0.05
WAIT_MAX_S: Final = 5.0
CONNECT_S: Final = 5.0
STEADY_S: Final = 1.0

log = logging.getLogger("dragoman.client")


class ReconnectingConnection(Generic[E]):
    """The connection of one role. `make` returns a new link with a new endpoint; `up` and `down` are called when it opens and when it is lost.

    Without an `identity` each connection has a new one, so that the broker does not confuse it with the previous one.
    """

    def __init__(
        self,
        address: Address,
        role: str,
        make: Callable[[EndpointSetup], Link[E]],
        up: Callable[[Link[E]], None],
        down: Callable[[], None],
        identity: bytes = b"",
    ) -> None:
        self.ids = new_message_ids()
        self.link: Link[E] | None = None
        self.problem = "no connection was tried yet"
        self.failures = 0  # failed attempts since the last connection
        self._is_alternate = False  # the current host is neither the first of the list nor a redirect
        self._address = address
        self._role = role
        self._make = make
        self._up = up
        self._down = down
        self._identity = identity
        self._turn = 0
        self._moved_to: HostPort | None = None
        self._was_up = False
        self.is_last = False  # do not reconnect once the current connection is lost
        self._chance = random.Random()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep(), name=f"dragoman {self._role} connection")

    def _new_link(self) -> Link[E]:
        setup = EndpointSetup(self._identity or new_identity(), self.ids)
        setup.is_alternate = self._is_alternate
        setup.wall_s = time.time() - asyncio.get_running_loop().time()
        return self._make(setup)

    async def _keep(self) -> None:
        wait_s = WAIT_FIRST_S
        loop = asyncio.get_running_loop()
        while not self.is_last:
            began = loop.time()
            try:
                await self._live()
            except Exception:  # a bug here must not end the task silently
                log.exception("the %s connection failed", self._role)
            if loop.time() - began >= STEADY_S and self._was_up:
                wait_s = WAIT_FIRST_S
            if self.is_last:
                break
            await asyncio.sleep(wait_s * (0.5 + 0.5 * self._chance.random()))
            wait_s = min(wait_s * 2, WAIT_MAX_S)

    async def _live(self) -> None:
        """One connection from its first attempt to its end."""
        self._was_up = False
        link = await self._connect()
        if link is None:
            self.failures += 1
            return
        self.failures = 0
        self._was_up = True
        self.link = link
        try:
            self._up(link)
            await link.left.wait()
        except asyncio.CancelledError:
            link.close()  # cancelled by `close`, or by a loop that ends and would leave the socket open
            raise
        finally:
            self.problem = printable(link.reason, ERROR_TEXT_SIZE_MAX) or self.problem
        self._moved_to = link.moved_to
        self.link = None
        self._down()

    async def _connect(self) -> Link[E] | None:
        """One attempt at the next host, or at the address that the last broker redirected to."""
        link: Link[E] | None = None
        target = self._address.text
        try:
            host, port = self._next_host_port()
            target = f"{host}:{port}"
            async with asyncio.timeout(CONNECT_S):
                _, link = await asyncio.get_running_loop().create_connection(self._new_link, host, port)
                await link.opened
            return link
        except TimeoutError:
            self.problem = f"{target} did not answer in {CONNECT_S:g} s"
        except OSError as error:
            # Name resolution errors have their own numbers, below 0.
            text = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
            self.problem = f"{target}: {text}"
        except BadAddress as error:
            self.problem = str(error)
        except asyncio.CancelledError:
            if link is not None:  # in the middle of the handshake
                link.abort("the connection was closed before it was up")
                await link.lost.wait()
            raise
        if link is not None:
            self._moved_to = link.moved_to
            link.abort(self.problem)
        return None

    def _next_host_port(self) -> HostPort:
        moved_to, self._moved_to = self._moved_to, None
        if moved_to is not None:
            self._is_alternate = False
            return moved_to
        host_ports = self._address.host_ports(self._role)
        at = self._turn % len(host_ports)
        self._turn += 1
        self._is_alternate = at > 0
        return host_ports[at]

    async def close(self) -> None:
        """Send the remaining output, then close. Does not reconnect."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        link, self.link = self.link, None
        if link is not None:
            link.close()
            try:
                async with asyncio.timeout(CONNECT_S):
                    await link.lost.wait()
            except TimeoutError:
                link.abort("the broker did not take the last bytes")


def new_identity() -> bytes:
    return str(uuid.uuid4()).encode()


def new_message_ids() -> MessageIds:
    return MessageIds(id_prefix_of(os.urandom(10)))
