"""State shared by all pingpong sessions of a broker."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.session import Outboxes
from dragoman.limits import ANSWERS_HELD_NS, LINES_MAX
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS
from dragoman.model.words import PINGPONG

if TYPE_CHECKING:
    from dragoman.dialects.pingpong.client_session import PingpongClient

ASK_SIZE: Final = 256  # counted for an answer's objects, whatever its bytes


@final
class Ask:
    """One order of a client, and its answer, which is sent once all earlier orders are answered."""

    def __init__(self, number: int, form: bytes) -> None:
        self.number = number  # the message's; 0 for a refused order
        self.form = form  # the format of the order, as in `Message.headers`
        self.words: list[bytes] | None = None


@final
class LeftAsks:
    """The open orders of a client whose connection ended: the answers keep their order if it reconnects soon."""

    def __init__(self, asks: deque[Ask], until_ns: int) -> None:
        self.asks = asks
        self.until_ns = until_ns


@final
class PingpongDialect(Dialect):
    """Shared by the sessions of both pingpong listeners."""

    def __init__(self, outboxes: Outboxes, settings: PingpongSettings) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.is_draining: bool = False
        self.formed: Message | None = None  # the message last checked for workers of the json form, and the result
        self.formed_as: int = 0
        self.early_size: int = 0  # bytes of answers that wait for an earlier one
        self.named: dict[
            bytes, PingpongClient
        ] = {}  # clients with an identity by address, the newest connection of each
        self.left: dict[bytes, LeftAsks] = {}  # by address, in the order of their expiry

    def listening(self) -> None:
        """Load the orders from before a restart: they are answered first, in order, when their client reconnects."""
        for message in self.exchange.open_messages(PINGPONG):
            if not message.address or message.address[0] >= ANONYMOUS:
                continue
            left = self.left.get(message.address)
            if left is None:
                left = LeftAsks(deque(), self.exchange.now_ns + ANSWERS_HELD_NS)
                self.left[message.address] = left
            left.asks.append(Ask(message.number, message.headers))

    def leave(self, address: bytes, asks: deque[Ask]) -> None:
        """Store the open orders of a client with an identity, which may reconnect."""
        self.forget(address)
        self.left[address] = LeftAsks(asks, self.exchange.now_ns + ANSWERS_HELD_NS)
        if len(self.left) > LINES_MAX:
            self.forget(next(iter(self.left)))

    def take_left(self, address: bytes) -> deque[Ask]:
        """Remove and return the open orders of a client that reconnected; empty for a new client."""
        left = self.left.pop(address, None)
        return left.asks if left is not None else deque()

    def forget(self, address: bytes) -> None:
        left = self.left.pop(address, None)
        if left is not None:
            for ask in left.asks:
                self.early_size -= size_of(ask)

    def sweep(self, now_ns: int) -> None:
        for session in list(self.sessions.values()):
            session.beat(now_ns)
        while self.left:
            address = next(iter(self.left))
            if self.left[address].until_ns > self.exchange.now_ns:
                break
            self.forget(address)

    def draining(self) -> None:
        """The broker drains: if the setting allows it, workers are told to exit."""
        self.is_draining = True
        if self.settings.send_exit:
            for session in list(self.sessions.values()):
                session.say_goodbye()


def size_of(ask: Ask) -> int:
    """Bytes that a waiting answer takes in memory; even an empty one takes some."""
    if ask.words is None:
        return 0
    size = ASK_SIZE
    for word in ask.words:
        size += len(word)
    return size
