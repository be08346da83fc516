"""Answers whose client is away for a moment: kept in memory for it, not for long, and not without bound.

After a restart, or a cut connection, a worker may be back before the client is. The message is settled (`reply_undeliverable`
says that nobody was there); the answer waits for the address it belongs to and is said when that comes back.
"""

from __future__ import annotations

from collections import deque
from typing import Final, final

from dragoman.core.lifecycle import DONE
from dragoman.limits import ANSWERS_HELD_NS, ANSWERS_HELD_SIZE_MAX
from dragoman.model.message import Message
from dragoman.model.peer import Peer

LEFTOVER_SIZE: Final = 512  # what even an empty answer counts for


@final
class Leftover:
    def __init__(self, message: Message, outcome: int, reason: int, value: bytes, until_ns: int) -> None:
        self.message = message
        self.outcome = outcome
        self.reason = reason
        self.value = value
        self.until_ns = until_ns
        self.is_said: bool = False


@final
class Leftovers:
    """By address, and in the order in which they grow stale."""

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
        """A peer with an address came: what was left for it, once."""
        if peer.takes_one_answer or peer.address not in self.by_address:
            return
        for leftover in self.by_address.pop(peer.address):
            leftover.is_said = True
            if leftover.outcome == DONE:
                peer.answered(leftover.message, leftover.value)
            else:  # a worker's words of failure are no answer
                peer.failed_for_good(leftover.message, leftover.outcome, leftover.reason, leftover.value)

    def sweep(self, now_ns: int) -> None:
        while self.line and (self.line[0].is_said or self.line[0].until_ns <= now_ns):
            self.drop_oldest()

    def drop_oldest(self) -> None:
        leftover = self.line.popleft()
        self.size -= max(len(leftover.value), LEFTOVER_SIZE)
        if leftover.is_said:
            return
        address = leftover.message.address
        rest = self.by_address[address]
        assert rest[0] is leftover, "the oldest of all is the oldest of its address"
        rest.popleft()
        if not rest:
            del self.by_address[address]
