"""A session: one connection in one dialect, between the runtime's socket and the core.

Output is of two kinds. *Held*: caused by a fact, sent once that fact is stored. *Free*: handshakes and heartbeats, sent immediately,
because a slow disk must not make peers drop us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from librt.strings import BytesWriter, write_i64_be

from dragoman import limits
from dragoman.dialects.news import NewsBuffer
from dragoman.errors import PeerError
from dragoman.model.exchange import Exchange
from dragoman.model.peer import Peer, address_of, lasting_id_of
from dragoman.wire.zmtp.commands import PROGRAM
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import LONG, MORE, write_frame, write_message


@final
class Outboxes:
    """Output state shared by all sessions of a broker: the core, and the lists of sessions with pending output.

    | point                                                        | free_out | held_out, held_parts  | session in     |
    |--------------------------------------------------------------|----------|-----------------------|----------------|
    | written (`touch`)                                            | waits    | wait                  | dirty          |
    | tick ends, all is stored (`memory`, `os`; `disk` if there is | sent     | sent                  | neither list   |
    |   nothing to sync): `send_all`                               |          |                       |                |
    | tick ends, a sync begins (`disk`): `send_free`, `take_batch` | sent     | in `Broker._batch`    | neither list   |
    | tick ends, an earlier sync runs (`disk`): `send_free`        | sent     | wait                  | holding        |
    | that sync ends: `Broker._on_synced` sends `_batch`, then commits again: one of the three rows above             |

    `os` holds output back only while a large block is being written, or while the journal fails. A session of `finished` is closed once it
    is in neither list and not in `_batch`.
    """

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.dirty: list[Session] = []  # with output to send at the end of this tick
        self.holding: list[Session] = []  # with output that waits for a commit
        self.finished: list[Session] = []  # to be closed once all their output is sent
        self.boot_no: int = 0
        self.connections: int = 0  # connections so far; used to number them
        self.stop_requested: bool = False
        self.message_size_max: int = 0
        self.legacy_listeners: set[str] = set()  # listeners that accept ZMTP 1.0
        self.deferred: list[Session] = []  # with work that is done in steps
        self.full: list[Session] = []  # with as much output as may wait for a commit: no new work until it is sent
        self.output_step_size: int = limits.OUTPUT_STEP_SIZE
        self.wall_ns: int = 0  # the wall clock, at most a tenth of a second old; 0: not set
        # Incomplete messages: their total bytes, sessions with many such bytes by connection, and the callback for too many.
        self.unfinished_size: int = 0
        self.unfinished_max: int = limits.NO_BOUND
        self.unfinished: dict[int, Session] = {}
        self.on_unfinished_over: Callable[[Session], None] = nothing
        self.traffic_size: int = 0  # bytes read and written so far: memory use is checked after so many more
        self.news = NewsBuffer()

    def send_all(self) -> None:
        """Send all output, one write per connection; everything decided so far is stored."""
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
        """Send the output that need not wait for the commit in progress."""
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
            if session.held_size() > self.output_step_size:
                session.stop_output()

    def take_batch(self) -> list[tuple[Session, bytes]]:
        """Take the output that the commit now beginning holds back, by session."""
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

    def release_full(self) -> None:
        """What waited for a commit has been sent: give new work to some of the sessions whose output it was; the others follow in the next turns."""
        sessions = self.full
        self.full = []
        left = limits.RELEASED_PER_TURN
        for session in sessions:
            if left == 0 or session.held_size() > 0:
                self.full.append(session)
            else:
                left -= 1
                session.release_output()

    def catch_up(self) -> None:
        """Run the next step of the first session in `deferred`."""
        session = self.deferred.pop(0)
        if session.catch_up():
            self.deferred.append(session)

    def held_size(self) -> int:
        """Bytes that wait for a commit to begin."""
        size = 0
        for session in self.holding:
            size += session.held_size()
        return size


def discard(data: bytes) -> None:
    """Drop bytes for a connection that has ended."""


def nothing(session: Session) -> None:
    """The default for `on_unfinished_over`: do nothing."""


class Session(Peer):
    """The common part of all dialects; each dialect implements `receive`."""

    def __init__(self, dialect: int, listener: str, outboxes: Outboxes) -> None:
        super().__init__(dialect, listener)
        self.outboxes = outboxes
        self.exchange = outboxes.exchange
        outboxes.connections += 1
        self.connection_no: int = outboxes.connections
        self.held_out = BytesWriter()
        self.held_parts: list[bytes] = []
        self.held_parts_size: int = 0
        self.free_out = BytesWriter()
        self.is_output_full: bool = False  # the limit of output that may wait for a commit is reached
        self.is_socket_full: bool = False  # the peer does not read
        self.is_dirty: bool = False
        self.is_unread: bool = False  # the runtime does not read from it at the moment: its silence does not count
        self.is_holding: bool = False
        self.is_finished: bool = False
        self.is_greeted: bool = False  # its first bytes, or its whole handshake, are valid for this protocol
        self.tap: Callable[[bool, list[bytes]], None] | None = None  # gets (is it ours, the frames or the bytes)
        self.sink: Callable[[bytes], object] = discard  # the socket's write, while connected
        self.received_size: int = 0  # bytes received
        self.received_mark: int = 0  # bytes received up to the last full second: shows who sends much
        self.received_before: int = 0  # and up to the one before
        self.unfinished_size: int = 0  # bytes of an incomplete message
        self.is_unfinished: bool = False  # enough of them to be watched
        self.is_cut_short: bool = False  # more must arrive; some protocols also store what may be repeated
        self.progress_ns: int = 0  # when that message last made progress
        self.progress_size: int = 0  # and its size then

    def start(self) -> None:
        """The connection is established: send the protocol's first bytes."""
        raise NotImplementedError

    def receive(self, data: bytes) -> None:
        """Process bytes from the peer; raises a PeerError when it violates the protocol."""
        raise NotImplementedError

    def piece_size(self) -> int:
        """The number of bytes to process at a time. Fewer for a worker with many queues, because its messages are matched against all of them."""
        return limits.READ_PIECE_SIZE // (1 + len(self.work.serves) // limits.QUEUES_PER_PIECE)

    def has_waiting(self) -> bool:
        """Whether received messages are left for the next turn, by `go_on`."""
        return False

    def go_on(self) -> None:
        """Process the messages that were left; raises a PeerError as `receive` does."""

    def ended(self) -> None:
        self.exchange.goodbye(self)

    def beat(self, now_ns: int) -> None:
        """Called at least ten times a second: our own heartbeats follow the broker's clock, `now_ns`. The peer's silence is measured in the core's time,
        `exchange.now_ns`, which stands still while a slow disk keeps us from reading; while `is_unread` is set, silence does not
        count."""

    def say_goodbye(self) -> None:
        """The broker stops: send the last message."""

    def lost(self, reason: int) -> None:
        """We are about to end the connection: messages leased to it go back to the queue."""
        self.exchange.lose(self, reason)

    def fall_behind(self) -> None:
        """Defer work that is too much for one callback: `catch_up` is called in the next turns."""
        if self not in self.outboxes.deferred:
            self.outboxes.deferred.append(self)

    def catch_up(self) -> bool:
        """Do a part of the deferred work; returns whether more is left."""
        return False

    def holds_work(self) -> bool:
        """Whether it carries workers. Such a connection is always read from: answers reduce the load."""
        return self.is_worker

    def set_socket_full(self, is_full: bool) -> None:
        """The peer stopped reading our output, or reads again."""
        self.is_socket_full = is_full
        if is_full or not self.is_output_full:
            self.set_blocked(is_full)

    def stop_output(self) -> None:
        """Give it no new work until the output waiting for a commit is sent: all at once it could be more than a reading peer can take."""
        if not self.is_output_full:
            self.is_output_full = True
            self.outboxes.full.append(self)
            self.set_blocked(True)

    def release_output(self) -> None:
        self.is_output_full = False
        if not self.is_socket_full:
            self.set_blocked(False)

    def set_blocked(self, is_blocked: bool) -> None:
        self.is_blocked = is_blocked
        if not is_blocked:
            self.exchange.unblock(self)

    def abandon(self, fault: PeerError) -> None:
        """We end the connection: the received part of an incomplete message is dropped."""

    def note_unfinished(self, size: int, is_another: bool, is_cut_short: bool) -> None:
        """Account for the incomplete message after a read. `is_another`: it is not the message that was incomplete before."""
        outboxes = self.outboxes
        self.is_cut_short = is_cut_short
        outboxes.unfinished_size += size - self.unfinished_size
        self.unfinished_size = size
        if size < limits.UNFINISHED_SIZE_MIN:
            if self.is_unfinished:
                self.is_unfinished = False
                del outboxes.unfinished[self.connection_no]
            return
        if not self.is_unfinished:
            self.is_unfinished = True
            is_another = True
            outboxes.unfinished[self.connection_no] = self
        if is_another or size - self.progress_size >= limits.UNFINISHED_STEP_SIZE:
            self.progress_ns = self.exchange.now_ns
            self.progress_size = size
        if outboxes.unfinished_size > outboxes.unfinished_max:
            outboxes.on_unfinished_over(self)

    def forget_spent(self) -> None:
        """Memory is short: drop what is stored of a complete message."""

    def missing_size(self) -> int:
        """Bytes of the incomplete message that were announced and have not arrived."""
        return 0

    def touch(self) -> None:
        """Have the session's output sent at the end of this tick."""
        if not self.is_dirty:
            self.is_dirty = True
            self.outboxes.dirty.append(self)

    def finish(self) -> None:
        """End the connection once all output so far is sent."""
        if not self.is_finished:
            self.is_finished = True
            self.outboxes.finished.append(self)
            self.touch()

    def hold_part(self, part: bytes) -> None:
        """Append a large body by reference, without copying."""
        self.held_parts_size += len(self.held_out) + len(part)
        self.held_parts.append(self.held_out.getvalue())
        self.held_parts.append(part)
        self.held_out = BytesWriter()
        if self.held_parts_size > self.outboxes.output_step_size:
            self.stop_output()

    def take_parts(self) -> list[bytes]:
        """The held output before the rest, large bodies one by one: joining megabytes would block the event loop."""
        parts = self.held_parts
        self.held_parts = []
        self.held_parts_size = 0
        free = self.take_free()
        return [free, *parts] if free else parts

    def held_size(self) -> int:
        """Bytes that wait for a commit to begin."""
        return len(self.held_out) + self.held_parts_size

    def take_held(self) -> bytes:
        """Take the output that the commit held back."""
        parts = self.held_parts
        data = b""
        size = len(self.held_out)
        if size > 0:
            data = self.held_out.getvalue()
            if size <= limits.OUTBOX_SIZE_KEPT:  # its buffer is reused in the next tick
                self.held_out.truncate(0)
            else:
                self.held_out = BytesWriter()
        if not parts:
            return data
        self.held_parts = []
        self.held_parts_size = 0
        parts.append(data)
        return b"".join(parts)

    def take_all(self) -> bytes:
        if len(self.free_out) == 0:
            return self.take_held()
        return self.take_free() + self.take_held()

    def take_more(self) -> bytes:
        """More output to send immediately after `take_all` or `take_free`, where it comes in parts."""
        return b""

    def take_free(self) -> bytes:
        if len(self.free_out) == 0:
            return b""
        out = self.free_out.getvalue()
        self.free_out = BytesWriter()
        return out


