"""What all rq sessions of a broker share."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

from dragoman.dialects.contract import Dialect
from dragoman.dialects.session import Hub
from dragoman.model.units import SECOND_NS
from dragoman.wire.risp.writer import FULL

if TYPE_CHECKING:
    from dragoman.dialects.rq.link import RqLink
    from dragoman.dialects.rq.session import RqSession


@final
class RqSettings:
    """The original's numbers as defaults; docs/reference/config.md explains each."""

    def __init__(self) -> None:
        self.ping_ns: int = 15 * SECOND_NS
        self.pong_ns: int = 15 * SECOND_NS
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
        self.is_relaying: bool = False  # what is published just now came over a link
        self.is_draining: bool = False

    def draining(self) -> None:
        """CLOSING: nothing new is sent from now on; what is held may still be answered."""
        self.is_draining = True
        for node in self.nodes.values():
            node.say_closing()
        for link in self.links.values():
            link.say_closing()

    def words_when_full(self) -> bytes:
        return b"" if self.settings.librq_safe else FULL
