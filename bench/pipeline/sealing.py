"""What sealing costs the broker: its pace with a lake beside it and without."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from bench import pairs
from bench.contenders import Running, start_broker
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
    begins = {WITHOUT: partial(_broker, data_root, "off"), WITH: partial(_broker, data_root, "on")}
    return pairs.run("sealing", begins, plan, rounds, said, failed)


@contextmanager
def _broker(data_root: Path, lake: str) -> Iterator[Running]:
    broker = start_broker("os", data_root, lake=lake)
    try:
        yield broker
    finally:
        broker.stop()
