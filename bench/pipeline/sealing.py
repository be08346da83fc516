"""What sealing costs the broker: the wire bench's load for eMQP, with a lake beside the broker and without, in turn.

Each measurement has a broker of its own, because a sealer goes on for a while after the load and would take from the next one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from bench.contenders import ContenderFailed, start_broker
from bench.dialogues import EMQP, MANY
from bench.endpoint import Endpoint, EndpointFailed
from bench.rounds import Plan, sample

ROUNDS = 5
# Longer than the sealer's interval, so that each window has some of its work.
SECONDS = 12.0
MODES = ("off", "on")


@dataclass
class Sealing:
    """Round trips per second without and with the sealer, by round."""

    pairs: list[tuple[float, float]] = field(default_factory=list)

    @property
    def cost(self) -> float | None:
        """The share of its pace that the broker loses: median over rounds."""
        return median(1 - on / off for off, on in self.pairs) if self.pairs else None

    def to_json(self) -> dict[str, object]:
        return {"off_on_trips_per_s": self.pairs, "cost": self.cost}


def run(
    endpoint: Endpoint,
    data_root: Path,
    said: Callable[[str], None],
    failed: Callable[[str], None],
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> Sealing:
    sealing = Sealing()
    plan = Plan(endpoint, data_root, EMQP, ("os",), seconds=seconds, warmup_s=1.0)
    for number in range(rounds):
        rates = {}
        for mode in MODES if number % 2 else MODES[::-1]:
            said(f"sealing, round {number + 1}/{rounds}: lake {mode}")
            try:
                broker = start_broker("os", data_root, lake=mode)
            except ContenderFailed as error:
                failed(str(error))
                continue
            try:
                rates[mode] = sample(plan, MANY, broker).trips_per_s
            except EndpointFailed as error:
                failed(f"sealing, lake {mode}: {error}")
            finally:
                broker.stop()
        if len(rates) == len(MODES):
            sealing.pairs.append((rates["off"], rates["on"]))
    return sealing
