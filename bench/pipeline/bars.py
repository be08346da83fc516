"""The pipeline's bars, and how the measured figures compare."""

from __future__ import annotations

import itertools

from bench.bars import Bar
from bench.pairs import Pairs
from bench.pipeline.freshness import Freshness
from bench.pipeline.pace import Pace
from bench.pipeline.race import Race

M = 1_000_000


def race_bars(races: list[Race]) -> list[Bar]:
    """Warm figures: a watch or a cluster is warm, and so is every run but the first few seconds of it."""
    by_facts = {race.facts: race for race in races}
    found = []
    if (ten := by_facts.get(10 * M)) is not None:
        found.append(Bar("10 M facts, warm: Spark to DuckDB", ten.ratio("spark", "duckdb", "warm_s"), 3, False))
        found.append(Bar("10 M facts, warm: Spark to Polars", ten.ratio("spark", "polars", "warm_s"), 1.5, False))
    if (fifty := by_facts.get(50 * M)) is not None:
        found.append(Bar("50 M facts, warm: Spark to Polars", fifty.ratio("spark", "polars", "warm_s"), 1, False))
        memory = fifty.ratio("spark", "polars", "peak_mb")
        found.append(Bar("50 M facts: Spark's memory to Polars'", memory, 0.333, False))
    sizes = sorted(by_facts)
    for small, large in itertools.pairwise(sizes):
        text = f"{small / M:g} M → {large / M:g} M facts, Spark warm: growth of time to growth of facts"
        found.append(Bar(text, _growth(by_facts[small], by_facts[large]), 1, False))
    return found


def _growth(small: Race, large: Race) -> float | None:
    before, after = small.middle("spark", "warm_s"), large.middle("spark", "warm_s")
    return None if before is None or after is None else after / before / (large.facts / small.facts)


def pace_bars(pace: Pace) -> list[Bar]:
    return [Bar("streaming, warm", pace.warm_per_s, 300_000, True, "facts/s")]


def sealing_bars(sealing: Pairs) -> list[Bar]:
    cost = None if sealing.cost is None else sealing.cost * 100
    return [Bar("sealing costs the broker, os, 1000 in flight", cost, 5, False, "%")]


def freshness_bars(freshness: Freshness) -> list[Bar]:
    return [Bar("from message to row with watch, p95", freshness.p95_s, 10, False, "s")]


def lake_bars(bytes_per_fact: float) -> list[Bar]:
    return [Bar("the lake", bytes_per_fact, 20, False, "bytes/fact")]
