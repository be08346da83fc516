"""State shared by all rq sessions of a broker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.rq.description import LINK_NO
from dragoman.dialects.rq.settings import RqSettings
from dragoman.dialects.session import Outboxes
from dragoman.model.enums import CONNECTION_ENDED, RQ
from dragoman.model.peer import ANONYMOUS
from dragoman.wire.risp.commands import U16
from dragoman.wire.risp.writer import FULL

if TYPE_CHECKING:
    from dragoman.dialects.rq.link import RqLink
    from dragoman.dialects.rq.sessions import RqSession

STOPPING_TEXT: Final = "this broker stops"


@final
class RqDialect(Dialect):
    """Shared by the sessions of all rq listeners."""

    def __init__(self, outboxes: Outboxes, settings: RqSettings) -> None:
        super().__init__(outboxes)
        self.settings = settings
        self.nodes: dict[int, RqSession] = {}  # by connection number, like `sessions`
        self.links: dict[int, RqLink] = {}
        self.queues: list[bytes] = [b""]  # by id; ids start at 1 and are never reused for another queue
        self.queue_ids: dict[bytes, int] = {}
        self.is_relaying: bool = False  # the current publication came over a link
        self.is_draining: bool = False

    def listening(self) -> None:
        """Cancel what came over links before a restart: the controllers there give it to other consumers now."""
        for m in self.exchange.open_messages(RQ):
            if m.address and m.address[0] == LINK_NO | ANONYMOUS:
                self.exchange.cancel(m, CONNECTION_ENDED)

    def id_of(self, queue: bytes) -> int:
        """A queue's id, the same for all connections; 0 when no ids are left for further queues."""
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
        """Send CLOSING: no new requests from now on; pending ones may still be answered."""
        self.is_draining = True
        for node in self.nodes.values():
            node.say_closing()
        for link in list(self.links.values()):
            link.wind_down(STOPPING_TEXT)  # its connection ends once workers have finished its requests

    def words_when_full(self) -> bytes:
        return b"" if self.settings.librq_safe else FULL
