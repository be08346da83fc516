"""A queue: a named line of messages, and the workers that serve it.

A worker's claim on a queue is a serving. One exclusive serving stands alone: others wait behind it and count when it goes; an
exclusive one waits until no other is left. One that waits for that does not keep newcomers out.
"""

from __future__ import annotations

from collections import deque
from typing import final

from dragoman.core.lines import Lane
from dragoman.model.histogram import Spans
from dragoman.model.message import Message
from dragoman.model.peer import TAKES_ANYTHING
from dragoman.model.serving import RANK_NONE, Serving


@final
class UnfitLanes:
    """Messages that the same kinds of picky workers turned down: they wait for any other worker."""

    def __init__(self, kinds: int) -> None:
        self.kinds = kinds
        self.lanes: list[Lane] = []


@final
class IdleLine:
    """The workers of one rank with a free slot, the one idle longest first."""

    def __init__(self, rank: int) -> None:
        self.rank = rank
        self.line: deque[Serving] = deque()


@final
class ForgottenCounts:
    """What queues that were forgotten had counted: the broker's sums never fall."""

    def __init__(self) -> None:
        self.done: int = 0
        self.failed: int = 0
        self.released: int = 0


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
        self.schedules: int = 0  # that make messages for it
        self.has_tails: bool = False  # one of its lines may have messages on disk only
        self.is_paused: bool = False  # it takes messages and gives none out
        self.is_draining: bool = False  # it gives messages out and takes none
        self.servings: list[Serving] = []
        self.applicants: list[Serving] = []  # those among the servings that do not count yet, in order
        self.strict: int = 0  # how many of the servings refuse at the door what they cannot be told
        self.chosen_by_load: int = 0  # how many of the servings are chosen by load; one is enough to choose all so
        self.idle_lines: list[IdleLine] = []
        self.idle: int = 0  # servings in all idle lines
        self.is_behind: bool = (
            False  # more waits than its idle workers were given in one go: what comes fresh waits, too
        )
        # Dedupe keys, oldest first: key → (message number, until when it counts).
        self.dedupe: dict[bytes, tuple[int, int]] = {}

        self.used_ns: int = 0  # when it was named, or a message of its came or ended last
        self.accepted: int = 0
        self.done: int = 0
        self.failed: int = 0  # ended otherwise than done
        self.released: int = 0
        self.wait_ns: int = 0  # sum over first leases
        self.wait_max_ns: int = 0
        self.spans: Spans | None = None  # since the broker started; made when first needed (core/tallies)
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
        if len(keys) > most:  # a tenth at a time: looking for the oldest gets slower with every key dropped before
            for old in list(keys)[: most // 10 + 1]:
                del keys[old]

    # -- servings -------------------------------------------------------------------------------------------------------

    def add(self, serving: Serving) -> None:
        """A new claim; it waits if an exclusive one is before it, or if it is exclusive itself and any other is."""
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
        """A claim ends; returns those that count from now on because of it."""
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
        """The first in line if it is exclusive; else all that are not."""
        if len(self.servings) > len(self.applicants):
            return []  # others count still
        first = self.applicants[0]
        promoted = [first] if first.is_exclusive else [s for s in self.applicants if not s.is_exclusive]
        for serving in promoted:
            serving.is_waiting = False
        self.applicants = [serving for serving in self.applicants if serving.is_waiting]
        return promoted

    def holds_exclusive(self) -> bool:
        for serving in self.servings:
            if not serving.is_waiting:
                return serving.is_exclusive  # it would be the only one that counts
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

    def unset_idle(self, serving: Serving) -> None:
        if serving.is_idle:
            serving.is_idle = False
            self.idle -= 1
            for line in self.idle_lines:
                if line.rank == serving.rank:
                    line.line.remove(serving)
                    return

    def is_expressible(self, message: Message) -> bool:
        """Whether any of its workers can be told this body."""
        return any(s.peer.pickiness == TAKES_ANYTHING or s.peer.accepts(message) for s in self.servings)

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
