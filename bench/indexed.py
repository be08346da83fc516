"""What indexing costs the broker: its pace with the indexer beside it, and without."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from rich.console import Console

from bench import pairs
from bench.contenders import fresh_broker
from bench.dialogues import EMQP
from bench.endpoint import Endpoint
from bench.pairs import WITH, WITHOUT, Pairs
from bench.rounds import Plan

SECONDS = 5.0


def run(
    endpoint: Endpoint, data_root: Path, rounds: int, said: Callable[[str], None], failed: Callable[[str], None]
) -> Pairs:
    plan = Plan(endpoint, data_root, EMQP, ("os",), seconds=SECONDS, warmup_s=1.0)
    begins = {WITHOUT: partial(fresh_broker, data_root), WITH: partial(fresh_broker, data_root, is_indexed=True)}
    return pairs.run("indexed", begins, plan, rounds, said, failed)


def show(console: Console, measured: Pairs) -> None:
    if measured.cost is not None:
        console.print(f"indexed: {measured.cost:+.1%} of its pace, median of {len(measured.pairs)} rounds")
