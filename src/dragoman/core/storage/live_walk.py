"""A walk over all open messages, in bounded steps, while messages are accepted, moved and settled.

A walk misses no message that is open from its beginning to its end. It visits the tails (on disk only) first, and lists the messages in
memory after that. A message may move from a tail into memory meanwhile (to be leased, or because it was looked up), but only a newly
accepted message moves into a tail. So every message is visited in the tail, or later in memory, or both.

A walk may visit messages that have ended since, and miss those accepted since. To find the segments in use, that is safe: a message that has
ended makes a segment count as used for a while longer; a record written since is in a segment that was not full when the walk began, or in a
later one, and those always count as used (runtime/upkeep). No record moves to another segment during a walk: runtime/upkeep also does the
carrying, before or after.
"""

from __future__ import annotations

from typing import Final

from dragoman.core.state.state import State
from dragoman.core.state.tail import Tail
from dragoman.model.message import Message

LISTED_PER_ROW: Final = 50  # listing this many message numbers takes as long as visiting one row


class LiveWalk:
    """The walk; subclasses decide what to do with each message."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.tails: list[Tail] = []
        for queue in state.queues.values():
            if not queue.has_tails:
                continue
            for lane in queue.lanes:
                for line in lane.lines.values():
                    if line.tail.live > 0:
                        self.tails.append(line.tail)
        self.passed: int = 0  # last number visited in the current tail: indexes change between steps
        self.is_listed: bool = False
        self.listed: list[int] = []  # numbers of messages in memory
        self.listed_at: int = 0

    def meet(self, m: Message) -> None:
        """Visit an open message in memory."""
        raise NotImplementedError

    def meet_rows(self, tail: Tail, at: int, stop: int) -> None:
        """Visit rows of a tail. Removed ones, with negative numbers, are among them."""
        raise NotImplementedError

    def walk(self, most: int) -> bool:
        """Visit up to `most` more messages; False when all were visited."""
        while self.tails and most > 0:
            tail = self.tails[-1]
            at = tail.after(self.passed)
            stop = min(at + most, len(tail.numbers))
            most -= max(stop - at, 1)
            if at < stop:
                self.passed = abs(tail.numbers[stop - 1])
                self.meet_rows(tail, at, stop)
            if stop == len(tail.numbers):
                self.tails.pop()
                self.passed = 0
        if self.tails or most <= 0:
            return True
        if not self.is_listed:
            self.is_listed = True
            self.listed = list(self.state.messages)
            most = max(most - len(self.listed) // LISTED_PER_ROW, 1)
        stop = min(self.listed_at + most, len(self.listed))
        while self.listed_at < stop:
            m = self.state.messages.get(self.listed[self.listed_at])
            if m is not None:
                self.meet(m)
            self.listed_at += 1
        return stop < len(self.listed)
