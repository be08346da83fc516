"""eMQP calls of one event loop: many under way on one connection, one future each, matched by message id.

The connection may be lost and come back. The client keeps its identity, so the answers to what the broker has accepted find it
again. What becomes of a call that was under way:

| the call                                        | on the new connection                                                     |
|-------------------------------------------------|---------------------------------------------------------------------------|
| was never sent, or a draining broker refused it | is sent                                                                   |
| carries a dedupe key (every `delay`), or may be | is sent again; DUPLICATE means that the first one got through: then its   |
| said twice without harm                         | state is asked for, and its answer awaited if it can still come           |
| any other `ask`                                 | its state is asked for: open, the answer is awaited; ended or unknown,    |
|                                                 | it may have run: sent again if it is `repeatable`, else AnswerLost        |
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
from typing import Final

import msgspec

from dragoman.client.address import CLIENT, Address
from dragoman.client.line import Line
from dragoman.client.link import Link, ZmtpLink
from dragoman.client.window import Window, too_long
from dragoman.dialects.emqp.client_side import KEPT, STATE, ClientSide, MessageIds, encode_question
from dragoman.dialects.emqp.dialect import id_prefix_of
from dragoman.errors import AnswerLost, AppClosed, BrokerUnreachable, ClientError, NoAnswer
from dragoman.limits import CALLS_MAX, CALLS_SIZE_MAX, MESSAGE_SIZE_MAX

SWEEP_S: Final = 0.25
DUPLICATE: Final = b'{"error":{"type":"DUPLICATE"'
DRAINING: Final = b'{"error":{"type":"DRAINING"'
# States of a request from which an answer still comes.
OPEN_STATES: Final = ("waiting", "leased", "delivered")


class Call:
    """One call under way."""

    __slots__ = (
        "future",
        "id",
        "is_again",
        "is_repeatable",
        "is_safe",
        "is_sent",
        "message",
        "refusal",
        "until",
        "wait_s",
        "wants_answer",
    )

    def __init__(
        self,
        call_id: bytes,
        message: bytes,
        future: asyncio.Future[bytes],
        wants_answer: bool,
        wait_s: float,
        is_safe: bool,
    ) -> None:
        self.id = call_id
        self.message = message
        self.future = future
        self.wants_answer = wants_answer  # False: KEPT is enough
        self.wait_s = wait_s
        self.is_safe = is_safe  # sent twice, it is still accepted once
        self.is_repeatable = False  # run twice, it does no harm
        self.until = 0.0
        self.is_sent = False
        self.is_again = False
        self.refusal = b""  # a draining broker's: kept while a new one is waited for


class Caller(Window):
    """The client role on the loop it was made in."""

    def __init__(self, address: Address, calls_max: int = CALLS_MAX, size_max: int = CALLS_SIZE_MAX) -> None:
        super().__init__(calls_max, size_max)
        self.ids = MessageIds(id_prefix_of(os.urandom(10)))
        self._address = address
        self._identity = str(uuid.uuid4()).encode()
        self._calls: dict[bytes, Call] = {}
        self._line = Line(address, CLIENT, self._make, self._up, self._down)
        self._link: Link | None = None
        self._side: ClientSide | None = None
        self._sweeper: asyncio.TimerHandle | None = None

    # -- calls ----------------------------------------------------------------------------------------------------------

    def call(
        self,
        call_id: bytes,
        message: bytes,
        wants_answer: bool,
        wait_s: float,
        is_safe: bool = True,
        is_repeatable: bool = False,
    ) -> asyncio.Future[bytes]:
        """Send a message; the future holds the answer's value, or b"" for a call that only wants to be kept."""
        if self._is_closed:
            raise AppClosed("the App is closed")
        # The broker would end the connection, and every other call on it would suffer.
        if len(message) > MESSAGE_SIZE_MAX:
            raise too_long(len(message))
        loop = self.loop
        future: asyncio.Future[bytes] = loop.create_future()
        call = Call(call_id, message, future, wants_answer, wait_s, is_safe)
        call.is_repeatable = is_repeatable
        call.until = loop.time() + wait_s
        self._calls[call_id] = call
        self._size += len(message)
        if self._size >= self._size_max or len(self._calls) >= self._calls_max:
            self.is_full = True
        link = self._link
        if link is not None:
            call.is_sent = True
            link.send(message)
        else:
            self._line.start()
        if self._sweeper is None:
            self._sweeper = loop.call_later(SWEEP_S, self._sweep)
        return future

    def _settle(self, call: Call) -> None:
        del self._calls[call.id]
        self._size -= len(call.message)
        if self.is_full and self._size < self._size_max and len(self._calls) < self._calls_max:
            self.is_full = False
            self._wake()

    def _answer(self, call: Call, value: bytes) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_result(value)

    def _fail(self, call: Call, error: ClientError) -> None:
        self._settle(call)
        if not call.future.done():
            call.future.set_exception(error)

    # -- the connection -------------------------------------------------------------------------------------------------

    def _make(self) -> Link:
        self._side = ClientSide(self._identity, MESSAGE_SIZE_MAX)
        return ZmtpLink(self._side.zmtp, self._hear)

    def _up(self, link: Link) -> None:
        self._link = link
        for call in list(self._calls.values()):
            if call.is_sent and not call.is_safe:
                self._ask_about(call)
            else:
                call.is_again = call.is_sent
                call.is_sent = True
                link.send(call.message)

    def _down(self) -> None:
        self._link = None

    def _hear(self, data: bytes) -> None:
        assert self._side is not None
        calls = self._calls
        for what, request_id, value in self._side.receive(data):
            call = calls.get(request_id)
            if call is None or (what == KEPT and call.wants_answer):
                continue
            if call.is_again and call.wants_answer and value.startswith(DUPLICATE):
                self._ask_about(call)
                continue
            if value.startswith(DRAINING):
                call.is_sent = False  # not accepted, so the next connection may have it
                call.refusal = value
                continue
            self._answer(call, value)

    def _ask_about(self, call: Call) -> None:
        """A call was under way when the connection was lost: will its answer still come?"""
        question_id = self.ids.take()
        question = self.call(question_id, encode_question(STATE, question_id, call.id), True, call.wait_s)
        question.add_done_callback(functools.partial(self._learn, call))

    def _learn(self, call: Call, answer: asyncio.Future[bytes]) -> None:
        if answer.cancelled() or answer.exception() is not None or self._calls.get(call.id) is not call:
            return
        state = state_in(answer.result())
        if state in OPEN_STATES:
            return
        if call.is_repeatable:
            if self._link is not None:
                self._link.send(call.message)
        else:
            self._fail(call, AnswerLost(call.id.decode(), state))

    # -- time -----------------------------------------------------------------------------------------------------------

    def _sweep(self) -> None:
        """One look at all calls instead of a timer each."""
        now = self.loop.time()
        self._sweeper = self.loop.call_later(SWEEP_S, self._sweep) if self._calls else None
        for call in [call for call in self._calls.values() if call.until <= now or call.future.cancelled()]:
            if call.refusal and not call.is_sent:
                self._answer(call, call.refusal)
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
        await self._line.close()


def state_in(value: bytes) -> str:
    """The state word in an answer to STATE."""
    try:
        state = msgspec.json.decode(value)["value"]["state"]
    except (msgspec.DecodeError, KeyError, TypeError):
        return "unknown"
    return str(state)
