"""Runs the worlds of seeds and reports a failure with the command that reproduces it."""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from dragoman_lab.sim.world import World


@dataclass(frozen=True, slots=True)
class Verdict:
    """One seed's result. `failure` is empty if every promise held."""

    seed: int
    digest: str
    facts: int
    requests: int
    boots: int
    tally: Counter[str]  # facts by name and reason
    failure: str = ""

    @property
    def replay(self) -> str:
        return f"python -m dragoman_lab.sim --seed {self.seed} --verbose"


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


@contextmanager
def quiet_logs() -> Iterator[None]:
    """Silence the logs: a broker that crashes a hundred times logs too much."""
    before = structlog.get_config()
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL), cache_logger_on_first_use=False
    )
    try:
        yield
    finally:
        structlog.configure(**before)
