"""A session: one connection as a dialect speaks it, between the runtime's socket and the core's verbs.

Bytes leave in two ways. *Held*: caused by a fact, sent once that fact is kept. *Free*: handshakes and signs of life, sent at
once, because a slow disk must not make peers drop us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from librt.strings import BytesWriter

from dragoman.dialects.news import Newsstand
from dragoman.errors import PeerError
from dragoman.limits import (
    ID_SIZE_MAX,
    NO_BOUND,
    OUTBOX_SIZE_KEPT,
    QUEUES_PER_PIECE,
    READ_PIECE_SIZE,
    UNFINISHED_SIZE_MIN,
    UNFINISHED_STEP_SIZE,
)
from dragoman.model.exchange import Exchange
from dragoman.model.peer import ANONYMOUS, Peer, lasting_id_of
from dragoman.wire.zmtp.commands import PROGRAM
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import write_message


@final
class Hub:
    """What all sessions of a broker share: the core, and the list of those with something to send."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.dirty: list[Session] = []  # with something to send at the end of this tick
        self.holding: list[Session] = []  # with something that waits for a commit
        self.finished: list[Session] = []  # to be closed once everything said to them is out
        self.boot_no: int = 0
        self.connections: int = 0  # connections so far: numbers them
        self.stop_requested: bool = False
        self.message_size_max: int = 0
        self.legacy_listeners: set[str] = set()  # where ZMTP 1.0 is taken
        self.wall_ns: int = 0  # the wall clock, a tenth of a second old at most; 0: nobody keeps it
        # Unfinished messages: their bytes in all, those worth watching by connection, and what happens when they are too many.
        self.unfinished_size: int = 0
        self.unfinished_max: int = NO_BOUND
        self.unfinished: dict[int, Session] = {}
        self.on_unfinished_over: Callable[[], None] = nothing
        self.traffic_size: int = (
            0  # bytes read from sockets and given to them so far: memory is looked at after so many
        )
        self.news = Newsstand()

    def send_all(self) -> None:
        """Everything decided so far is kept: send all there is, one write per connection."""
        sessions = self.dirty if not self.holding else self.holding + self.dirty
        self.dirty = []
        self.holding = []
        for session in sessions:
            session.is_dirty = False
            session.is_holding = False
            if session.held_parts:
                for part in session.take_parts():
                    self.traffic_size += len(part)
                    session.sink(part)
            data = session.take_all()
            while data:
                self.traffic_size += len(data)
                session.sink(data)
                data = session.take_more()

    def send_free(self) -> None:
        """A commit is under way: send what need not wait for it."""
        sessions = self.dirty
        self.dirty = []
        for session in sessions:
            session.is_dirty = False
            data = session.take_free()
            while data:
                self.traffic_size += len(data)
                session.sink(data)
                data = session.take_more()
            if not session.is_holding:
                session.is_holding = True
                self.holding.append(session)

    def take_batch(self) -> list[tuple[Session, bytes]]:
        """A commit of everything so far begins: what it holds back, by session."""
        batch: list[tuple[Session, bytes]] = []
        for session in self.holding:
            session.is_holding = False
            if session.held_parts:
                for part in session.take_parts():
                    batch.append((session, part))
            data = session.take_held()
            if data:
                batch.append((session, data))
        self.holding = []
        return batch

    def held_size(self) -> int:
        """Bytes that wait for a commit to begin."""
        size = 0
        for session in self.holding:
            size += session.held_size()
        return size


def discard(data: bytes) -> None:
    """Where bytes for a connection that has ended go."""


def nothing() -> None:
    """What happens where nobody minds."""


