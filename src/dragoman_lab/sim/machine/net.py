"""The simulated network: real `Connection`s over transports that split, delay and lose data.

Bytes to the broker are split anywhere and arrive late, but in order. The broker's output is decoded at once, so that the checks know what
has left it; the peer gets it later, or never.
"""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from dragoman.dialects.description import RISP
from dragoman.dialects.registry import DIALECTS_BY_NAME, wire_of
from dragoman.errors import PeerError
from dragoman.runtime.connection import Connection
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from dragoman_lab.sim.machine.legacy import LegacyEnd
from dragoman_lab.sim.machine.loop import MS_NS
from dragoman_lab.sim.machine.risp import BareEnd, RispEnd

if TYPE_CHECKING:
    from dragoman_lab.sim.world import World

SHOWN_SIZE = 60  # bytes of a frame that a verbose run prints
STALL_HIGH = 100  # unread bytes of a peer before the broker's writing is paused


class WirePeer:
    """The peer at the other end of a wire. This one ignores everything."""

    name = ""
    is_rude = False  # it may break the protocol
    wire: Wire | None = None  # its present connection

    @property
    def open_wire(self) -> Wire:
        assert self.wire is not None, f"{self.name} is not connected"
        return self.wire

    def on_left(self, wire: Wire, frames: list[bytes]) -> None:
        """The broker has sent a message; the peer may never read it."""

    def on_message(self, wire: Wire, frames: list[bytes]) -> None:
        """The peer has received a message."""

    def on_lost(self, wire: Wire) -> None:
        if self.wire is wire:
            self.wire = None


class ZmtpEnd:
    """ZMTP on the peer's side."""

    def __init__(self, socket_type: bytes, identity: bytes) -> None:
        self._zmtp = ZmtpConnection(socket_type, identity)
        self.greeting, self.receive, self.take_outgoing = (
            self._zmtp.greeting, self._zmtp.receive, self._zmtp.take_outgoing
        )  # fmt: skip

    @property
    def is_ready(self) -> bool:
        return self._zmtp.is_ready

    def encode(self, frames: list[bytes]) -> bytes:
        return encode_message(frames)


# A protocol on the peer's side: bytes from and to the broker, messages from and to the peer.
End = ZmtpEnd | LegacyEnd | BareEnd


def version_of(world: World, listener: str, socket_type: bytes) -> int:
    """A peer's ZMTP version: a share of peers is old, and where a dialect takes it some of those use 1.0, which cannot name a REQ socket."""
    share = world.plan.legacy_share
    if not share or world.chance.random() >= share:
        return 3
    may_be_first = DIALECTS_BY_NAME[listener.partition(".")[0]].takes_zmtp1 and socket_type != b"REQ"
    return 1 if may_be_first and world.chance.random() < 0.5 else 2


