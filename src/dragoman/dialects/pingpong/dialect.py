"""State shared by all pingpong sessions of a broker."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.pingpong.settings import PingpongSettings
from dragoman.dialects.session import Outboxes
from dragoman.limits import ANSWERS_HELD_NS, LINES_MAX
from dragoman.model.enums import PINGPONG
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS

if TYPE_CHECKING:
    from dragoman.dialects.pingpong.sessions import PingpongClient

ORDER_SIZE: Final = 256  # counted for an answer's objects, whatever its bytes


@final
class Order:
    """One order of a client, and its answer, which is sent once all earlier orders are answered."""

    def __init__(self, number: int, form: bytes) -> None:
        self.number = number  # the message's; 0 for a refused order
        self.form = form  # the format of the order, as in `Message.headers`
        self.answer: list[bytes] | None = None


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
        # Clients with an identity by address, the newest connection of each.
        self.clients: dict[bytes, PingpongClient] = {}
        # The open orders of such clients whose connection ended, and until when: the answers keep their order if the client reconnects
        # soon. By address, in the order of their expiry.
        self.departed: dict[bytes, tuple[deque[Order], int]] = {}

    def listening(self) -> None:
        """Load the orders from before a restart: they are answered first, in order, when their client reconnects."""
        for message in self.exchange.open_messages(PINGPONG):
            if not message.address or message.address[0] >= ANONYMOUS:
                continue
            if message.address not in self.departed:
                self.departed[message.address] = (deque(), self.exchange.now_ns + ANSWERS_HELD_NS)
            self.departed[message.address][0].append(Order(message.number, message.headers))

    def store_departed(self, address: bytes, orders: deque[Order]) -> None:
        """Store the open orders of a client with an identity, which may reconnect."""
        self.forget(address)
        self.departed[address] = (orders, self.exchange.now_ns + ANSWERS_HELD_NS)
        if len(self.departed) > LINES_MAX:
            self.forget(next(iter(self.departed)))

    def take_departed(self, address: bytes) -> deque[Order]:
        """Remove and return the open orders of a client that reconnected; empty for a new client."""
        departed = self.departed.pop(address, None)
        return departed[0] if departed is not None else deque()

    def forget(self, address: bytes) -> None:
        for order in self.take_departed(address):
            self.early_size -= size_of(order)

    def sweep(self, now_ns: int) -> None:
        super().sweep(now_ns)
        while self.departed:
            address = next(iter(self.departed))
            if self.departed[address][1] > self.exchange.now_ns:
                break
            self.forget(address)

    def draining(self) -> None:
        """The broker drains: if the setting allows it, workers are sent EXIT."""
        self.is_draining = True
        if self.settings.send_exit:
            self.closing()


def size_of(order: Order) -> int:
    """Bytes that a waiting answer takes in memory; even an empty one takes some."""
    if order.answer is None:
        return 0
    size = ORDER_SIZE
    for frame in order.answer:
        size += len(frame)
    return size