class ZmtpSession(Session):
    """A session over ZMTP; each dialect implements `opened` and `on_message`."""

    def __init__(self, dialect: int, listener: str, listener_no: int, outboxes: Outboxes, socket_type: bytes) -> None:
        super().__init__(dialect, listener, outboxes)
        self.listener_no = listener_no
        allows_v1 = listener in outboxes.legacy_listeners
        self.zmtp = ZmtpConnection(socket_type, b"", outboxes.message_size_max, allows_v1)
        self.is_open: bool = False
        self.had_enough: bool = False  # the last message was expensive: the following ones wait for the next turn
        self.waiting: list[list[bytes]] = []

    def start(self) -> None:
        self.free_out.write(self.zmtp.greeting())
        self.touch()

    def receive(self, data: bytes) -> None:
        zmtp = self.zmtp
        self.received_size += len(data)
        self.outboxes.traffic_size += len(data)
        messages: list[list[bytes]] = []
        try:
            messages = zmtp.receive(data)
        finally:
            size = zmtp.reader.unfinished_size()
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
            program = zmtp.peer_metadata.get(PROGRAM, b"")[: limits.ID_SIZE_MAX]
            self.lasting_id = lasting_id_of(program, self.identity, self.remote)
            self.address = address_of(self.listener_no, self.identity, self.outboxes.boot_no, self.connection_no)
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
        """Process the messages in order, up to an expensive one or MESSAGES_PER_TURN."""
        for at, frames in enumerate(messages):
            self.on_message(frames)
            if self.had_enough or at + 1 == limits.MESSAGES_PER_TURN:
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

    def missing_size(self) -> int:
        return self.zmtp.reader.missing_size()

    def piece_size(self) -> int:
        """At least the rest of an incomplete frame, which is only stored, however large it is."""
        return max(self.zmtp.reader.missing_size(), super().piece_size())

    def opened(self) -> None:
        """The handshake is done."""

    def on_message(self, frames: list[bytes]) -> None:
        raise NotImplementedError

    def say(self, frames: list[bytes]) -> None:
        """Send a message once the facts so far are stored."""
        if self.is_connected:
            if len(frames[-1]) > limits.INLINE_BODY_SIZE_MAX and not self.zmtp.is_v1:
                for frame in frames[:-1]:
                    write_frame(self.held_out, frame, True)
                self.hold_frame(frames[-1], False)
            else:
                write_message(self.held_out, frames, self.zmtp.is_v1)
                if len(self.held_out) > self.outboxes.output_step_size:
                    self.stop_output()
            self.touch()

    def hold_frame(self, frame: bytes, has_more: bool) -> None:
        """Append a large frame by reference, without copying."""
        self.held_out.append(LONG | MORE if has_more else LONG)
        write_i64_be(self.held_out, len(frame))
        self.hold_part(frame)

    def say_now(self, frames: list[bytes]) -> None:
        """Send a message that need not wait for a commit."""
        if self.is_connected:
            write_message(self.free_out, frames, self.zmtp.is_v1)
            self.touch()
