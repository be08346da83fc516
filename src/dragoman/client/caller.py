"""Calls of one event loop: many pending on one connection, one future each, matched by their ids.

The connection may be lost and made again. What happens to a call that was pending:

| the call                                          | on the next connection                                                    |
|---------------------------------------------------|---------------------------------------------------------------------------|
| was never sent, or a draining broker refused it   | is sent                                                                   |
| where calls survive (eMQP) and                    |                                                                           |
| · it is idempotent: it carries a dedupe key       | is sent again; DUPLICATE means that the first one got through: then the   |
|   (every `delay`), or may be sent twice           | caller asks for its state, and awaits the answer if it can still come     |
| · any other                                       | the caller asks for its state: known, a call that wants no answer is      |
|                                                   | stored; open, the answer is awaited; ended or unknown,                    |
|                                                   | it may have run: sent again if it is `repeatable`, else AnswerLost        |
| in other dialects                                 |                                                                           |
| · it is `repeatable`, or the dialect runs it once | is sent again                                                             |
|   however often it is sent                        |                                                                           |
| · any other                                       | may have run: AnswerLost                                                  |

A broker that closes its client connections may still answer pending calls (rq, scale0): the old connection then stays open until it has,
while new calls use the next one.
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Final

import msgspec

from dragoman.client.address import Address
from dragoman.client.body import failure_in, refusal_in
from dragoman.client.connection import ReconnectingConnection, new_identity
from dragoman.client.link import Link
from dragoman.dialects.description import CLIENT
from dragoman.dialects.endpoint import ANSWERED, FAILED, KEPT, REFUSED, CallOptions, ClientEndpoint, EndpointSetup
from dragoman.errors import AnswerLost, AppClosed, BrokerUnreachable, ClientError, NoAnswer, Refused
from dragoman.limits import CALLS_MAX, CALLS_SIZE_MAX, MESSAGE_SIZE_MAX

SWEEP_S: Final = 0.25
DUPLICATE: Final = b'{"error":{"type":"DUPLICATE"'
DRAINING: Final = b"DRAINING"
# States of a request that can still be answered.
OPEN_STATES: Final = ("waiting", "leased", "delivered")

Question = Callable[[ClientEndpoint, bytes], None]


class Call(msgspec.Struct, eq=False):
    """One pending call, or one query to the broker itself."""

    id: bytes
    options: CallOptions
    body: bytes
    future: asyncio.Future[bytes]
    wait_s: float
    until: float
    is_repeatable: bool  # running it twice does no harm
    question: Question | None  # a query, sent instead of a request
    link: Link[ClientEndpoint] | None  # the connection that carries it
    is_sent: bool  # the broker may have it
    is_resent: bool = False
    refusal: bytes = b""  # of a draining broker: for the case that no other broker is found


class InFlightLimit:
    """The limit on pending calls and on the bytes of their bodies: further callers wait.

    `Caller` does the counting, which saves a function call for each call.
    """

    __slots__ = ("_is_closed", "_loop", "_waiters", "calls_max", "is_full", "size", "size_max")

    def __init__(self, calls_max: int, size_max: int) -> None:
        self.calls_max = calls_max
        self.size_max = size_max
        self.size = 0  # bytes of the bodies of pending calls
        self.is_full = False
        self._loop = asyncio.get_running_loop()
        self._is_closed = False
        self._waiters: list[asyncio.Future[None]] = []

    async def room(self) -> None:
        """Wait until another call may begin: backpressure for callers."""
        while self.is_full and not self._is_closed:
            waiter = self._loop.create_future()
            self._waiters.append(waiter)
            await waiter

    def relax(self, calls: int) -> None:
        """Called when a call has ended while the limit was reached; `calls` are left."""
        if self.size < self.size_max and calls < self.calls_max:
            self.is_full = False
            self._wake()

    def close(self) -> None:
        self._is_closed = True
        self._wake()

    def _wake(self) -> None:
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._waiters.clear()


class Caller:
    """Sends calls and receives answers, on the event loop it was created in."""

    def __init__(self, address: Address, calls_max: int = CALLS_MAX, size_max: int = CALLS_SIZE_MAX) -> None:
        # Whether a call that a broker refuses because it shuts down waits for the next connection, until its timeout.
        self.waits_for_next = True
        self.loop = asyncio.get_running_loop()
        self.limit = InFlightLimit(calls_max, size_max)
        self._address = address
        self._profile = address.profile
        self._is_closed = False
        self._calls: dict[bytes, Call] = {}
        # The broker routes answers by the client's identity, so it stays the same; dialects without identities ignore it.
        self.connection = ReconnectingConnection(address, CLIENT, self._make, self._up, self._down, new_identity())
        self.ids = self.connection.ids
        self._link: Link[ClientEndpoint] | None = None
        self._old: set[Link[ClientEndpoint]] = set()
        self._sweeper: asyncio.TimerHandle | None = None

    def call(
        self,
        call_id: bytes,
        options: CallOptions,
        body: bytes,
        wait_s: float,
        is_repeatable: bool = False,
        question: Question | None = None,
    ) -> asyncio.Future[bytes]:
        """Send a request; the future has the answer's value, or b"" for a call that needs only the broker's acknowledgement."""
        if self._is_closed:
            raise AppClosed("the App is closed")
        # The broker would close the connection, and every other call on it would be affected.
        if len(body) > options.body_size_max:
            raise too_long(len(body) + MESSAGE_SIZE_MAX - options.body_size_max)
        loop, link = self.loop, self._link
        future: asyncio.Future[bytes] = loop.create_future()
        until, is_sent = loop.time() + wait_s, link is not None
        call = Call(call_id, options, body, future, wait_s, until, is_repeatable, question, link, is_sent)
        calls, limit = self._calls, self.limit
        calls[call_id] = call
        limit.size += len(body)
        if limit.size >= limit.size_max or len(calls) >= limit.calls_max:
            limit.is_full = True
        if link is None:
            self.connection.start()
        else:
            self._write(call, link)
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP_S, self._sweep)
        return future

    def query(self, question: Question, wants_reply: bool, wait_s: float) -> asyncio.Future[bytes]:
        """Send a query to the broker itself: `question` writes it to an endpoint, with the id it gets. It may be sent twice without harm."""
        options = CallOptions(b"")
        options.wants_reply = wants_reply
        options.dedupes_by_id = True
        return self.call(self.ids.take(), options, b"", wait_s, False, question)

    def _send(self, call: Call, link: Link[ClientEndpoint]) -> None:
        call.link = link
        call.is_sent = True
        self._write(call, link)

    def _write(self, call: Call, link: Link[ClientEndpoint]) -> None:
        try:
            if call.question is None:
                link.endpoint.request(call.id, call.options, call.body)
            else:
                call.question(link.endpoint, call.id)
        except ValueError as error:  # the dialect cannot express the call
            self._fail(call, refusal_in(str(error).encode(), "INEXPRESSIBLE"))
            return
        if not link.is_flush_due:
            link.push()

    def _settle(self, call: Call) -> None:
        del self._calls[call.id]
        limit = self.limit
        limit.size -= len(call.body)
        if limit.is_full:
            limit.relax(len(self._calls))

    def _answer(self, call: Call, value: bytes) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_result(value)

    def _fail(self, call: Call, error: ClientError) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_exception(error)

    def _make(self, setup: EndpointSetup) -> Link[ClientEndpoint]:
        endpoint = self._profile.endpoints().client(setup)
        return Link(endpoint, self._receive, self._over, self._gone, hello=self._profile.hello)

    def _up(self, link: Link[ClientEndpoint]) -> None:
        self._link = link
        for call in [call for call in self._calls.values() if call.link is None]:
            if call.is_sent:
                self._recover(call, link)
            else:
                self._send(call, link)

    def _down(self) -> None:
        self._link = None

    def _over(self, link: Link[ClientEndpoint], is_silent: bool) -> None:
        """The broker is closing the connection. It may still answer pending calls, where the dialect allows it."""
        if link is self._link:
            self._link = None
        if is_silent:
            link.abort(link.reason)
        elif self._profile.stays and self._has_calls(link):
            self._old.add(link)
            link.left.set()
        else:
            link.leave()

    def _gone(self, link: Link[ClientEndpoint]) -> None:
        """A connection has ended: its calls are recovered on the next one, sent again, or lost."""
        self._old.discard(link)
        if link is self._link:
            self._link = None
        for call in [call for call in self._calls.values() if call.link is link]:
            call.link = None
            if self._profile.calls_survive:
                continue  # until `_up`
            if call.is_repeatable or self._profile.resends:
                call.is_sent = False
                if self._link is not None:
                    self._send(call, self._link)
            else:
                self._fail(call, AnswerLost(call.id.decode(), "unknown"))

    def _has_calls(self, link: Link[ClientEndpoint]) -> bool:
        return any(call.link is link for call in self._calls.values())

    def _recover(self, call: Call, link: Link[ClientEndpoint]) -> None:
        """Recover a call that an earlier connection carried and that the broker may have."""
        if call.options.dedupes_by_id or call.options.dedupe:  # the broker accepts it once, however often it is sent
            call.is_resent = True
            self._send(call, link)
        else:
            call.link = link
            self._ask_about(call)

    def _ask_about(self, call: Call) -> None:
        """Ask the broker whether the answer to a call can still come."""
        state = self.query(lambda endpoint, query_id: endpoint.ask_state(query_id, call.id), True, call.wait_s)
        state.add_done_callback(functools.partial(self._learn, call))

    def _learn(self, call: Call, answer: asyncio.Future[bytes]) -> None:
        if answer.cancelled():
            return
        error = answer.exception()
        if (error is not None and not isinstance(error, Refused)) or self._calls.get(call.id) is not call:
            return
        state = state_in(answer.result()) if error is None else "unknown"
        if not call.options.wants_reply and state != "unknown":
            self._answer(call, b"")
        elif state in OPEN_STATES:
            return
        elif not call.is_repeatable:
            self._fail(call, AnswerLost(call.id.decode(), state))
        elif self._link is not None:
            self._send(call, self._link)

    def _receive(self, link: Link[ClientEndpoint], data: bytes) -> None:
        calls = self._calls
        for kind, call_id, value in link.endpoint.receive(data):
            call = calls.get(call_id)
            # A call without a link waits for `_up`; its answer may arrive before that.
            if call is None or (call.link is not link and call.link is not None):
                continue
            if kind == ANSWERED and call.options.wants_reply:
                self._settle(call)
                if not call.future.done():
                    call.future.set_result(value)
            elif kind == KEPT:
                if not call.options.wants_reply:
                    self._answer(call, b"")
            elif kind == FAILED and call.options.wants_reply:
                self._fail(call, failure_in(value))
            elif kind == REFUSED:
                self._refuse(call, link, value)
            else:
                self._fail(call, refusal_in(value))

    def _refuse(self, call: Call, link: Link[ClientEndpoint], value: bytes) -> None:
        if call.is_resent and call.options.wants_reply and value.startswith(DUPLICATE):
            self._ask_about(call)
        elif self.waits_for_next and (DRAINING in value or link.endpoint.is_over or link.endpoint.is_closing):
            # A broker that is shutting down did not accept the call, so another connection may send it.
            call.is_sent, call.link, call.refusal = False, None, value
            if self._link is not None and self._link is not link:
                self._send(call, self._link)
        else:
            self._fail(call, refusal_in(value))

    def _sweep(self) -> None:
        """Check the deadlines of all calls: cheaper than a timer for each."""
        now = self.loop.time()
        for call in [call for call in self._calls.values() if call.until <= now or call.future.cancelled()]:
            self._give_up(call)
        for link in [link for link in self._old if not self._has_calls(link)]:
            link.close()
        is_needed = bool(self._calls) or bool(self._old)
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep) if is_needed else None

    def _give_up(self, call: Call) -> None:
        if call.link is not None:
            call.link.endpoint.give_up(call.id)
            call.link.push()
        if call.refusal and not call.is_sent:
            self._fail(call, refusal_in(call.refusal))
        elif call.is_sent:
            self._fail(call, NoAnswer(call.id.decode(), call.wait_s))
        else:
            self._fail(call, BrokerUnreachable(self._address.text, call.wait_s, self.connection.problem))

    async def close(self) -> None:
        self._is_closed = True
        if self._sweeper is not None:
            self._sweeper.cancel()
        for call in list(self._calls.values()):
            self._fail(call, AppClosed("the App was closed"))
        self.limit.close()
        for link in list(self._old):
            link.close()
        await self.connection.close()


def state_in(value: bytes) -> str:
    """The state in the broker's answer to a state query."""
    try:
        state = msgspec.json.decode(value)["value"]["state"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return "unknown"
    return str(state)


def too_long(size: int) -> Refused:
    return Refused("TOO_LONG", f"a message of {size} bytes; at most {MESSAGE_SIZE_MAX} are allowed")
