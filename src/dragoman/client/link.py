"""One TCP connection under a codec: what is sent within one turn of the loop leaves as one write.

`ZmtpLink` is the tuned one of eMQP; `SideLink` (side_link.py) carries any side of dialects/sides.py.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, cast

from dragoman.errors import PeerError
from dragoman.wire.zmtp.connection import ZmtpConnection

# A peer that vanished without a word (a pulled cable, a lost route) is noticed within half a minute.
SOCKET_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),  # ms
)


class Link(asyncio.Protocol):
    """From connect to loss."""

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.opened: asyncio.Future[None] = self.loop.create_future()  # the handshake is done
        self.lost = asyncio.Event()
        self.left = asyncio.Event()  # its line is done with it: lost, or kept on by its owner for what is under way
        self.reason = ""
        self.moved_to: tuple[str, int] | None = None  # where the broker sent us
        self.heard_at = 0.0
        self.resumed: Callable[[], None] | None = None  # called when a blocked link takes bytes again
        self._transport: asyncio.Transport | None = None
        self._out: list[bytes] = []
        self._is_flush_due = False
        self._is_paused = False
        self._flushed: list[asyncio.Future[None]] = []

    @property
    def is_blocked(self) -> bool:
        """The other side does not read as fast as we send."""
        return self._is_paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: the transports of uvloop have the methods, not the ancestry.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            for level, option, value in SOCKET_OPTIONS:
                sock.setsockopt(level, option, value)
        self.heard_at = self.loop.time()
        self._transport.write(self._opening())

    def _opening(self) -> bytes:
        """What is sent first."""
        raise NotImplementedError

    def send(self, data: bytes) -> None:
        """Send with what else is sent in this turn of the loop."""
        self._out.append(data)
        if not self._is_flush_due:
            self._is_flush_due = True
            self.loop.call_soon(self._flush)

    def sent(self) -> asyncio.Future[None]:
        """Done once everything given to `send` so far has been handed to the system, or the connection is lost."""
        done = self.loop.create_future()
        if self.lost.is_set():
            done.set_result(None)
        else:
            self._flushed.append(done)
            self.loop.call_soon(self._flush)
        return done

    def _flush(self) -> None:
        self._is_flush_due = False
        if self._is_paused or self._transport is None or self.lost.is_set():
            return
        if self._out:
            data = self._out[0] if len(self._out) == 1 else b"".join(self._out)
            self._out.clear()
            self._transport.write(data)
        if self._flushed and not self._is_paused:
            self._release()

    def _release(self) -> None:
        for waiter in self._flushed:
            if not waiter.done():
                waiter.set_result(None)
        self._flushed.clear()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._flush()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        if not self.reason:
            self.reason = str(exc) if exc is not None else "the broker ended the connection"
        self._out.clear()
        self.lost.set()
        self.left.set()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self.reason))
            self.opened.exception()  # looked at here, in case nobody waits for it any more
        self._release()

    def close(self) -> None:
        """End after what has been sent is out."""
        if self._transport is not None:
            self._is_paused = False
            self._flush()
            self._transport.close()

    def abort(self, reason: str) -> None:
        """End at once."""
        self.reason = self.reason or reason
        if self._transport is not None:
            self._transport.abort()


class ZmtpLink(Link):
    """A link whose owner's codec rides on ZMTP. `hear` gets the raw bytes and asks its codec what they mean."""

    def __init__(self, zmtp: ZmtpConnection, hear: Callable[[bytes], None]) -> None:
        super().__init__()
        self._zmtp = zmtp
        self._hear = hear

    def _opening(self) -> bytes:
        return self._zmtp.greeting()

    def data_received(self, data: bytes) -> None:
        self.heard_at = self.loop.time()
        transport = self._transport
        assert transport is not None
        try:
            self._hear(data)
        except PeerError as error:
            self.reason = str(error)
            transport.abort()
            return
        answer = self._zmtp.take_outgoing()
        if answer:
            transport.write(answer)
        if self._zmtp.is_ready and not self.opened.done():
            self.opened.set_result(None)
