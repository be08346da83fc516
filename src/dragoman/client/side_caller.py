"""Calls of one event loop in any dialect with a client side: many under way on one connection, matched by their ids.

What becomes of a call that was under way when its connection was lost:

| the call                                                     | on the next connection                             |
|--------------------------------------------------------------|----------------------------------------------------|
| was never sent, or a draining broker refused it              | is sent                                            |
| is `repeatable`, or the dialect runs it once however often it is said | is sent again                             |
| any other                                                    | may have run: AnswerLost                           |

A broker that sends its clients away may still answer what it has (rq, scale0): the old connection is then kept until it has, while
new calls take the next one.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
from typing import Final

from dragoman.client import sides
from dragoman.client.address import CLIENT, Address
from dragoman.client.body import failure_in, refusal_in
from dragoman.client.line import Line
from dragoman.client.link import Link
from dragoman.client.side_link import SideLink, is_sent_away
from dragoman.client.window import Window, too_long
from dragoman.dialects.emqp.client_side import MessageIds
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.dialects.sides import ANSWERED, FAILED, KEPT, REFUSED, ClientSide, Wish
from dragoman.errors import AnswerLost, AppClosed, BrokerUnreachable, ClientError, NoAnswer
from dragoman.limits import CALLS_MAX, CALLS_SIZE_MAX, MESSAGE_SIZE_MAX

SWEEP_S: Final = 0.25
DRAINING: Final = b"DRAINING"
HEADERS_SIZE: Final = 1024  # room for what a dialect puts around a body


class SideCall:
    """One call under way."""

    __slots__ = ("body", "future", "id", "is_repeatable", "is_sent", "link", "refusal", "until", "wait_s", "wish")

    def __init__(
        self,
        call_id: bytes,
        wish: Wish,
        body: bytes,
        future: asyncio.Future[bytes],
        wait_s: float,
        is_repeatable: bool,
    ) -> None:
        self.id = call_id
        self.wish = wish
        self.body = body
        self.future = future
        self.wait_s = wait_s
        self.is_repeatable = is_repeatable
        self.until = 0.0
        self.link: SideLink | None = None  # the connection that carries it
        self.is_sent = False
        self.refusal = b""  # a draining broker's: kept while another one is looked for


class SideCaller(Window):
    """The client role on the loop it was made in."""

    def __init__(self, address: Address, calls_max: int = CALLS_MAX, size_max: int = CALLS_SIZE_MAX) -> None:
        super().__init__(calls_max, size_max)
        self.ids = MessageIds(id_prefix_of(os.urandom(10)))
        self._address = address
        self._tongue = address.tongue
        # Answers find a client that keeps its identity; it is of no use where the wire has none.
        self._identity = str(uuid.uuid4()).encode()
        self._calls: dict[bytes, SideCall] = {}
        self._line = Line(address, CLIENT, self._make, self._up, self._down)
        self._link: SideLink | None = None
        self._old: set[SideLink] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    @property
    def line(self) -> Line:
        """The connection, for those who ask how it fares."""
        return self._line

    # -- calls ----------------------------------------------------------------------------------------------------------

    def call(
        self, call_id: bytes, wish: Wish, body: bytes, wait_s: float, is_repeatable: bool = False
    ) -> asyncio.Future[bytes]:
        """Ask; the future holds the answer's value, or b"" when the wish was only to be kept."""
        if self._is_closed:
            raise AppClosed("the App is closed")
        if len(body) + HEADERS_SIZE > MESSAGE_SIZE_MAX:
            raise too_long(len(body) + HEADERS_SIZE)
        future: asyncio.Future[bytes] = self.loop.create_future()
        call = SideCall(call_id, wish, body, future, wait_s, is_repeatable)
        call.until = self.loop.time() + wait_s
        self._calls[call_id] = call
        self._size += len(body)
        if self._size >= self._size_max or len(self._calls) >= self._calls_max:
            self.is_full = True
        if self._link is not None:
            self._send(call, self._link)
        else:
            self._line.start()
        if self._sweeper is None:
            self._sweeper = self.loop.call_later(SWEEP_S, self._sweep)
        return future

    def _send(self, call: SideCall, link: SideLink) -> None:
        side = link.side
        assert isinstance(side, ClientSide)
        call.link, call.is_sent = link, True
        try:
            side.request(call.id, call.wish, call.body)
        except ValueError as error:  # what the dialect cannot express
            self._fail(call, refusal_in(str(error).encode(), "INEXPRESSIBLE"))
            return
        link.push()

    def _settle(self, call: SideCall) -> None:
        del self._calls[call.id]
        self._size -= len(call.body)
        if self.is_full and self._size < self._size_max and len(self._calls) < self._calls_max:
            self.is_full = False
            self._wake()

    def _answer(self, call: SideCall, value: bytes) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_result(value)

    def _fail(self, call: SideCall, error: ClientError) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_exception(error)

    # -- the connection -------------------------------------------------------------------------------------------------

    def _make(self) -> Link:
        side = sides.client_side(self._tongue.name, self._identity, self._line.is_alternate)
        return SideLink(side, functools.partial(self._hear, side), self._over, self._gone, hello=self._tongue.hello)

    def _up(self, link: Link) -> None:
        assert isinstance(link, SideLink)
        self._link = link
        for call in list(self._calls.values()):
            if not call.is_sent:
                self._send(call, link)

    def _down(self) -> None:
        self._link = None

    def _over(self, link: SideLink, is_silent: bool) -> None:
        """The broker wants us no more. What it has may still be answered where the dialect says so."""
        if link is self._link:
            self._link = None
        if is_silent:
            link.abort(link.reason)
        elif self._tongue.stays and self._has_calls(link):
            self._old.add(link)
            link.left.set()
        else:
            link.leave()

    def _gone(self, link: SideLink) -> None:
        """A connection has ended: whatever it carried must be said again, or is lost."""
        self._old.discard(link)
        if link is self._link:
            self._link = None
        for call in [call for call in self._calls.values() if call.link is link and call.is_sent]:
            call.link = None
            if call.is_repeatable or self._tongue.resends:
                call.is_sent = False
                if self._link is not None:
                    self._send(call, self._link)
            else:
                self._fail(call, AnswerLost(call.id.decode(), "unknown"))

    def _has_calls(self, link: SideLink) -> bool:
        return any(call.link is link and call.is_sent for call in self._calls.values())

    def _hear(self, side: ClientSide, data: bytes) -> None:
        calls = self._calls
        for what, call_id, value in side.receive(data):
            call = calls.get(call_id)
            if call is None or call.link is None or call.link.side is not side:
                continue
            if what == KEPT:
                if not call.wish.wants_reply:
                    self._answer(call, b"")
            elif what == ANSWERED:
                self._answer(call, value)
            elif what == FAILED and call.wish.wants_reply:
                self._fail(call, failure_in(value))
            elif what == REFUSED and (DRAINING in value or is_sent_away(side)):
                self._hold(call, value)
            else:
                self._fail(call, refusal_in(value))

    def _hold(self, call: SideCall, refusal: bytes) -> None:
        """A broker that goes did not accept it, so another connection may have it."""
        went_by = call.link
        call.is_sent, call.link, call.refusal = False, None, refusal
        if self._link is not None and self._link is not went_by:
            self._send(call, self._link)

    # -- time -----------------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """One look at all calls instead of a timer each."""
        now = self.loop.time()
        for call in [call for call in self._calls.values() if call.until <= now or call.future.cancelled()]:
            self._give_up(call)
        for link in [link for link in self._old if not self._has_calls(link)]:
            link.close()
        is_needed = bool(self._calls) or bool(self._old)
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep) if is_needed else None

    def _give_up(self, call: SideCall) -> None:
        link = call.link
        if call.is_sent and link is not None and isinstance(link.side, ClientSide):
            link.side.cancel(call.id)
            link.push()
        if call.refusal and not call.is_sent:
            self._fail(call, refusal_in(call.refusal))
        elif call.is_sent:
            self._fail(call, NoAnswer(call.id.decode(), call.wait_s))
        else:
            self._fail(call, BrokerUnreachable(self._address.text, call.wait_s, self._line.problem))

    async def close(self) -> None:
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for call in list(self._calls.values()):
            self._fail(call, AppClosed("the App was closed"))
        self._wake()
        for link in list(self._old):
            link.close()
        await self._line.close()
