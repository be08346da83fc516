"""A line to the broker: one connection that is made again whenever it is lost.

    wait (0.05 s, doubling to 5 s, each shortened by chance) ──► connect and shake hands (5 s) ──► up ──► lost ──► wait …

Alternates are tried in turn: who is full, refuses or is silent goes to the back of the list. A broker that names another place is
followed there once. The wait starts small again once a connection has stayed up for a second, so a broker that accepts
and drops is not hammered. Chance spreads the clients of a restarted broker.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
from collections.abc import Callable
from typing import Final

from dragoman.client.address import Address, Place
from dragoman.client.link import Link
from dragoman.errors import BadAddress
from dragoman.limits import ERROR_TEXT_SIZE_MAX
from dragoman.printable import printable

WAIT_FIRST_S: Final = 0.05
WAIT_MAX_S: Final = 5.0
CONNECT_S: Final = 5.0
STEADY_S: Final = 1.0

log = logging.getLogger("dragoman.client")


class Line:
    """Keeps one role's connection. `make` gives a fresh link with a fresh codec; `up` and `down` tell the owner."""

    def __init__(
        self,
        address: Address,
        role: str,
        make: Callable[[], Link],
        up: Callable[[Link], None],
        down: Callable[[], None],
    ) -> None:
        self.link: Link | None = None
        self.problem = "no connection was tried yet"
        self.failures = 0  # tries in vain since the last connection
        self.is_alternate = False  # the place being tried is not the first of the list, nor one we were sent to
        self._address = address
        self._role = role
        self._make = make
        self._up = up
        self._down = down
        self._turn = 0
        self._moved_to: Place | None = None
        self._was_up = False
        self._is_last = False
        self._chance = random.Random()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep(), name=f"dragoman {self._role} line")

    def end_with_link(self) -> None:
        """Make no further connection once this one is lost."""
        self._is_last = True

    async def _keep(self) -> None:
        wait_s = WAIT_FIRST_S
        loop = asyncio.get_running_loop()
        while not self._is_last:
            began = loop.time()
            try:
                await self._live()
            except Exception:  # our own fault must not end the line without a word
                log.exception("the %s line failed", self._role)
            if loop.time() - began >= STEADY_S and self._was_up:
                wait_s = WAIT_FIRST_S
            if self._is_last:
                break
            await asyncio.sleep(wait_s * (0.5 + 0.5 * self._chance.random()))
            wait_s = min(wait_s * 2, WAIT_MAX_S)

    async def _live(self) -> None:
        """One connection from its first try to its end."""
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
            link.close()  # by `close`, or by a loop that ends and would leave the socket open
            raise
        finally:
            self.problem = printable(link.reason, ERROR_TEXT_SIZE_MAX) or self.problem
        self._moved_to = link.moved_to
        self.link = None
        self._down()

    async def _connect(self) -> Link | None:
        """One try at the next alternate, or where the last broker sent us."""
        link: Link | None = None
        where = self._address.text
        try:
            host, port = self._next_place()
            where = f"{host}:{port}"
            async with asyncio.timeout(CONNECT_S):
                _, link = await asyncio.get_running_loop().create_connection(self._make, host, port)
                await link.opened
            return link
        except TimeoutError:
            self.problem = f"{where} did not answer in {CONNECT_S:g} s"
        except OSError as error:
            # The errors of a name that is not found have numbers of their own, below 0.
            said = os.strerror(error.errno) if error.errno and error.errno > 0 else error.strerror or error
            self.problem = f"{where}: {said}"
        except BadAddress as error:
            self.problem = str(error)
        if link is not None:
            self._moved_to = link.moved_to
            link.abort(self.problem)
        return None

    def _next_place(self) -> Place:
        moved_to, self._moved_to = self._moved_to, None
        if moved_to is not None:
            self.is_alternate = False
            return moved_to
        places = self._address.places(self._role)
        at = self._turn % len(places)
        self._turn += 1
        self.is_alternate = at > 0
        return places[at]

    async def close(self) -> None:
        """Say what is still to be said, then end. Nothing is connected again."""
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
