"""The account: what was asked, what was promised, what was done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

QUEUE = b"chaos"  # of all five dialects, so that any client's message may go to any worker


@dataclass
class Tally:
    """What happened to every request, by its id."""

    attempted: set[bytes] = field(default_factory=set)
    acknowledged: set[bytes] = field(default_factory=set)
    answered: Counter[bytes] = field(default_factory=Counter)
    executed: Counter[bytes] = field(default_factory=Counter)
    unexpected: list[str] = field(default_factory=list)
    is_closing: bool = False  # nothing new is asked

    def answer(self, request_id: bytes) -> None:
        self.answered[request_id] += 1
        if self.answered[request_id] > 1:
            self.unexpected.append(f"{request_id!r} was answered {self.answered[request_id]} times")

    @property
    def promised(self) -> set[bytes]:
        return self.acknowledged | set(self.answered)

    @property
    def lost(self) -> set[bytes]:
        """Promised by the broker, and no worker ever saw it."""
        return self.promised - set(self.executed)

    @property
    def duplicated(self) -> int:
        """Given to workers more than once: allowed, for a broker that dies cannot know how far a worker got."""
        return sum(1 for count in self.executed.values() if count > 1)
