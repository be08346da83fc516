"""One TCP connection: passes received bytes to its session and the session's output to the socket, with backpressure both ways."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, cast

from mypy_extensions import mypyc_attr

from dragoman.dialects.session import Session, discard
from dragoman.errors import PeerError
from dragoman.limits import READ_TURN_NS, SMALL_READ_SIZE, TURN_SIZE

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker


@mypyc_attr(allow_interpreted_subclasses=True)
class Connection:
    """An `asyncio.Protocol` by its methods: a compiled class cannot inherit from it. Thin: all protocol logic is in the session."""

    def __init__(self, broker: Broker, listener: str) -> None:
        self.broker = broker
        self.listener = listener
        self.session: Session | None = None
        self.transport: asyncio.Transport | None = None
        self.host = ""  # the peer's address
        self.opened_ns = 0
        self.ending_ns = 0
        self.is_paused = False  # by backpressure
        self.unpaused_ns = 0  # when the last pause ended
        self.is_resting = False  # until the next tick
        self.is_sender_paused = False  # memory is short and this peer sends much
        self.waits_its_turn = False  # its unfinished message must wait: see runtime/unfinished.py
        self.unsent_seen = 0  # unsent bytes at the last memory check, and since when they have not decreased
        self.unsent_since_ns = 0
        self.is_read = True
        self._rest = b""  # unprocessed bytes of the last read, for the next turn
        self._is_lost = False
        self.is_over = False  # the broker is closing it: further input is ignored

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)  # uvloop's own class, with the same interface
        peer = transport.get_extra_info("peername")
        self.host = peer[0] if peer else ""
        self.session = self.broker.admit(self)
        if self.session is None:
            self.transport.write(self.broker.words_when_full(self.listener))
            self.transport.close()
            return
        self.transport.set_write_buffer_limits(high=self.broker.write_buffer_size(self.listener))
        sock = transport.get_extra_info("socket")
        if sock is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
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
        if len(data) > SMALL_READ_SIZE and len(data) > session.piece_size():
            self._take_in_pieces(session, data)
            return
        began_ns = broker.watchdog.begin_read(self.listener)
        try:
            session.receive(data)
        except PeerError as fault:
            broker.on_fault(self, fault)
        if began_ns:
            broker.watchdog.end(began_ns, self.listener, "read")
        if self._rest or (session.has_waiting() and not self.is_over):  # `_has_more`, inlined
            broker.rest(self)

    def _has_more(self, session: Session) -> bool:
        """Whether received input is left for the next turn."""
        return bool(self._rest) or (session.has_waiting() and not self.is_over)

    def _take_in_pieces(self, session: Session, data: bytes) -> None:
        """Process input for at most one turn's time; the rest is left for the next turn, and nothing more is read before."""
        broker = self.broker
        began_ns = broker.watchdog.begin()
        end_ns = broker.clock.now_ns() + READ_TURN_NS
        at = 0
        try:
            if session.has_waiting() and not self.is_over:
                session.go_on()
            while at < len(data) and not session.has_waiting() and not self.is_over:
                size = session.piece_size()
                session.receive(data[at : at + size])
                at += size
                if broker.clock.now_ns() > end_ns:
                    break
        except PeerError as fault:
            broker.on_fault(self, fault)
        self._rest = b"" if self.is_over else data[at:]
        broker.watchdog.end(began_ns, self.listener, f"read of {len(data)} bytes")
        if self._has_more(session) or len(data) >= TURN_SIZE:
            broker.rest(self)
        else:
            self.set_resting(False)

    def go_on(self) -> None:
        """End of a rest: process the remaining bytes of the last read, then resume reading."""
        if self.session is not None and self._has_more(self.session):
            self.broker.loop.call_soon(self._take_rest)
        else:
            self.set_resting(False)

    def _take_rest(self) -> None:
        session = self.session
        if session is None:
            return
        self.broker.wake()
        self._take_in_pieces(session, self._rest)
        if self._is_lost and not self._has_more(session):
            self._end_session(session)

    def pause_writing(self) -> None:
        """The peer does not read: assign it no new work, and pause reading its input if it is a client."""
        if self.session is not None:
            self.session.set_socket_full(True)
            self.session.sink = self._send_to_slow
            self.broker.balance(self)

    def resume_writing(self) -> None:
        if self.session is not None and self.transport is not None and not self.transport.is_closing():
            self.broker.wake()
            self.session.sink = self.transport.write
            self.session.set_socket_full(False)
            self.broker.balance(self)

    def eof_received(self) -> bool:
        """The peer sends nothing more: close the connection, too."""
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        session = self.session
        if session is not None:
            session.sink = discard
            self._is_lost = True
            if not self._has_more(session):  # else its earlier input is processed first
                self._end_session(session)

    def _end_session(self, session: Session) -> None:
        self.broker.wake()
        began_ns = self.broker.watchdog.begin()
        self.session = None
        session.ended()
        self.broker.forget(self, session)
        self.broker.watchdog.end(began_ns, self.listener, "connection ended")

    def _send_to_slow(self, data: bytes) -> None:
        """Write while the peer does not read; abort the connection when too much output is pending."""
        assert self.transport is not None
        self.transport.write(data)
        if self.transport.get_write_buffer_size() > self.broker.out_buffer_max:
            self.broker.on_overflow(self)

    @property
    def is_greeted(self) -> bool:
        """Whether its handshake is done, or it has ended."""
        return self.session is None or self.session.is_greeted

    @property
    def unsent_size(self) -> int:
        """Bytes written that the operating system has not accepted yet."""
        return self.transport.get_write_buffer_size() if self.transport is not None else 0

    def set_paused(self, is_paused: bool) -> None:
        if self.is_paused and not is_paused:
            self.unpaused_ns = self.broker.clock.now_ns()
        self.is_paused = is_paused
        if self.session is not None:
            self.session.is_unread = is_paused
        self._balance_reading()

    def set_resting(self, is_resting: bool) -> None:
        self.is_resting = is_resting
        self._balance_reading()

    def _balance_reading(self) -> None:
        is_read = not (self.is_paused or self.is_resting)
        if is_read == self.is_read or self.transport is None or self.transport.is_closing():
            return
        self.is_read = is_read
        if is_read:
            self.transport.resume_reading()
        else:
            self.transport.pause_reading()

    def end(self) -> None:
        """Close after the pending output was sent."""
        self.is_over, self._rest = True, b""
        if self.session is not None:
            self.session.sink = discard
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        self.is_over, self._rest = True, b""
        if self.session is not None:
            self.session.sink = discard
        if self.transport is not None:
            self.transport.abort()