class Session(Peer):
    """The part every dialect shares; `receive` is a dialect's own."""

    def __init__(self, dialect: int, listener: str, hub: Hub) -> None:
        super().__init__(dialect, listener)
        self.hub = hub
        self.exchange = hub.exchange
        hub.connections += 1
        self.connection_no: int = hub.connections
        self.held_out = BytesWriter()
        self.held_parts: list[bytes] = []
        self.free_out = BytesWriter()
        self.is_dirty: bool = False
        self.is_unread: bool = False  # the runtime does not read from it at the moment: its silence says nothing
        self.is_holding: bool = False
        self.is_finished: bool = False
        self.is_greeted: bool = False  # its first bytes, or its whole handshake, are those of this protocol
        self.tap: Callable[[bool, list[bytes]], None] | None = None  # hears (is it ours, the frames or the bytes)
        self.sink: Callable[[bytes], object] = discard  # the socket's write, while there is one
        self.received_size: int = 0  # bytes that came over it
        self.received_mark: int = (
            0  # as many as at the last full second, and at the one before: the difference tells who sends much
        )
        self.received_before: int = 0
        self.unfinished_size: int = 0  # bytes of a message whose rest has not come
        self.is_unfinished: bool = False  # enough of them to be watched
        self.is_cut_short: bool = False  # and more must come; some protocols keep what may be referred to again
        self.progress_ns: int = 0  # when that message last made progress
        self.progress_size: int = 0  # and how much of it there was then

    def start(self) -> None:
        """The connection is there: say what the protocol says first."""
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """Take bytes from the peer; raises a PeerError when it broke its protocol."""
        raise NotImplementedError

    def piece_size(self) -> int:
        """Bytes to take at a time. What a worker says is matched against all queues that it serves."""
        return READ_PIECE_SIZE // (1 + len(self.serves) // QUEUES_PER_PIECE)

    def has_waiting(self) -> bool:
        """Whether something that came is left for the next turn, by `go_on`."""
        return False

    def go_on(self) -> None:
        """Take what was left; raises a PeerError as `receive` does."""

    def ended(self) -> None:
        """The connection is gone."""
        self.exchange.goodbye(self)

    def beat(self, now_ns: int) -> None:
        """Ten times a second: signs of life that are due go by the clock, `now_ns`. The peer's silence goes by the core's time,
        `exchange.now_ns`, which stands still while a slow disk keeps us from hearing anybody; while `is_unread` is set it says
        nothing."""

    def say_goodbye(self) -> None:
        """The broker stops."""

    def lost(self, reason: int) -> None:
        """The connection is about to end by our doing: what is held through it goes back to the line."""
        self.exchange.lose(self, reason)

    def holds_work(self) -> bool:
        """Whether workers are reached through it. Such a connection is always read from: answers drain us."""
        return self.is_worker

    def set_blocked(self, is_blocked: bool) -> None:
        """The peer stopped reading what we send, or reads again."""
        self.is_blocked = is_blocked
        if not is_blocked:
            self.exchange.unblock(self)

    def abandon(self, fault: PeerError) -> None:
        """The connection ends by our doing: what came of an unfinished message is dropped at once."""

    def note_unfinished(self, size: int, is_another: bool, is_cut_short: bool) -> None:
        """Keep account of the message that is cut short after a read. `is_another`: not the one that was cut short before."""
        hub = self.hub
        self.is_cut_short = is_cut_short
        hub.unfinished_size += size - self.unfinished_size
        self.unfinished_size = size
        if size < UNFINISHED_SIZE_MIN:
            if self.is_unfinished:
                self.is_unfinished = False
                del hub.unfinished[self.connection_no]
            return
        if not self.is_unfinished:
            self.is_unfinished = True
            is_another = True
            hub.unfinished[self.connection_no] = self
        if is_another or size - self.progress_size >= UNFINISHED_STEP_SIZE:
            self.progress_ns = self.exchange.now_ns
            self.progress_size = size
        if hub.unfinished_size > hub.unfinished_max:
            hub.on_unfinished_over()

    def touch(self) -> None:
        """There is something to send at the end of this tick."""
        if not self.is_dirty:
            self.is_dirty = True
            self.hub.dirty.append(self)

    def finish(self) -> None:
        """End the connection once everything said so far is out."""
        if not self.is_finished:
            self.is_finished = True
            self.hub.finished.append(self)
            self.touch()

    def hold_part(self, part: bytes) -> None:
        """A large body is passed on as it is, not copied."""
        self.held_parts.append(self.held_out.getvalue())
        self.held_parts.append(part)
        self.held_out = BytesWriter()

    def take_parts(self) -> list[bytes]:
        """What goes out before the rest of what is held, large bodies one by one: putting megabytes together would hold the loop."""
        parts = self.held_parts
        self.held_parts = []
        free = self.take_free()
        return [free, *parts] if free else parts

    def held_size(self) -> int:
        size = len(self.held_out)
        for part in self.held_parts:
            size += len(part)
        return size

    def take_held(self) -> bytes:
        """What the commit held back."""
        parts = self.held_parts
        data = b""
        size = len(self.held_out)
        if size > 0:
            data = self.held_out.getvalue()
            if size <= OUTBOX_SIZE_KEPT:  # its room serves the next tick
                self.held_out.truncate(0)
            else:
                self.held_out = BytesWriter()
        if not parts:
            return data
        self.held_parts = []
        parts.append(data)
        return b"".join(parts)

    def take_all(self) -> bytes:
        if len(self.free_out) == 0:
            return self.take_held()
        return self.take_free() + self.take_held()

    def take_more(self) -> bytes:
        """What is left to be sent at once after `take_all` or `take_free`, where that comes in parts."""
        return b""

    def take_free(self) -> bytes:
        if len(self.free_out) == 0:
            return b""
        out = self.free_out.getvalue()
        self.free_out = BytesWriter()
        return out


