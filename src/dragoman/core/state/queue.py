"""A queue: waiting messages under a name, and the workers that serve it.

A worker's claim on a queue is a `Serving`. An exclusive serving is the only active one: others wait until it ends. An exclusive one
that comes second waits until no other is active; while it waits, new non-exclusive ones still become active.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import final

from dragoman.core.state.lines import Lane, Line
from dragoman.model.buckets import Durations
from dragoman.model.enums import BROKER_STARTED, SUPERSEDED
from dragoman.model.facts.records import claims_of
from dragoman.model.message import Message
from dragoman.model.peer import RANK_NONE, TAKES_ANYTHING, Serving


@final
class UnfitLanes:
    """Messages that the same kinds of workers cannot take (`Peer.body_constraint`): they wait for other workers."""

    def __init__(self, kinds: int) -> None:
        self.kinds = kinds
        self.lanes: list[Lane] = []


@final
class IdleLine:
    """The workers of one rank with a free slot, the longest idle first."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.line: deque[Serving] = deque()


@final
class Queue:
    """Lanes by priority (highest first), the workers with a free slot by rank (highest first), and counts."""

    def __init__(self, number: int, name: bytes) -> None:
        self.number = number
        self.name = name
        self.lanes: list[Lane] = [Lane(0)]
        self.unfit: list[UnfitLanes] = []
        self.waiting: int = 0
        self.delayed: int = 0
        self.leased: int = 0
        self.quarantined: int = 0
        self.schedules: int = 0  # schedules with this queue
        self.has_tails: bool = False  # some line may have messages on disk only
        self.is_paused: bool = False  # accepts messages and leases none
        self.is_draining: bool = False  # leases messages and accepts none
        self.servings: list[Serving] = []
        self.applicants: list[Serving] = []  # the servings that wait to become active, in order
        self.strict: int = 0  # servings of workers with `Peer.is_strict`
        self.chosen_by_load: int = 0  # servings of workers chosen by load; one is enough to choose all by load
        # By rank, the highest first. A serving is in at most one line, once, and exactly while its `is_idle` is set. It may be stale: a message of
        # another queue took the last slot, or the worker is busy or blocked. `Dispatch.offer_loaded` and `lease_waiting` remove stale entries that they
        # meet, `least_loaded` skips them, and `add_slots` removes a worker's own before it gets new slots; `drop` removes any.
        self.idle_lines: list[IdleLine] = []
        self.idle: int = 0  # servings in all idle lines, stale ones included
        self.is_unserved: bool = False  # leasing its messages was interrupted (`Dispatch.go_on`): new ones are enqueued
        # Dedupe keys, oldest first: key → (message number, when the key expires).
        self.dedupe: dict[bytes, tuple[int, int]] = {}

        self.used_ns: int = 0  # when it was named, or a message of it was last accepted or settled
        self.accepted: int = 0
        self.done: int = 0
        self.failed: int = 0  # settled, but not done
        self.released: int = 0
        self.wait_ns: int = 0  # sum over first leases
        self.wait_max_ns: int = 0
        self.spans: Durations | None = None  # since the broker started; created when first needed (core/tallies)
        self.last_worker_left_ns: int = 0
        self.last_worker_left_reason: int = 0

    def lane(self, priority: int) -> Lane:
        return lane_of(self.lanes, priority)

    def unfit_lane(self, kinds: int, priority: int) -> Lane:
        for group in self.unfit:
            if group.kinds == kinds:
                return lane_of(group.lanes, priority)
        group = UnfitLanes(kinds)
        self.unfit.append(group)
        return lane_of(group.lanes, priority)

    def remember_key(self, key: bytes, number: int, until_ns: int, most: int) -> None:
        keys = self.dedupe
        keys.pop(key, None)
        keys[key] = (number, until_ns)
        if len(keys) > most:  # a tenth at a time: finding a dict's oldest key gets slower with every key dropped before
            for old in list(keys)[: most // 10 + 1]:
                del keys[old]

    def add(self, serving: Serving) -> None:
        """Add a claim. It waits if an exclusive one is active, or if it is exclusive and any other is active."""
        others = len(self.servings) - len(self.applicants)
        if others > 0 and (serving.is_exclusive or self.holds_exclusive()):
            serving.is_waiting = True
            self.applicants.append(serving)
        self.servings.append(serving)
        if serving.peer.is_strict:
            self.strict += 1
        if serving.peer.is_chosen_by_load:
            self.chosen_by_load += 1

    def drop(self, serving: Serving) -> list[Serving]:
        """End a claim; returns the waiting claims that become active."""
        self.servings.remove(serving)
        if serving.peer.is_strict:
            self.strict -= 1
        if serving.peer.is_chosen_by_load:
            self.chosen_by_load -= 1
        serving.is_active = False
        self.unset_idle(serving)
        if serving.is_waiting:
            self.applicants.remove(serving)
            return []
        return self.promote() if self.applicants else []

    def promote(self) -> list[Serving]:
        """Activate waiting claims once none is active: the first if it is exclusive, else all that are not exclusive."""
        if len(self.servings) > len(self.applicants):
            return []  # others are still active
        first = self.applicants[0]
        promoted = [first] if first.is_exclusive else [s for s in self.applicants if not s.is_exclusive]
        for serving in promoted:
            serving.is_waiting = False
        self.applicants = [serving for serving in self.applicants if serving.is_waiting]
        return promoted

    def holds_exclusive(self) -> bool:
        for serving in self.servings:
            if not serving.is_waiting:
                return serving.is_exclusive  # an exclusive one is the only active one
        return False

    def set_idle(self, serving: Serving) -> None:
        if serving.is_idle or serving.is_waiting or serving.rank == RANK_NONE:
            return
        serving.is_idle = True
        self.idle += 1
        at = 0
        for line in self.idle_lines:
            if line.rank == serving.rank:
                line.line.append(serving)
                return
            if line.rank < serving.rank:
                break
            at += 1
        line = IdleLine(serving.rank)
        line.line.append(serving)
        self.idle_lines.insert(at, line)

    def set_idle_first(self, serving: Serving) -> None:
        """Put a worker back at the front of its idle line, from which it was just removed."""
        self.set_idle(serving)
        for line in self.idle_lines:
            if line.line and line.line[-1] is serving:
                line.line.rotate(1)

    def unset_idle(self, serving: Serving) -> None:
        if serving.is_idle:
            serving.is_idle = False
            self.idle -= 1
            for line in self.idle_lines:
                if line.rank == serving.rank:
                    line.line.remove(serving)
                    return

    def is_expressible(self, message: Message) -> bool:
        """Whether the dialect of any of its workers can carry this body."""
        return any(s.peer.body_constraint == TAKES_ANYTHING or s.peer.accepts(message) for s in self.servings)

    def count_wait(self, m: Message) -> None:
        wait_ns = m.first_leased_ns - m.accepted_ns
        self.wait_ns += wait_ns
        if wait_ns > self.wait_max_ns:
            self.wait_max_ns = wait_ns


def lane_of(lanes: list[Lane], priority: int) -> Lane:
    """The lane of this priority, created in order if it does not exist."""
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


def lines_with_tails(queues: Iterable[Queue]) -> list[tuple[Queue, Lane, Line]]:
    """The lines that have messages on disk only."""
    return [
        (queue, lane, line)
        for queue in queues
        if queue.has_tails
        for lane in queue.lanes
        for line in lane.lines.values()
        if line.tail.live > 0
    ]


@final
class ServingHistory:
    """Which worker serves which queues, and when and why a worker last left each queue. Durable, so that after a restart an explanation can
    still name it. Only facts change it, by mutators like those of `State`: a worker that has left its queues but is still connected remains listed."""

    def __init__(self) -> None:
        self.serves: dict[int, list[int]] = {}  # worker_no → queue numbers
        self.left: dict[int, tuple[int, int]] = {}  # queue_no → when a worker last left it, and why

    def on_joined(
        self, worker_no: int, text: bytes, queues: dict[bytes, Queue], queues_by_no: dict[int, Queue], now_ns: int
    ) -> None:
        """A new worker, or one that declares its queues again. Parses the text of the fact even when that is just being written: a name with tabs
        is ambiguous there, and recovery must get the same result."""
        queue_nos = {queues[name].number for _, name in claims_of(text) if name in queues}
        for queue_no in self.serves.get(worker_no, []):
            if queue_no not in queue_nos and queue_no in queues_by_no:
                self.left[queue_no] = (now_ns, SUPERSEDED)
        self.serves[worker_no] = sorted(queue_nos)

    def on_left(self, worker_no: int, reason: int, queues: dict[int, Queue], now_ns: int) -> None:
        for queue_no in self.serves.pop(worker_no, []):
            if queue_no in queues:  # a worker that has left its queues may outlast one of them
                self.left[queue_no] = (now_ns, reason)

    def on_started(self, queues: dict[int, Queue], now_ns: int) -> None:
        """All sessions ended with the previous boot."""
        for worker_no in list(self.serves):
            self.on_left(worker_no, BROKER_STARTED, queues, now_ns)
        for queue_no, left in self.left.items():
            queues[queue_no].last_worker_left_ns = left[0]
            queues[queue_no].last_worker_left_reason = left[1]
