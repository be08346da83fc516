"""One TCP connection of an endpoint: everything sent within one iteration of the event loop leaves as one write.

The endpoint's output is collected once per loop iteration, and every `beat_s` the endpoint's `beat` gets the time. When the endpoint is
over, the link's owner learns whether the broker closed the connection or fell silent: pending work may then still be settled, or not.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import Final, Generic, TypeVar, cast

from dragoman.client.address import host_port_of
from dragoman.dialects.endpoint import Endpoint
from dragoman.errors import PeerError

SILENT_S: Final = 2.0  # an endpoint that is over after this long without a byte is over because of the silence
# Detects a peer that vanished (a pulled cable, a lost route) within half a minute.
SOCKET_OPTIONS: Final = (
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 25_000),  # ms
)

E = TypeVar("E", bound=Endpoint)


class Link(asyncio.Protocol, Generic[E]):
    """One connection from connect to loss. `receive` gets the bytes. Called once each: `over`, with True when the broker is silent; `gone`
    when the connection is lost; `readied` when the endpoint is ready.

    With `readied`, `opened` is set immediately, and the owner itself waits until the broker has accepted it: that may take any time
    (an rq queue with an exclusive consumer keeps others waiting). With `hello`, which is sent first, the link is not ready before it has
    received something.
    """

    def __init__(
        self,
        endpoint: E,
        receive: Callable[[Link[E], bytes], None],
        over: Callable[[Link[E], bool], None] | None = None,
        gone: Callable[[Link[E]], None] | None = None,
        readied: Callable[[Link[E]], None] | None = None,
        hello: bytes = b"",
    ) -> None:
        self.loop = asyncio.get_running_loop()
        self.endpoint = endpoint
        self.opened: asyncio.Future[None] = self.loop.create_future()  # set when the handshake is done
        self.lost = asyncio.Event()
        self.left = asyncio.Event()  # no longer current: lost, or kept open by its owner for pending work
        self.reason = ""
        self.moved_to: tuple[str, int] | None = None  # the address that the broker redirected to
        self.has_received = False
        self.received_at = 0.0
        self.resumed: Callable[[], None] | None = None  # called when a blocked link accepts bytes again
        self._receive = receive
        self._over = over
        self._gone = gone
        self._readied = readied
        self._hello = hello
        self._is_decided = False  # ready or over, and the owner was notified
        self._is_over = False
        self._transport: asyncio.Transport | None = None
        self.is_flush_due = False  # a flush of the endpoint's output is scheduled
        self._is_paused = False
        self._flushed: list[asyncio.Future[None]] = []
        self._beating: asyncio.TimerHandle | None = None

    @property
    def is_blocked(self) -> bool:
        """Whether the peer reads more slowly than we send."""
        return self._is_paused

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # A cast: uvloop's transports have the methods but not the base class.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.family in (socket.AF_INET, socket.AF_INET6):
            for level, option, value in SOCKET_OPTIONS:
                sock.setsockopt(level, option, value)
        self.received_at = self.loop.time()
        if self.endpoint.beat_s:
            self._beating = self.loop.call_later(self.endpoint.beat_s, self._beat)
        self._transport.write(self.endpoint.opening() + self._hello)
        if self._readied is not None and not self.opened.done():
            self.opened.set_result(None)
        self._look()  # an endpoint without a handshake is ready immediately

    def data_received(self, data: bytes) -> None:
        self.received_at = self.loop.time()
        self.has_received = True
        try:
            self._receive(self, data)
        except PeerError as error:
            self.abort(str(error))
            return
        endpoint = self.endpoint
        if not self._is_decided or endpoint.is_over or endpoint.is_closing:
            self._look()
        elif not self.is_flush_due:
            self._flush()

    def push(self) -> None:
        """Schedule a flush of the endpoint's output at the end of this loop iteration."""
        if not self.is_flush_due:
            self.is_flush_due = True
            self.loop.call_soon(self._flush)

    def sent(self) -> asyncio.Future[None]:
        """A future that is done once the endpoint's output so far has been handed to the system, or the connection is lost."""
        done = self.loop.create_future()
        if self.lost.is_set():
            done.set_result(None)
        else:
            self._flushed.append(done)
            self.loop.call_soon(self._flush)
        return done

    def _flush(self) -> None:
        self.is_flush_due = False
        transport = self._transport
        if self._is_paused or transport is None or self.lost.is_set():
            return
        data = self.endpoint.data_to_send()
        if data:
            transport.write(data)
        if self._flushed and not self._is_paused:
            self._release()

    def _release(self) -> None:
        for waiter in self._flushed:
            if not waiter.done():
                waiter.set_result(None)
        self._flushed.clear()

    def _beat(self) -> None:
        self._beating = self.loop.call_later(self.endpoint.beat_s, self._beat)
        self.endpoint.beat(self.loop.time())
        self._look()

    def _look(self) -> None:
        """Send the endpoint's output, and act on its state."""
        endpoint = self.endpoint
        if endpoint.is_over or endpoint.is_closing:
            if not self._is_over:
                self._is_over = self._is_decided = True
                self._end(self.loop.time() - self.received_at > SILENT_S)
        elif not self._is_decided and endpoint.is_ready and (self.has_received or not self._hello):
            self._is_decided = True
            if self._readied is not None:
                self._readied(self)
            elif not self.opened.done():
                self.opened.set_result(None)
        if not self.is_flush_due:
            self._flush()

    def _end(self, is_silent: bool) -> None:
        self.reason = self.reason or self.endpoint.problem or "the broker sent us away"
        if self.endpoint.moved_to:
            self.moved_to = host_port_of(self.endpoint.moved_to.decode("utf-8", "replace"))
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self.reason))
            self.opened.exception()
            self.close()  # after the last output, if there is any
        elif self._over is not None:
            self._over(self, is_silent)
        else:
            self.leave()

    def leave(self) -> None:
        """Close after the last output, without making the next connection wait for a broker that does not read it."""
        self.close()
        self.left.set()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._flush()
        if self.resumed is not None:
            self.resumed()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._beating is not None:
            self._beating.cancel()
            self._beating = None
        if not self.reason:
            self.reason = str(exc) if exc is not None else "the broker ended the connection"
        self.lost.set()
        self.left.set()
        if not self.opened.done():
            self.opened.set_exception(ConnectionError(self.reason))
            self.opened.exception()  # retrieved here, in case no task awaits it any more
        self._release()
        if self._gone is not None:
            self._gone(self)

    def close(self) -> None:
        """Close once all output is sent."""
        if self._transport is not None:
            self._is_paused = False
            self._flush()
            self._transport.close()

    def abort(self, reason: str) -> None:
        """Close immediately; unsent output is dropped."""
        self.reason = self.reason or reason
        if self._transport is not None:
            self._transport.abort()
