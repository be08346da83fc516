"""What sealing costs the broker: its pace with a lake beside it and without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench import pairs
from bench.contenders import fresh_broker
from bench.dialogues import EMQP
from bench.endpoint import Endpoint
from bench.pairs import WITH, WITHOUT, Pairs
from bench.rounds import Plan

ROUNDS = 5
# Longer than the sealer's interval, so that each window has some of its work.
SECONDS = 12.0


def run(
    endpoint: Endpoint,
    data_root: Path,
    said: Callable[[str], None],
    failed: Callable[[str], None],
    rounds: int = ROUNDS,
    seconds: float = SECONDS,
) -> Pairs:
    plan = Plan(endpoint, data_root, EMQP, ("os",), seconds=seconds, warmup_s=1.0)
    begins = {WITHOUT: partial(fresh_broker, data_root), WITH: partial(fresh_broker, data_root, lake="on")}
    return pairs.run("sealing", begins, plan, rounds, said, failed)
