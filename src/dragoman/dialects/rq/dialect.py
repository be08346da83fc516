"""What all rq sessions of a broker share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.session import Hub
from dragoman.model.peer import ANONYMOUS
from dragoman.model.units import SECOND_NS
from dragoman.model.words import CONNECTION_ENDED, RQ
from dragoman.wire.risp.words import U16
from dragoman.wire.risp.writer import FULL

if TYPE_CHECKING:
    from dragoman.dialects.rq.link import RqLink
    from dragoman.dialects.rq.session import RqSession

# Stands for a listener in the addresses of our own connections to other controllers: kept for ever, as the numbers of listeners are.
RQ_LINK_NO: Final = 16


@final
class RqSettings:
    """The original's numbers as defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.ping_ns: int = 15 * SECOND_NS
        self.pong_ns: int = 15 * SECOND_NS
        self.greeting_ns: int = 10 * SECOND_NS
        self.retries: int = 3
        self.consumer_messages_max: int = 10_000
        self.librq_safe: bool = False


@final
class RqDialect(Dialect):
    """Shared by the sessions of all rq listeners."""

    def __init__(self, hub: Hub, settings: RqSettings) -> None:
        super().__init__(hub)
        self.settings = settings
        self.nodes: dict[int, RqSession] = {}  # by connection number, as `sessions`
        self.links: dict[int, RqLink] = {}
        self.queues: list[bytes] = [b""]  # by id; ids start at 1 and are never given to another queue
        self.queue_ids: dict[bytes, int] = {}
        self.is_relaying: bool = False  # what is published just now came over a link
        self.is_draining: bool = False

    def listening(self) -> None:
        """What came over links before a restart: the controllers at their other ends give it to others now."""
        for m in self.exchange.open_messages(RQ):
            if m.address and m.address[0] == RQ_LINK_NO | ANONYMOUS:
                self.exchange.cancel(m, CONNECTION_ENDED)

    def id_of(self, queue: bytes) -> int:
        """A queue's id, the same for all connections; 0 when there are none left for further queues."""
        known = self.queue_ids.get(queue)
        if known is not None:
            return known
        queue_id = len(self.queues)
        if queue_id > U16:
            return 0
        self.queues.append(queue)
        self.queue_ids[queue] = queue_id
        return queue_id

    def draining(self) -> None:
        """CLOSING: nothing new is sent from now on; what is held may still be answered."""
        self.is_draining = True
        for node in self.nodes.values():
            node.say_closing()
        for link in list(self.links.values()):
            link.drain()

    def words_when_full(self) -> bytes:
        return b"" if self.settings.librq_safe else FULL
