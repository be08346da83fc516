"""Taps: show the traffic of the listeners to operators. Without a watcher, no code is in the path of the bytes.

Received messages come from the sessions, one by one. Sent messages are parsed from the bytes on their way to the socket:
while there is a watcher, a proxy transport in front of the real one copies what is written.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from dragoman.dialects.session import Session, ZmtpSession, discard
from dragoman.errors import PeerError
from dragoman.limits import COMMAND_SIZE_MAX, MESSAGE_SIZE_MAX
from dragoman.runtime.connection import Connection
from dragoman.wire.zmtp.connection import V1, V3_0, ZmtpConnection
from dragoman.wire.zmtp.greeting import GREETING_SIZE_V2, GREETING_SIZE_V3, SIGNATURE_SIZE
from dragoman.wire.zmtp.reader import FrameReader

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker

OPENED: Final = "opened"
SAID: Final = "said"
ENDED: Final = "ended"


@dataclass(frozen=True, slots=True)
class Sight:
    """One event at a listener. `frames` of a raw TCP dialect are one run of bytes."""

    kind: str
    listener: str
    connection_no: int
    peer: str
    identity: bytes
    to_broker: bool
    socket_types: tuple[str, str]  # the peer's and the broker's; empty where there are none
    frames: list[bytes]


Watcher = Callable[[Sight], None]


class TapBoard:
    """The watchers of one broker and, while there are any, an `Eye` per connection."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._eyes: dict[Session, Eye] = {}

    def connection(self, broker: Broker, listener: str) -> Connection:
        """A new connection at a listener: a tapped one only if there is a watcher."""
        return TappedConnection(broker, listener, self) if self._watchers else Connection(broker, listener)

    def watch(self, broker: Broker, watcher: Watcher) -> None:
        self._watchers.append(watcher)
        if len(self._watchers) == 1:
            for session, connection in list(broker.connections.items()):
                if connection.transport is not None:
                    proxy = TappedTransport(connection.transport)
                    if session.sink == connection.transport.write:
                        session.sink = proxy.write
                    connection.transport = cast(asyncio.Transport, proxy)
                    self.look_at(session, proxy, is_new=False)
        for eye in self._eyes.values():
            eye.introduce(watcher)

    def unwatch(self, broker: Broker, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        if self._watchers:
            return
        self._eyes.clear()
        for session, connection in list(broker.connections.items()):
            session.tap = None
            proxy = connection.transport
            if isinstance(proxy, TappedTransport):
                if session.sink == proxy.write:
                    session.sink = proxy.transport.write
                connection.transport = proxy.transport

    def look_at(self, session: Session, proxy: TappedTransport, *, is_new: bool) -> None:
        eye = Eye(self, session, is_new)
        self._eyes[session] = eye
        session.tap = eye.heard
        proxy.look = eye.wrote

    def tell(self, sight: Sight) -> None:
        for watcher in self._watchers:
            watcher(sight)

    def ended(self, session: Session) -> None:
        eye = self._eyes.pop(session, None)
        if eye is not None:
            self.tell(eye.sight(ENDED, True, []))

    def sweep(self, broker: Broker) -> None:
        """Report new connections that have sent nothing, and the end of those that are older than the first watcher."""
        for eye in self._eyes.values():
            eye.look_up()
        for session in [session for session in self._eyes if session not in broker.connections]:
            self.ended(session)


class TappedConnection(Connection):
    """A connection made while there is a watcher."""

    def __init__(self, broker: Broker, listener: str, board: TapBoard) -> None:
        super().__init__(broker, listener)
        self._board = board

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        proxy = TappedTransport(cast(asyncio.Transport, transport))
        super().connection_made(cast(asyncio.Transport, proxy))
        if self.session is not None:
            self._board.look_at(self.session, proxy, is_new=True)

    def connection_lost(self, exc: Exception | None) -> None:
        session = self.session
        super().connection_lost(exc)
        if session is not None:
            self._board.ended(session)


class TappedTransport:
    """Proxy of a transport: passes written data to `look` first; everything else goes to the real transport."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.look: Callable[[bytes], None] = discard

    def write(self, data: bytes) -> None:
        self.look(data)
        self.transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class Eye:
    """One watched connection."""

    def __init__(self, board: TapBoard, session: Session, is_new: bool) -> None:
        self._board = board
        self._session = session
        self._is_introduced = False
        self._reader = SentReader(session.zmtp, is_new) if isinstance(session, ZmtpSession) else None

    def introduce(self, watcher: Watcher) -> None:
        if self._session.address:
            self._is_introduced = True
            watcher(self.sight(OPENED, True, []))

    def heard(self, is_ours: bool, frames: list[bytes]) -> None:
        self.look_up()
        session = self._session
        if isinstance(session, ZmtpSession):
            frames = unfolded(session.zmtp, frames)
        self._board.tell(self.sight(SAID, True, frames))

    def wrote(self, data: bytes) -> None:
        self.look_up()
        for frames in self._reader.read(data) if self._reader is not None else [[data]]:
            self._board.tell(self.sight(SAID, False, frames))

    def look_up(self) -> None:
        if not self._is_introduced and self._session.address:
            self._is_introduced = True
            self._board.tell(self.sight(OPENED, True, []))

    def sight(self, kind: str, to_broker: bool, frames: list[bytes]) -> Sight:
        session = self._session
        types = ("", "")
        if isinstance(session, ZmtpSession):
            types = (session.zmtp.peer_socket_type.decode("ascii", "replace"), session.zmtp.socket_type.decode())
        return Sight(
            kind, session.listener, session.connection_no, session.remote, session.identity, to_broker, types, frames
        )


class SentReader:
    """Parses the bytes sent on one ZMTP connection into messages; the handshake is skipped."""

    def __init__(self, zmtp: ZmtpConnection, from_start: bool) -> None:
        self._zmtp = zmtp
        self._opening: bytearray | None = bytearray() if from_start else None
        self._reader: FrameReader | None = None
        self._is_blind = False
        self._skips = 0

    def read(self, data: bytes) -> list[list[bytes]]:
        version = self._zmtp.peer_version
        if self._is_blind or (version == 0 and self._opening is None):
            return []
        if self._opening is not None:
            self._opening += data
            if version == 0:
                return []
            size = GREETING_SIZE_V3 if version >= V3_0 else SIGNATURE_SIZE if version == V1 else GREETING_SIZE_V2
            self._skips = 1 if version == 2 else 0  # 2.0 sends its identity as a message
            data, self._opening = bytes(self._opening[size:]), None
        if self._reader is None:
            self._reader = FrameReader(MESSAGE_SIZE_MAX * 1024)
            self._reader.is_open = True
            self._reader.is_v1 = version == V1
            self._reader.has_commands = version >= V3_0
            self._reader.control_size_max = COMMAND_SIZE_MAX
        messages: list[list[bytes]] = []
        try:
            self._reader.feed(data)
            while self._reader.walk(messages) is not None:
                pass  # ZMTP's own commands (READY, PING, …) are left out
        except PeerError:
            self._is_blind = True  # the tap began in the middle of a handshake
        skipped = min(self._skips, len(messages))
        self._skips -= skipped
        return messages[skipped:]


def unfolded(zmtp: ZmtpConnection, frames: list[bytes]) -> list[bytes]:
    """Split a message's known prefix, which the reader delivers as one frame, into its frames."""
    if not any(frames[0] is opening.frames for opening in zmtp.reader.openings):
        return frames
    reader = FrameReader(len(frames[0]))
    reader.is_open = True
    messages: list[list[bytes]] = []
    reader.feed(frames[0] + b"\x00\x00")  # a last empty frame makes it a message
    reader.walk(messages)
    return [*messages[0][:-1], *frames[1:]]
