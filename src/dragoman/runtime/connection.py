"""One TCP connection: bytes to its session, the session's bytes to the socket, and backpressure both ways."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from dragoman.dialects.session import Session, discard
from dragoman.errors import PeerError
from dragoman.limits import WRITE_BUFFER_SIZE

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker


class Connection(asyncio.Protocol):
    """Thin: everything that has a meaning is in the session."""

    def __init__(self, broker: Broker, listener: str) -> None:
        self.broker = broker
        self.listener = listener
        self.session: Session | None = None
        self.transport: asyncio.Transport | None = None
        self.opened_ns = 0
        self.is_paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own kind, with the same face
        self.session = self.broker.admit(self)
        if self.session is None:
            self.transport.abort()
            return
        self.transport.set_write_buffer_limits(high=WRITE_BUFFER_SIZE)
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        peer = transport.get_extra_info("peername")
        self.session.remote = f"{peer[0]}:{peer[1]}" if peer else ""
        self.session.sink = self.transport.write
        self.session.start()
        self.broker.wake()

    def data_received(self, data: bytes) -> None:
        broker = self.broker
        session = self.session
        if session is None:
            return
        broker.wake()
        try:
            session.receive(data)
        except PeerError as fault:
            broker.on_fault(self, fault)

    def pause_writing(self) -> None:
        """The peer does not read: no new work for it, and no more of its own until it does."""
        if self.session is not None:
            self.session.is_blocked = True
            self.session.sink = self._send_to_slow
            self.broker.balance(self)

    def resume_writing(self) -> None:
        if self.session is not None and self.transport is not None and not self.transport.is_closing():
            self.broker.wake()
            self.session.sink = self.transport.write
            self.session.exchange.unblock(self.session)
            self.broker.balance(self)

    def connection_lost(self, exc: Exception | None) -> None:
        session = self.session
        if session is not None:
            self.broker.wake()
            self.session = None
            session.sink = discard
            session.ended()
            self.broker.forget(self, session)

    def _send_to_slow(self, data: bytes) -> None:
        """The socket's write while the peer does not read: one that lets too much pile up is cut off."""
        assert self.transport is not None
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > self.broker.out_buffer_max:
            self.broker.on_overflow(self)

    def set_paused(self, is_paused: bool) -> None:
        if is_paused == self.is_paused or self.transport is None or self.transport.is_closing():
            return
        self.is_paused = is_paused
        if is_paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def end(self) -> None:
        """Close once what was written has gone out."""
        if self.session is not None:
            self.session.sink = discard
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        if self.session is not None:
            self.session.sink = discard
        if self.transport is not None:
            self.transport.abort()
