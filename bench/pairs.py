"""What something beside the broker costs it: the wire bench's load for eMQP, without it and with it, in turn.

A mode is a context that gives the broker to measure: a fresh one, where what runs beside it goes on for a while after the load and would take
from the next measurement; the same one, where it ends at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median

from bench.contenders import ContenderFailed, Running
from bench.dialogues import MANY
from bench.endpoint import EndpointFailed
from bench.rounds import Plan, sample

WITHOUT = "without"
WITH = "with"

Begin = Callable[[], AbstractContextManager[Running]]


@dataclass
class Pairs:
    """Round trips per second without and with it, by round."""

    pairs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def cost(self) -> float | None:
        """The share of its pace that the broker loses: median over rounds."""
        return median(1 - with_ / without for without, with_ in self.pairs) if self.pairs else None

    def to_json(self) -> dict[str, object]:
        return {"without_with_trips_per_s": self.pairs, "cost": self.cost}


def run(
    what: str,
    begins: Mapping[str, Begin],
    plan: Plan,
    rounds: int,
    said: Callable[[str], None],
    failed: Callable[[str], None],
) -> Pairs:
    """`begins` has a broker WITHOUT and one WITH it."""
    measured = Pairs()
    for number in range(rounds):
        rates = {}
        for mode in (WITHOUT, WITH) if number % 2 else (WITH, WITHOUT):
            said(f"{what}, round {number + 1}/{rounds}: {mode}")
            try:
                with begins[mode]() as broker:
                    rates[mode] = sample(plan, MANY, broker).trips_per_s
            except (ContenderFailed, EndpointFailed) as error:
                failed(f"{what}, {mode}: {error}")
        if len(rates) == len(begins):
            measured.pairs.append((rates[WITHOUT], rates[WITH]))
    return measured