class ZmtpSession(Session):
    """A session over ZMTP; `opened` and `on_message` are a dialect's own."""

    def __init__(self, dialect: int, listener: str, listener_no: int, hub: Hub, socket_type: bytes) -> None:
        super().__init__(dialect, listener, hub)
        self.listener_no = listener_no
        self.zmtp = ZmtpConnection(socket_type, True, b"", hub.message_size_max, None, listener in hub.legacy_listeners)
        self.is_open: bool = False
        self.had_enough: bool = False  # the last message took much: what came behind it has the next turn
        self.waiting: list[list[bytes]] = []

    def start(self) -> None:
        self.free_out.write(self.zmtp.greeting())
        self.touch()

    def receive(self, data: bytes) -> None:
        zmtp = self.zmtp
        self.received_size += len(data)
        self.hub.traffic_size += len(data)
        messages: list[list[bytes]] = []
        try:
            messages = zmtp.receive(data)
        finally:
            size = zmtp.unfinished_size()
            if size != self.unfinished_size:
                self.note_unfinished(size, len(messages) > 0, True)
            out = zmtp.take_outgoing()
            if out:
                self.free_out.write(out)
                self.touch()
        self.last_sign_ns = self.exchange.now_ns
        if not self.is_open and zmtp.is_ready:
            self.is_open = True
            self.is_greeted = True
            self.identity = zmtp.peer_identity
            program = zmtp.peer_metadata.get(PROGRAM, b"")[:ID_SIZE_MAX]
            self.lasting_id = lasting_id_of(program, self.identity, self.remote)
            self.address = address_of(self.listener_no, self.identity, self.hub.boot_no, self.connection_no)
            self.opened()
            self.exchange.hello(self)
        tap = self.tap
        if tap is not None:
            for frames in messages:
                tap(False, frames)
        if self.waiting:
            self.waiting.extend(messages)
        else:
            self.take(messages)
        if zmtp.fault is not None and not self.waiting:
            raise zmtp.fault

    def take(self, messages: list[list[bytes]]) -> None:
        """One after the other, up to one that took much."""
        for at, frames in enumerate(messages):
            self.on_message(frames)
            if self.had_enough:
                self.had_enough = False
                self.waiting = messages[at + 1 :]
                return

    def has_waiting(self) -> bool:
        return len(self.waiting) > 0

    def go_on(self) -> None:
        messages = self.waiting
        self.waiting = []
        self.take(messages)
        if self.zmtp.fault is not None and not self.waiting:
            raise self.zmtp.fault

    def abandon(self, fault: PeerError) -> None:
        self.zmtp.abandon(fault)
        self.note_unfinished(0, True, False)

    def piece_size(self) -> int:
        """The rest of a frame under way costs no more than being kept, however much it is."""
        return max(self.zmtp.missing_size(), READ_PIECE_SIZE // (1 + len(self.serves) // QUEUES_PER_PIECE))

    def opened(self) -> None:
        """The handshake is done."""

    def on_message(self, frames: list[bytes]) -> None:
        raise NotImplementedError

    def say(self, frames: list[bytes]) -> None:
        """Send a message once the facts so far are kept."""
        if self.is_connected:
            write_message(self.held_out, frames, self.zmtp.is_v1)
            self.touch()

    def say_now(self, frames: list[bytes]) -> None:
        """Send a message that no fact caused."""
        if self.is_connected:
            write_message(self.free_out, frames, self.zmtp.is_v1)
            self.touch()


def address_of(listener_no: int, identity: bytes, boot_no: int, connection_no: int) -> bytes:
    """Where answers find a peer: its identity at its listener, or, for an anonymous one, just this connection."""
    if not identity:
        # A listener number of its own: a peer may claim any identity, and must not reach an anonymous one's answers by it.
        return b"%c%d.%d" % (listener_no | ANONYMOUS, boot_no, connection_no)
    return b"%c%s" % (listener_no, identity[:254])
