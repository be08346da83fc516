"""A connection under any side of dialects/sides.py.

What a side has to say is taken from it once per turn of the loop, and four times a second it is told the time. When it says that
it is over, its owner hears whether the broker said so or fell silent: what is under way may still be settled, or cannot be.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from dragoman.client.address import place_of
from dragoman.client.link import Link
from dragoman.dialects.rq.node import NodeEar
from dragoman.dialects.sides import Side
from dragoman.errors import PeerError

BEAT_S: Final = 0.25
SILENT_S: Final = 2.0  # a side that is over after so long without a word is so because of the silence


class SideLink(Link):
    """`hear` gets the bytes. Told once each: `over`, with True when the broker is silent; `gone` at the end; `readied`.

    With `readied`, the link counts as open at once, and its owner waits by itself until the broker has taken it on: that may
    take any time (an rq queue with an exclusive consumer keeps others waiting). With `hello`, which is said first, it is not
    ready before something was heard.
    """

    def __init__(
        self,
        side: Side,
        hear: Callable[[bytes], None],
        over: Callable[[SideLink, bool], None] | None = None,
        gone: Callable[[SideLink], None] | None = None,
        readied: Callable[[], None] | None = None,
        hello: bytes = b"",
    ) -> None:
        super().__init__()
        self.side = side
        self.has_heard = False
        self._readied = readied
        self._hello = hello
        self._is_ready_told = False
        self._hear = hear
        self._over = over
        self._gone = gone
        self.is_over = False
        self._beating: asyncio.TimerHandle | None = None

    def _opening(self) -> bytes:
        self._beating = self.loop.call_later(BEAT_S, self._beat)
        return self.side.opening() + self._hello

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if self._readied is not None and not self.opened.done():
            self.opened.set_result(None)
        self._look()  # a side without a handshake is ready at once

    def data_received(self, data: bytes) -> None:
        self.heard_at = self.loop.time()
        self.has_heard = True
        try:
            self._hear(data)
        except PeerError as error:
            self.abort(str(error))
            return
        self._look()

    def push(self) -> None:
        """The side has something to say: it leaves with what else is said in this turn of the loop."""
        if not self._is_flush_due:
            self._is_flush_due = True
            self.loop.call_soon(self._flush)

    def _flush(self) -> None:
        if not self.lost.is_set():
            data = self.side.take_out()
            if data:
                self._out.append(data)
        super()._flush()

    def _beat(self) -> None:
        self._beating = self.loop.call_later(BEAT_S, self._beat)
        self.side.beat(self.loop.time())
        self._look()

    def _look(self) -> None:
        """The side has heard something, or the time: say what it says, and see what it has become."""
        side = self.side
        self.push()
        if is_sent_away(side):
            if not self.is_over:
                self.is_over = True
                self._end(self.loop.time() - self.heard_at > SILENT_S)
        elif side.is_ready and not self._is_ready_told and (self.has_heard or not self._hello):
            self._is_ready_told = True
            if self._readied is not None:
                self._readied()
            elif not self.opened.done():
                self.opened.set_result(None)

    def _end(self, is_silent: bool) -> None:
        self.reason = self.reason or self.side.problem or "the broker sent us away"
        if self.side.moved_to:
            self.moved_to = place_of(self.side.moved_to.decode("utf-8", "replace"))
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self.reason))
            self.opened.exception()
            self.close()  # after its last words, if it has some
        elif self._over is not None:
            self._over(self, is_silent)
        else:
            self.leave()

    def leave(self) -> None:
        """Close after its last words; the line need not wait for a broker that does not read them."""
        self.close()
        self.left.set()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
        super().connection_lost(exc)
        if self._gone is not None:
            self._gone(self)


def is_sent_away(side: Side) -> bool:
    """Whether new work is to go elsewhere. An rq node is over only when nothing is owed any more; new work need not wait for that."""
    if side.is_over:
        return True
    ear = getattr(side, "ear", None)
    return isinstance(ear, NodeEar) and ear.is_closing
