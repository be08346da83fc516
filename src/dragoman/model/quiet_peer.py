"""A peer without a connection: discards what is sent to it and records deliveries.

For code that drives the core directly. It is in this package because uncompiled code cannot subclass a compiled class.
"""

from __future__ import annotations

from typing import final

from dragoman.model.message import Message
from dragoman.model.peer import Peer


@final
class QuietPeer(Peer):
    """A peer that records deliveries in `given`: (peer, message, attempt), shared by all peers of a broker; its owner empties it."""

    def __init__(self, dialect: int, listener: str, given: list[tuple[QuietPeer, Message, int]]) -> None:
        super().__init__(dialect, listener)
        self.given = given
        self.owner: object = None  # the object that it represents, for the caller's use

    def deliver(self, message: Message) -> None:
        self.given.append((self, message, message.attempt))

    def withdraw(self, message: Message, reason: int) -> None:
        pass

    def accepts(self, message: Message) -> bool:
        return True

    def kept(self, message: Message) -> None:
        pass

    def handed_over(self, message: Message) -> None:
        pass

    def answered(self, message: Message, value: bytes) -> None:
        pass

    def failed_for_good(self, message: Message, outcome: int, reason: int, value: bytes) -> None:
        pass

    def published(self, topic: bytes, body: bytes) -> None:
        pass
