"""Sessions of dialects that are not compiled with the broker: theirs is a `SessionHandler`, a class in plain Python.

Interpreted code cannot subclass the compiled `Session`, and letting it would slow down every other dialect. `PlainSession` is compiled, and
calls the handler of its connection. A dialect inside this package subclasses `Session` or `ZmtpSession` instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import final

from mypy_extensions import mypyc_attr

from dragoman.dialects.contract import Dialect
from dragoman.dialects.session import Outboxes, Session
from dragoman.errors import MessageTooLarge, PeerError
from dragoman.limits import PLAIN_UNFINISHED_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import address_of
from dragoman.wire import first_bytes


@final
class PlainDialect(Dialect):
    """Shared by the sessions of one such dialect; `settings` is its settings object, if it has one."""

    def __init__(self, outboxes: Outboxes, settings: object = None) -> None:
        super().__init__(outboxes)
        self.settings = settings


@mypyc_attr(allow_interpreted_subclasses=True)
class SessionHandler:
    """One connection in a dialect. The core calls these methods as `Peer` describes; those that a dialect does not use may be left out."""

    def __init__(self, session: PlainSession) -> None:
        self.session = session
        # The most bytes of an unfinished message: `receive` gets all of it with each piece, so its cost grows with the square.
        self.unfinished_max: int = PLAIN_UNFINISHED_SIZE_MAX

    def start(self) -> None:
        """The connection is established."""

    def receive(self, data: bytes) -> bytes:
        """Process bytes from the peer; return those that are not a whole message yet. Raises a PeerError."""
        raise NotImplementedError

    def beat(self, now_ns: int) -> None:
        """Called ten times a second."""

    def say_goodbye(self) -> None:
        """The broker stops."""

    def deliver(self, message: Message) -> None:
        raise NotImplementedError

    def withdraw(self, message: Message, reason: int) -> None:
        """Ignored: the worker's answer will be late."""

    def kept(self, message: Message) -> None:
        """Ignored."""

    def handed_over(self, message: Message) -> None:
        """Ignored."""

    def answered(self, message: Message, value: bytes) -> None:
        raise NotImplementedError

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        raise NotImplementedError

    def published(self, topic: bytes, body: bytes) -> None:
        """Ignored."""


@final
class PlainSession(Session):
    def __init__(
        self,
        dialect_no: int,
        listener: str,
        listener_no: int,
        dialect: PlainDialect,
        new_handler: Callable[[PlainSession], SessionHandler],
    ) -> None:
        super().__init__(dialect_no, listener, dialect.outboxes)
        self.listener_no = listener_no
        self.dialect_state = dialect
        self.rest: bytes = b""  # received, not a whole message yet
        self.handler = new_handler(self)

    def start(self) -> None:
        self.address = address_of(self.listener_no, b"", self.outboxes.boot_no, self.connection_no)
        self.last_sign_ns = self.exchange.now_ns
        self.dialect_state.sessions[self.connection_no] = self
        self.exchange.hello(self)
        self.handler.start()

    def receive(self, data: bytes) -> None:
        self.last_sign_ns = self.exchange.now_ns
        self.received_size += len(data)
        self.outboxes.traffic_size += len(data)
        if self.tap is not None:
            self.tap(False, [data])
        data = self.rest + data
        if not self.is_greeted:
            kind = first_bytes.judge(data)
            first_bytes.refuse(kind)
            if kind == first_bytes.UNDECIDED:
                self.rest = data
                return
            self.is_greeted = True
        rest = self.handler.receive(data)
        is_another = len(rest) < len(data)
        self.rest = rest
        size_max = min(self.handler.unfinished_max, self.outboxes.message_size_max)
        if len(rest) > size_max:
            raise MessageTooLarge(len(rest), size_max)
        if len(rest) != self.unfinished_size:
            self.note_unfinished(len(rest), is_another, len(rest) > 0)

    def say(self, data: bytes) -> None:
        """Send bytes once the facts so far are stored."""
        if self.is_connected:
            self.held_out.write(data)
            if len(self.held_out) > self.outboxes.output_step_size:
                self.stop_output()
            self.touch()

    def say_now(self, data: bytes) -> None:
        """Send bytes that do not depend on a fact."""
        if self.is_connected:
            self.free_out.write(data)
            self.touch()

    def ended(self) -> None:
        self.is_connected = False
        self.dialect_state.sessions.pop(self.connection_no, None)
        self.exchange.goodbye(self)

    def abandon(self, fault: PeerError) -> None:
        self.rest = b""
        self.note_unfinished(0, True, False)

    def beat(self, now_ns: int) -> None:
        self.handler.beat(now_ns)

    def say_goodbye(self) -> None:
        self.handler.say_goodbye()

    def deliver(self, message: Message) -> None:
        self.handler.deliver(message)

    def withdraw(self, message: Message, reason: int) -> None:
        self.handler.withdraw(message, reason)

    def kept(self, message: Message) -> None:
        self.handler.kept(message)

    def handed_over(self, message: Message) -> None:
        self.handler.handed_over(message)

    def answered(self, message: Message, value: bytes) -> None:
        self.handler.answered(message, value)

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        self.handler.failed_for_good(message, outcome, reason, value)

    def published(self, topic: bytes, body: bytes) -> None:
        self.handler.published(topic, body)
