"""The parameters of a generated run; and one broker without a process: the core, its clock, the messages given to its peers, the agenda of events, and seeded randomness.

Exponential and normal values come from tables of their quantiles, ten times as fast as drawing them.
"""

from __future__ import annotations

import heapq
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from hashlib import blake2b
from statistics import NormalDist
from typing import Any, Final, TypeVar

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.timers import Timers
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS

Act = Callable[[Any], object]
T = TypeVar("T")

DAY_NS: Final = 86_400 * SECOND_NS
# A plain message has three facts; some have more, and workers, schedules and restarts have their own. `World.keep_pace` corrects it.
FACTS_PER_MESSAGE: Final = 3.3
BITS: Final = 12
COUNT: Final = 1 << BITS
EXPONENTIALS: Final = [-math.log(1 - (i + 0.5) / COUNT) for i in range(COUNT)]
NORMALS: Final = [NormalDist().inv_cdf((i + 0.5) / COUNT) for i in range(COUNT)]


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


class Chance:
    """All random values of one run."""

    def __init__(self, seed: str) -> None:
        self._random = random.Random(seed)
        self.unit = self._random.random  # 0 ≤ x < 1
        self.bits = self._random.getrandbits
        self.between = self._random.uniform

    def exponential(self) -> float:
        """An exponential value with mean 1."""
        return EXPONENTIALS[self.bits(BITS)]

    def normal(self) -> float:
        return NORMALS[self.bits(BITS)]

    def below(self, count: int) -> int:
        return self._random.randrange(count)

    def one_of(self, things: list[T]) -> T:
        return things[self._random.randrange(len(things))]

    def mix(self, shares: dict[T, float], count: int) -> list[T]:
        """A shuffled list of about `count` things in these shares, each at least once."""
        total = sum(shares.values())
        mixed: list[T] = []
        for thing, share in shares.items():
            mixed += [thing] * max(round(count * share / total), 1)
        self._random.shuffle(mixed)
        return mixed


class GeneratedBroker:
    """The state that all parts of a world share. Random values are drawn in the order of events, so the same seed gives the same run."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.chance = Chance(f"{plan.seed} {plan.broker}")
        self.given: list[tuple[QuietPeer, Message, int]] = []
        self.core = Core(CoreSettings(), nothing_is_on_disk)
        self.timers = Timers(self.core)
        self.now_ns = plan.start_ns
        self.end_ns = plan.start_ns + plan.span_ns
        self.facts = 0  # already in blocks
        self.sent = 0  # messages sent by the rate_curves' rates
        self.boot_no = 0
        self.agenda: list[tuple[int, int, Act, Any]] = []
        self._count = 0
        self._connections = 0

    def later(self, delay_s: float, act: Act, what: Any) -> None:
        self.at(self.now_ns + int(delay_s * SECOND_NS), act, what)

    def at(self, at_ns: int, act: Act, what: Any) -> None:
        self._count += 1  # of two events at the same instant the one that was entered first comes first
        heapq.heappush(self.agenda, (at_ns, self._count, act, what))

    def spread(self, count: int, act: Act, what: Any, first: float = 0.02, last: float = 0.98) -> None:
        """Schedule `count` events at random instants between two fractions of the run."""
        for _ in range(count):
            self.at(self.plan.start_ns + int(self.plan.span_ns * self.chance.between(first, last)), act, what)

    def connect(self, dialect: int, listener: str, listener_no: int, identity: bytes) -> QuietPeer:
        """Open a connection; replies to a peer without an identity reach it only on this connection."""
        self._connections += 1
        peer = QuietPeer(dialect, listener, self.given)
        peer.identity = identity
        peer.remote = f"10.0.{listener_no}.{1 + self._connections % 250}:{30_000 + self._connections % 30_000}"
        if identity:
            peer.address = b"%c%s" % (listener_no, identity)
        else:
            peer.address = b"%c%d.%d" % (listener_no | ANONYMOUS, self.boot_no, self._connections)
        self.core.hello(peer)
        return peer


def nothing_is_on_disk(ref: int, number: int) -> bytes:
    raise AssertionError(f"a record was looked for at {ref}, and there is no journal")
