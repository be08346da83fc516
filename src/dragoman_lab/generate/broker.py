"""One broker without a process: the core, its clock, the messages given to its peers, and the agenda of events."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Any

from dragoman.core.core import Core
from dragoman.core.settings import CoreSettings
from dragoman.core.timers import Timers
from dragoman.model.message import Message
from dragoman.model.peer import ANONYMOUS
from dragoman.model.quiet_peer import QuietPeer
from dragoman.model.units import SECOND_NS
from dragoman_lab.generate.chance import Chance
from dragoman_lab.generate.plan import Plan

Act = Callable[[Any], None]


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


def nothing_is_on_disk(place: int, number: int) -> bytes:
    raise AssertionError(f"a record was looked for at {place}, and there is no journal")
