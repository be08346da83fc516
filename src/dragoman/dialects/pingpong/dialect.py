"""What all pingpong sessions of a broker share."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.pingpong.words import UNKNOWN
from dragoman.dialects.session import Hub
from dragoman.limits import ANSWERS_HELD_NS, LINES_MAX
from dragoman.model.peer import ANONYMOUS
from dragoman.model.units import SECOND_NS
from dragoman.model.words import PINGPONG

if TYPE_CHECKING:
    from dragoman.dialects.pingpong.client_session import PingpongClient

ASK_SIZE: Final = 256  # of an answer's objects, whatever it says


@final
class PingpongSettings:
    """The original's numbers as defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.queue: bytes = b"pingpong"
        self.form: int = UNKNOWN  # UNKNOWN: as the worker shows it
        self.worker_expire_ns: int = 3 * SECOND_NS
        self.send_exit: bool = False


@final
class Ask:
    """One order of a client, and what is to be said to it once its turn has come."""

    def __init__(self, number: int, form: bytes) -> None:
        self.number = number  # the message's; 0 for an order that was refused
        self.form = form  # how it was asked, as `Message.headers` tells it
        self.words: list[bytes] | None = None


@final
class LeftAsks:
    """The open orders of a client whose connection ended: the answers keep their order if it comes back soon."""

    def __init__(self, asks: deque[Ask], until_ns: int) -> None:
        self.asks = asks
        self.until_ns = until_ns


@final
class PingpongDialect(Dialect):
    """Shared by the sessions of both pingpong listeners."""

    def __init__(self, hub: Hub, settings: PingpongSettings) -> None:
        super().__init__(hub)
        self.settings = settings
        self.is_draining: bool = False
        self.early_size: int = 0  # bytes of answers that wait for an earlier one
        self.named: dict[
            bytes, PingpongClient
        ] = {}  # clients with an identity by address, the newest connection of each
        self.left: dict[bytes, LeftAsks] = {}  # by address, in the order in which they grow stale

    def listening(self) -> None:
        """What was asked before a restart is answered first when its client comes back, in the order it was asked."""
        for message in self.exchange.open_messages(PINGPONG):
            if not message.address or message.address[0] >= ANONYMOUS:
                continue
            left = self.left.get(message.address)
            if left is None:
                left = LeftAsks(deque(), self.exchange.now_ns + ANSWERS_HELD_NS)
                self.left[message.address] = left
            left.asks.append(Ask(message.number, message.headers))

    def leave(self, address: bytes, asks: deque[Ask]) -> None:
        """A client with a name went away and may come back for these."""
        self.forget(address)
        self.left[address] = LeftAsks(asks, self.exchange.now_ns + ANSWERS_HELD_NS)
        if len(self.left) > LINES_MAX:
            self.forget(next(iter(self.left)))

    def take_left(self, address: bytes) -> deque[Ask]:
        """What a client that came back is owed; empty for a new one."""
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
        """The operator ends the broker: where the setting allows it, workers are told to end as well."""
        self.is_draining = True
        if self.settings.send_exit:
            for session in list(self.sessions.values()):
                session.say_goodbye()


def size_of(ask: Ask) -> int:
    """Bytes that an answer takes while it waits for its turn; even an empty one takes some."""
    if ask.words is None:
        return 0
    size = ASK_SIZE
    for word in ask.words:
        size += len(word)
    return size
