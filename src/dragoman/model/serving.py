"""A serving: one worker's claim on one queue, with the weight it gave."""

from __future__ import annotations

from typing import TYPE_CHECKING, final

if TYPE_CHECKING:
    from dragoman.model.peer import Peer


@final
class Serving:
    """`queue_no` is served by `peer`; a higher weight is served first when several of its queues wait."""

    def __init__(self, peer: Peer, queue_no: int, queue: bytes, weight: int) -> None:
        self.peer = peer
        self.queue_no = queue_no
        self.queue = queue
        self.weight = weight
        self.is_idle: bool = False  # it stands in the queue's idle line
        self.is_active: bool = True  # False once the worker left: an entry in the idle line is stale then
        self.last_turn: int = 0  # the worker's turn in which it was served last
        self.passed_over: int = 0  # turns a waiting queue lost to a higher weight
