"""Taps: show the traffic of the listeners to operators. Without a watcher, no code is in the path of the bytes.

Received messages come from the sessions, one by one. Sent messages are parsed from the bytes on their way to the socket:
while there is a watcher, a proxy transport in front of the real one copies what is written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, cast

import msgspec

from dragoman.dialects.description import RISP, TEXT
from dragoman.dialects.registry import wire_of
from dragoman.dialects.session import Session, ZmtpSession, discard
from dragoman.errors import PeerError
from dragoman.limits import COMMAND_SIZE_MAX, MESSAGE_SIZE_MAX
from dragoman.runtime.admin.operation import SendEvent, Server, found, operation
from dragoman.runtime.admin.risp_text import items_of
from dragoman.runtime.connection import Connection
from dragoman.wire.zmtp.connection import V1, V3_0, ZmtpConnection
from dragoman.wire.zmtp.greeting import GREETING_SIZE_V2, GREETING_SIZE_V3, SIGNATURE_SIZE
from dragoman.wire.zmtp.reader import FrameReader

if TYPE_CHECKING:
    from dragoman.runtime.broker import Broker

OPENED: Final = "opened"
MESSAGE: Final = "said"
ENDED: Final = "ended"
SWEEP_S: Final = 0.1
Size = Annotated[int, msgspec.Meta(ge=0)]


@dataclass(frozen=True, slots=True)
class TapEvent:
    """One event at a listener. `frames` of a raw TCP dialect are one run of bytes."""

    kind: str
    listener: str
    connection_no: int
    peer: str
    identity: bytes
    to_broker: bool
    socket_types: tuple[str, str]  # the peer's and the broker's; empty where there are none
    frames: list[bytes]


Watcher = Callable[[TapEvent], None]


class Taps:
    """The watchers of one broker and, while there are any, a `ConnectionTap` per connection."""

    def __init__(self) -> None:
        self._watchers: list[Watcher] = []
        self._connection_taps: dict[Session, ConnectionTap] = {}

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
                    self.tap_session(session, proxy, is_new=False)
        for tap in self._connection_taps.values():
            tap.introduce(watcher)

    def unwatch(self, broker: Broker, watcher: Watcher) -> None:
        self._watchers.remove(watcher)
        if self._watchers:
            return
        self._connection_taps.clear()
        for session, connection in list(broker.connections.items()):
            session.tap = None
            proxy = connection.transport
            if isinstance(proxy, TappedTransport):
                if session.sink == proxy.write:
                    session.sink = proxy.transport.write
                connection.transport = proxy.transport

    def tap_session(self, session: Session, proxy: TappedTransport, *, is_new: bool) -> None:
        tap = ConnectionTap(self, session, is_new)
        self._connection_taps[session] = tap
        session.tap = tap.received
        proxy.on_write = tap.sent

    def send(self, event: TapEvent) -> None:
        for watcher in self._watchers:
            watcher(event)

    def ended(self, session: Session) -> None:
        tap = self._connection_taps.pop(session, None)
        if tap is not None:
            self.send(tap.event(ENDED, True, []))

    def sweep(self, broker: Broker) -> None:
        """Report new connections that have sent nothing, and the end of those that are older than the first watcher."""
        for tap in self._connection_taps.values():
            tap.introduce_once()
        for session in [session for session in self._connection_taps if session not in broker.connections]:
            self.ended(session)


class TappedConnection(Connection):
    """A connection made while there is a watcher."""

    def __init__(self, broker: Broker, listener: str, taps: Taps) -> None:
        super().__init__(broker, listener)
        self._taps = taps

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        proxy = TappedTransport(cast(asyncio.Transport, transport))
        super().connection_made(cast(asyncio.Transport, proxy))
        if self.session is not None:
            self._taps.tap_session(self.session, proxy, is_new=True)

    def connection_lost(self, exc: Exception | None) -> None:
        session = self.session
        super().connection_lost(exc)
        if session is not None:
            self._taps.ended(session)


class TappedTransport:
    """Proxy of a transport: passes written data to `on_write` first; everything else goes to the real transport."""

    def __init__(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        self.on_write: Callable[[bytes], None] = discard

    def write(self, data: bytes) -> None:
        self.on_write(data)
        self.transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class ConnectionTap:
    """One watched connection."""

    def __init__(self, taps: Taps, session: Session, is_new: bool) -> None:
        self._taps = taps
        self._session = session
        self._is_introduced = False
        self._reader = SentReader(session.zmtp, is_new) if isinstance(session, ZmtpSession) else None

    def introduce(self, watcher: Watcher) -> None:
        if self._session.address:
            self._is_introduced = True
            watcher(self.event(OPENED, True, []))

    def received(self, is_ours: bool, frames: list[bytes]) -> None:
        self.introduce_once()
        session = self._session
        if isinstance(session, ZmtpSession):
            frames = unfolded(session.zmtp, frames)
        self._taps.send(self.event(MESSAGE, True, frames))

    def sent(self, data: bytes) -> None:
        self.introduce_once()
        for frames in self._reader.read(data) if self._reader is not None else [[data]]:
            self._taps.send(self.event(MESSAGE, False, frames))

    def introduce_once(self) -> None:
        if not self._is_introduced and self._session.address:
            self._is_introduced = True
            self._taps.send(self.event(OPENED, True, []))

    def event(self, kind: str, to_broker: bool, frames: list[bytes]) -> TapEvent:
        session = self._session
        types = ("", "")
        if isinstance(session, ZmtpSession):
            types = (session.zmtp.peer_socket_type.decode("ascii", "replace"), session.zmtp.socket_type.decode())
        return TapEvent(
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
    if not any(frames[0] is opening.frames for opening in zmtp.reader.prefixes):
        return frames
    reader = FrameReader(len(frames[0]))
    reader.is_open = True
    messages: list[list[bytes]] = []
    reader.feed(frames[0] + b"\x00\x00")  # a last empty frame makes it a message
    reader.walk(messages)
    return [*messages[0][:-1], *frames[1:]]


@operation
async def tap(
    server: Server,
    send: SendEvent,
    *,
    listeners: tuple[str, ...] = (),
    peer: str = "",
    command: str = "",
    size_max: Size = 0,
) -> object:
    """All traffic of the given listeners (none given: all), optionally of one peer or one command. `size_max` truncates frames."""
    for name in listeners:
        found(server.listeners.get(name), "open listener", name)
    began_s = time.monotonic()

    def watch(event: TapEvent) -> None:
        if listeners and event.listener not in listeners:
            return
        if peer and not event.peer.startswith(peer) and event.identity != peer.encode():
            return
        if not command or (event.kind == MESSAGE and contains_command(event, command)):
            send({"t": round(time.monotonic() - began_s, 6), **event_view(event, size_max)})

    server.taps.watch(server.broker, watch)
    try:
        send({"kind": "watching", "t": 0.0})
        while True:
            await asyncio.sleep(SWEEP_S)
            server.taps.sweep(server.broker)
    finally:
        server.taps.unwatch(server.broker, watch)


def contains_command(event: TapEvent, word: str) -> bool:
    """Whether a message contains this command: as a frame of its own, as a string in a JSON frame, as an RQ command, or as a word of a text."""
    if wire_of(event.listener) == RISP:
        return any(item.name == word.upper() for item in items_of(event.frames[0])[0])
    wanted = word.encode()
    if wire_of(event.listener) == TEXT:
        return wanted.upper() in event.frames[0].upper().split()
    quoted = b'"%s"' % wanted
    return any(
        frame == wanted or frame == wanted.upper() or (frame[:1] == b"{" and quoted in frame) for frame in event.frames
    )


def event_view(event: TapEvent, size_max: int) -> dict[str, object]:
    """An event as JSON: bytes in hex."""
    view: dict[str, object] = {
        "kind": event.kind,
        "listener": event.listener,
        "connection": event.connection_no,
        "peer": event.peer,
        "to": "broker" if event.to_broker else "peer",
    }
    if event.identity:
        view["identity"] = event.identity.hex()
    if event.kind == MESSAGE:
        view["sizes"] = [len(frame) for frame in event.frames]
        view["frames"] = [(frame[:size_max] if size_max else frame).hex() for frame in event.frames]
    elif event.socket_types[0]:
        view["socket_types"] = list(event.socket_types)
    return view
