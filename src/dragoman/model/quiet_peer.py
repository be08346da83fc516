"""A peer without a connection: what it is told goes nowhere, but who was given what is written down.

For whoever drives the core directly. It is here because a compiled class cannot be subclassed by code that is not compiled.
"""

from __future__ import annotations

from typing import final

from dragoman.model.message import Message
from dragoman.model.peer import Peer


@final
class QuietPeer(Peer):
    """`given` is shared by all peers of a broker: (who, what, which attempt), to be emptied by its owner."""

    def __init__(self, dialect: int, listener: str, given: list[tuple[QuietPeer, Message, int]]) -> None:
        super().__init__(dialect, listener)
        self.given = given
        self.owner: object = None  # whom it stands for

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
