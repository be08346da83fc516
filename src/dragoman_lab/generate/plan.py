"""The parameters of a generated run: how many facts, over which days, from which seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import blake2b
from typing import Final

from dragoman.model.units import SECOND_NS

DAY_NS: Final = 86_400 * SECOND_NS
# A plain message has three facts; some have more, and workers, schedules and restarts have their own. `World.keep_pace` corrects it.
FACTS_PER_MESSAGE: Final = 3.3


@dataclass(frozen=True, slots=True)
class Plan:
    """One broker's run. `open_share`: the share of its messages that go to a queue without workers."""

    facts: int = 100_000
    seed: int = 1
    days: float = 14
    start: date = date(2026, 3, 2)
    queues: int = 12
    open_share: float = 0.002
    broker: int = 0  # which of several brokers

    @property
    def start_ns(self) -> int:
        return int(datetime(self.start.year, self.start.month, self.start.day, tzinfo=UTC).timestamp()) * SECOND_NS

    @property
    def span_ns(self) -> int:
        return int(self.days * DAY_NS)

    @property
    def messages(self) -> float:
        """The approximate number of messages for that many facts."""
        return self.facts / FACTS_PER_MESSAGE

    @property
    def broker_id(self) -> bytes:
        return blake2b(f"generated {self.seed} {self.broker}".encode(), digest_size=16).digest()