class Wire:
    """One connection, from the peer's side."""

    def __init__(
        self,
        world: World,
        peer: WirePeer,
        listener: str,
        identity: bytes,
        socket_type: bytes = b"DEALER",
        *,
        end: End | None = None,
        version: int = 0,
    ) -> None:
        """`end`: None for that of the listener. `version` of ZMTP: 1, 2 or 3; 0: by the plan's share of old peers."""
        self.world, self.peer, self.listener = world, peer, listener
        self.identity, self.socket_type = identity, socket_type
        self.number = world.next_number()
        self.is_up = True
        self.is_stalled = False
        self.unread_size = 0
        self.end: End
        if end is not None:
            self.end = end
        elif wire_of(listener) == RISP:
            self.end = RispEnd()
        else:
            version = version or version_of(world, listener, socket_type)
            self.end = (ZmtpEnd if version == 3 else partial(LegacyEnd, version))(socket_type, identity)
        self._early: list[list[bytes]] = []
        self._closes_early = False
        self._coming: deque[bytes | None] = deque()  # on the way to the broker; None: the end
        self._arrived: deque[bytes | None] = deque()
        self._last_arrival_ns = 0
        self._last_received_ns = 0
        self._unread: list[list[bytes]] = []  # messages that a stalled peer has not read
        assert world.life is not None
        self.life = world.life
        self.transport = SimTransport(self)
        self.connection = Connection(self.life.broker, listener)
        self.life.wires[self.number] = self
        self.connection.connection_made(cast(asyncio.Transport, self.transport))
        self.send(self.end.greeting())

    # To the broker.

    def say(self, frames: list[bytes]) -> None:
        if self.world.verbose:
            self.world.say(f"{self.peer.name} ({self.number}) sends {shown(frames)}")
        if self.end.is_ready:
            self.send(self.end.encode(frames))
        else:
            self._early.append(frames)

    def send(self, data: bytes) -> None:
        if not self.is_up:
            return
        chance = self.world.chance
        while data:
            size = len(data) if chance.random() < 0.7 else chance.randint(1, len(data))
            self._put(data[:size])
            data = data[size:]

    def close(self) -> None:
        """Close in order: data sent before still arrives."""
        if self.is_up and self._early:
            self._closes_early = True
        elif self.is_up:
            self._put(None)
            self.is_up = False

    def cut(self) -> None:
        """Break the connection: data on the way is lost in both directions."""
        if self.is_up:
            self.is_up = False
            self._coming.clear()
            self._coming.append(None)
            self.world.timeline.after(self.delay_ns(), self._arrive)
            self.world.timeline.after(self.delay_ns(), lambda: self.peer.on_lost(self))

    def _put(self, piece: bytes | None) -> None:
        self._coming.append(piece)
        self._last_arrival_ns = max(self._last_arrival_ns, self.world.timeline.now_ns + self.delay_ns())
        self.world.timeline.at(self._last_arrival_ns, self._arrive)

    def delay_ns(self) -> int:
        chance = self.world.chance
        return chance.choice((1, 1, 1, 2, 5, chance.randint(1, 80))) * MS_NS

    def _arrive(self) -> None:
        if self._coming and self.life.loop.is_alive:
            self._arrived.append(self._coming.popleft())
            self.pump()

    def pump(self) -> None:
        while self._arrived and not self.transport.is_reading_paused and not self.transport.is_gone:
            if self.life.loop.is_sated:
                self.life.loop.call_soon(self._pump_more)
                return
            piece = self._arrived.popleft()
            if piece is None:
                self.life.loop.run(self.transport.lose)
            elif not self.transport.is_ending:
                self.life.loop.read_size += len(piece)
                self.life.loop.run(partial(self.connection.data_received, piece))

    def _pump_more(self) -> None:
        self.life.loop.read_size = 0
        self.pump()

    # From the broker.

    def on_written(self, data: bytes) -> None:
        try:
            messages = self.end.receive(data)
        except PeerError:
            assert self.peer.is_rude, "the broker breaks ZMTP"
            return
        out = self.end.take_outgoing()
        if out:
            self.send(out)
        if self.end.is_ready and self._early:
            early, self._early = self._early, []
            for frames in early:
                self.send(self.end.encode(frames))
            if self._closes_early:
                self.close()
        for frames in messages:
            if self.world.verbose:
                self.world.say(f"    {self.peer.name} ({self.number}) receives {shown(frames)}")
            self.peer.on_left(self, frames)
            if self.is_stalled:
                self._unread.append(frames)
            else:
                self._deliver(frames)

    def _deliver(self, frames: list[bytes]) -> None:
        self._last_received_ns = max(self._last_received_ns, self.world.timeline.now_ns + self.delay_ns())
        self.world.timeline.at(self._last_received_ns, lambda: self._receive(frames))

    def _receive(self, frames: list[bytes]) -> None:
        if self.is_up:
            self.peer.on_message(self, frames)

    def stall(self) -> None:
        """Read nothing for a while."""
        self.is_stalled = True

    def read_again(self) -> None:
        if self.is_stalled:
            self.is_stalled = False
            unread, self._unread = self._unread, []
            for frames in unread:
                self._deliver(frames)
            self.transport.drained()

    def broken_off(self) -> None:
        """The broker ended the connection, or died."""
        if self.is_up:
            self.is_up = False
            self.world.timeline.after(self.delay_ns(), lambda: self.peer.on_lost(self))


class StillWire(Wire):
    """A connection without splits and delays."""

    def send(self, data: bytes) -> None:
        if self.is_up and data:
            self._put(data)

    def delay_ns(self) -> int:
        return 0


def shown(frames: list[bytes]) -> str:
    return " | ".join(frame[:SHOWN_SIZE].decode("utf-8", "backslashreplace") for frame in frames)


class SimTransport:
    """The part of a transport that `Connection` uses."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self.is_reading_paused = False
        self.is_ending = False
        self.is_gone = False
        self._is_writing_paused = False

    def write(self, data: bytes) -> None:
        assert not self.is_ending, "nothing is written to a connection that ends"
        wire = self.wire
        assert wire.life.loop.is_alive, "a dead broker writes nothing"
        if wire.is_stalled:
            wire.unread_size += len(data)
            if wire.unread_size > STALL_HIGH and not self._is_writing_paused:
                self._is_writing_paused = True
                wire.connection.pause_writing()
        wire.on_written(data)

    def drained(self) -> None:
        self.wire.unread_size = 0
        if self._is_writing_paused and not self.is_ending and self.wire.life.loop.is_alive:
            self._is_writing_paused = False
            self.wire.connection.resume_writing()

    def get_write_buffer_size(self) -> int:
        return self.wire.unread_size

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Ignored: the simulator has its own, lower limit."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return (f"10.0.0.{self.wire.number % 250}", self.wire.number) if name == "peername" else default

    def is_closing(self) -> bool:
        return self.is_ending

    def pause_reading(self) -> None:
        self.is_reading_paused = True

    def resume_reading(self) -> None:
        self.is_reading_paused = False
        self.wire.life.loop.call_soon(self.wire.pump)

    def close(self) -> None:
        if not self.is_ending:
            self.is_ending = True
            self.wire.life.loop.call_soon(self.lose)

    abort = close

    def lose(self) -> None:
        """End the connection for the broker."""
        if not self.is_gone:
            self.is_gone = self.is_ending = True
            self.wire.life.wires.pop(self.wire.number, None)
            self.wire.connection.connection_lost(None)
            self.wire.broken_off()
