"""A serving: one worker's claim on one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer

RANK_NONE: Final = 0  # gets no messages
RANK_NORMAL: Final = 20  # of workers whose dialect has no ranks


@final
class Serving:
    """A worker's claim on a queue. `weight` orders the queues of a worker, `rank` the workers of a queue; the highest comes first."""

    def __init__(self, peer: Peer, queue_no: int, queue: bytes, weight: int, rank: int, is_exclusive: bool) -> None:
        self.peer = peer
        self.queue_no = queue_no
        self.queue = queue
        self.weight = weight
        self.rank = rank
        self.is_exclusive = is_exclusive
        self.is_waiting: bool = (
            False  # not active yet: an exclusive claim is active, or this one is exclusive and others are active
        )
        self.is_idle: bool = False  # it is in an idle line of the queue
        self.is_active: bool = True  # False once the claim ended
        self.last_turn: int = 0  # the worker's turn (`WorkerState.turn`) in which it was last served
        self.passed_over: int = 0  # turns lost to other queues while messages waited here; -1: none of them fits

    def takes(self) -> bool:
        """Whether the worker takes messages of this queue."""
        return not self.is_waiting and self.rank != RANK_NONE
