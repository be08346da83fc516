"""Seeds in, verdicts out: runs worlds, and tells of a failure with the one command that shows it again."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from dragoman.testing.sim.world import World


@dataclass(frozen=True, slots=True)
class Verdict:
    """One seed's run. `failure` is empty when every promise held."""

    seed: int
    digest: str
    facts: int
    requests: int
    boots: int
    tally: Counter[str]  # facts by name and reason
    failure: str = ""

    @property
    def replay(self) -> str:
        return f"python -m dragoman.testing.sim --seed {self.seed} --verbose"


def run_seed(seed: int, *, verbose: bool = False) -> Verdict:
    world = World(seed, verbose)
    failure = ""
    with quiet_logs():
        try:
            world.run()
        except Exception:
            failure = traceback.format_exc()
    facts = world.chronicle.next_lsn - 1
    return Verdict(seed, world.chronicle.digest(), facts, len(world.ledger.requests), world.boots, world.tally, failure)


def run_seeds(seeds: Iterable[int]) -> Iterator[Verdict]:
    for seed in seeds:
        yield run_seed(seed)


@contextmanager
def quiet_logs() -> Iterator[None]:
    """A broker that crashes a hundred times has much to say that nobody wants to read."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=False
    )
    try:
        yield
    finally:
        structlog.configure(**before)
