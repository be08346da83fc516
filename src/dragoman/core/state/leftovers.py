"""Answers for clients that are disconnected: kept in memory, for a limited time and up to a limited size.

After a restart or a broken connection a worker may reconnect before the client. The message is settled (with `reply_undeliverable`:
the client was not connected); its answer is kept for the client's address and sent when a client with that address connects.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from dragoman.core.lifecycle import DONE
from dragoman.limits import ANSWERS_HELD_NS, ANSWERS_HELD_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import Peer

LEFTOVER_SIZE: Final = 512  # bytes that even an empty answer counts as


@final
class Leftover:
    def __init__(self, message: Message, outcome: int, reason: int, value: bytes, until_ns: int) -> None:
        self.message = message
        self.outcome = outcome
        self.reason = reason
        self.value = value
        self.until_ns = until_ns
        self.is_sent: bool = False


@final
class Leftovers:
    """The kept answers, by address and in the order in which they expire."""

    def __init__(self) -> None:
        self.by_address: dict[bytes, deque[Leftover]] = {}
        self.line: deque[Leftover] = deque()
        self.size: int = 0
        self.size_max: int = ANSWERS_HELD_SIZE_MAX

    def hold(self, message: Message, outcome: int, reason: int, value: bytes, now_ns: int) -> None:
        leftover = Leftover(message, outcome, reason, value, now_ns + ANSWERS_HELD_NS)
        self.by_address.setdefault(message.address, deque()).append(leftover)
        self.line.append(leftover)
        self.size += max(len(value), LEFTOVER_SIZE)
        while self.size > self.size_max:
            self.drop_oldest()

    def say_to(self, peer: Peer) -> None:
        """Send a peer that connected the answers kept for its address, once."""
        if peer.takes_one_answer or peer.address not in self.by_address:
            return
        for leftover in self.by_address.pop(peer.address):
            leftover.is_sent = True
            if leftover.outcome == DONE:
                peer.answered(leftover.message, leftover.value)
            else:  # a worker's error text is not an answer
                peer.failed_for_good(leftover.message, leftover.outcome, leftover.reason, leftover.value)

    def sweep(self, now_ns: int) -> None:
        while self.line and (self.line[0].is_sent or self.line[0].until_ns <= now_ns):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        leftover = self.line.popleft()
        self.size -= max(len(leftover.value), LEFTOVER_SIZE)
        if leftover.is_sent:
            return
        address = leftover.message.address
        rest = self.by_address[address]
        assert rest[0] is leftover, "the oldest of all is the oldest of its address"
        rest.popleft()
        if not rest:
            del self.by_address[address]
