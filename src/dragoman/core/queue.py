"""A queue: a named line of messages, and the workers that serve it."""

from __future__ import annotations

from collections import deque
from typing import final

from dragoman.core.lines import Lane
from dragoman.model.message import Message
from dragoman.model.serving import Serving


@final
class Queue:
    """Lanes by priority (highest first), the workers with a free slot (least recently used first), and counts."""

    def __init__(self, number: int, name: bytes) -> None:
        self.number = number
        self.name = name
        self.lanes: list[Lane] = [Lane(0)]
        # Messages that a picky worker turned down: they wait here for one that takes anything.
        self.unfit: list[Lane] = []
        self.waiting: int = 0
        self.delayed: int = 0
        self.leased: int = 0
        self.quarantined: int = 0
        self.is_paused: bool = False
        self.servings: list[Serving] = []
        self.idle: deque[Serving] = deque()
        # Dedupe keys, oldest first: key → (message number, until when it counts).
        self.dedupe: dict[bytes, tuple[int, int]] = {}

        self.accepted: int = 0
        self.done: int = 0
        self.failed: int = 0  # ended otherwise than done
        self.released: int = 0
        self.wait_ns: int = 0  # sum over first leases
        self.wait_max_ns: int = 0
        self.last_worker_left_ns: int = 0
        self.last_worker_left_reason: int = 0

    def lane(self, priority: int) -> Lane:
        return lane_of(self.lanes, priority)

    def unfit_lane(self, priority: int) -> Lane:
        return lane_of(self.unfit, priority)

    def add(self, serving: Serving) -> None:
        self.servings.append(serving)

    def drop(self, serving: Serving) -> None:
        self.servings.remove(serving)
        serving.is_active = False
        if serving.is_idle:
            self.idle.remove(serving)
            serving.is_idle = False

    def set_idle(self, serving: Serving) -> None:
        if not serving.is_idle:
            serving.is_idle = True
            self.idle.append(serving)

    def count_wait(self, m: Message) -> None:
        wait_ns = m.first_leased_ns - m.accepted_ns
        self.wait_ns += wait_ns
        if wait_ns > self.wait_max_ns:
            self.wait_max_ns = wait_ns


def lane_of(lanes: list[Lane], priority: int) -> Lane:
    """The lane of this priority; made in its place when it is not there yet."""
    at = 0
    for lane in lanes:
        if lane.priority == priority:
            return lane
        if lane.priority < priority:
            break
        at += 1
    lane = Lane(priority)
    lanes.insert(at, lane)
    return lane
