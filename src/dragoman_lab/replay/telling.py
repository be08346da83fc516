"""Histories as text: the history of a message in the journal and in a replay are compared as lists of these lines.

accepted · leased 1 to w1 · delivered by w1 · released 1: worker_lost · quarantined 3: workers_died · requeued ·
closed 2: done, answered, by w2
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from dragoman_lab.replay.tables import Row

TOLD = ("accepted", "leased", "delivered", "released", "quarantined", "requeued", "closed")
TROUBLES_SHOWN_MAX = 5


def tell(fact: Mapping[str, Any], worker: str) -> str:
    """One fact of a message as text; `worker`: the name of the worker in it, if there is one."""
    name = fact["fact"]
    if name == "leased":
        return f"leased {fact['attempt']} to {worker}"
    if name == "delivered":
        return f"delivered by {worker}"
    if name in ("released", "quarantined"):
        return f"{name} {fact['attempt']}: {fact['reason']}"
    if name == "closed":
        by = f", by {worker}" if worker else ""
        return f"closed {fact['attempt']}: {fact['outcome']}, {fact['reason']}{by}"
    return str(name)


@dataclass
class Told:
    """The result of a replay. `troubles`: rows of the story that could not be played, and why."""

    lives: dict[str, list[str]] = field(default_factory=dict)
    leases: list[tuple[str, str]] = field(default_factory=list)  # message, worker
    troubles: list[str] = field(default_factory=list)
    astray: int = -1  # the row at which the broker first gave out something other than the story says; -1: none

    def check_lives(self, lives: Mapping[str, list[str]]) -> None:
        """Fail unless every message named here has exactly this history."""
        assert lives, "no life is named: nothing would be checked"
        wrong = [
            difference
            for message, expected in lives.items()
            if (difference := differ(message, expected, self.lives.get(message, [])))
        ]
        assert not wrong, "\n".join([*wrong, *self._troubles()])

    def check_order(self, story: list[Row], lives: Mapping[str, list[str]]) -> None:
        """Fail unless these messages were given out in the order in which the story's workers take them."""
        expected = [(row[3], row[1]) for row in story if row[2] in ("takes", "is given") and row[3] in lives]
        leases = [(message, worker) for message, worker in self.leases if message in lives]
        pairs = enumerate(zip(expected, leases, strict=False), 1)
        wrong = [
            f"lease {count} should be of message {should[0]!r} to {should[1]}, and was of {was[0]!r} to {was[1]}"
            for count, (should, was) in pairs
            if should != was
        ]
        if len(expected) != len(leases):
            wrong.append(f"{len(expected)} leases should be there, and {len(leases)} are")
        assert not wrong, "\n".join([wrong[0], *self._troubles()])

    def _troubles(self) -> list[str]:
        shown = [f"on the way: {trouble}" for trouble in self.troubles[:TROUBLES_SHOWN_MAX]]
        more = len(self.troubles) - len(shown)
        return [*shown, f"and {more} more"] if more else shown


def differ(message: str, expected: list[str], was: list[str]) -> str:
    """The first difference between two histories, in words; empty: none."""
    if expected == was:
        return ""
    at = next(
        (n for n, (should, did) in enumerate(zip(expected, was, strict=False)) if should != did),
        min(len(expected), len(was)),
    )
    should = f"should be {expected[at]!r}" if at < len(expected) else "should not be there"
    did = f"was {was[at]!r}" if at < len(was) else "did not come"
    return f"message {message!r}, fact {at + 1}: {should}, and {did}\n  expected: {expected}\n  replayed: {was}"
