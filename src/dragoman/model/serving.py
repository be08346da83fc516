"""A serving: one worker's claim on one queue, with the weight it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

RANK_NONE: Final = 0  # gets no messages
RANK_NORMAL: Final = 20  # of every worker whose dialect knows no ranks


@final
class Serving:
    """`queue_no` is served by `peer`. `weight`: which of the peer's queues comes first. `rank`: which of the queue's peers does."""

    def __init__(self, peer: Peer, queue_no: int, queue: bytes, weight: int, rank: int, is_exclusive: bool) -> None:
        self.peer = peer
        self.queue_no = queue_no
        self.queue = queue
        self.weight = weight
        self.rank = rank
        self.is_exclusive = is_exclusive
        self.is_waiting: bool = (
            False  # it does not count yet: an exclusive one is before it, or others are, and it is exclusive
        )
        self.is_idle: bool = False  # it stands in the queue's idle line
        self.is_active: bool = True  # False once the worker left: an entry in the idle line is stale then
        self.last_turn: int = 0  # the worker's turn in which it was served last
        self.passed_over: int = 0  # turns a waiting queue lost to a higher weight

    def takes(self) -> bool:
        """Whether the worker is given messages of this queue at all."""
        return not self.is_waiting and self.rank != RANK_NONE
