"""Small lakes, laid by hand: lists of facts become files of the lake, cut where a test says so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby, pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from dragoman.lake.layout import INCOMING, Part, Tier
from dragoman_spark.jobs.plan import File
from tests.spark.lives_by_chance import Fact, to_arrow


def cut(facts: Sequence[Fact], count: int) -> list[list[Fact]]:
    """About so many lots of neighbours; more where a day ends in one."""
    edges = [len(facts) * n // count for n in range(count + 1)]
    lots = [facts[first:last] for first, last in pairwise(edges)]
    return [list(day) for lot in lots for _, day in groupby(lot, key=lambda fact: fact["at"].date())]


def lay(root: Path, facts: Sequence[Fact], tier: Tier = INCOMING) -> File:
    """Write neighbours, all of one day, as one file: whole under its name at once, as the sealer does."""
    part = Part(f"{facts[0]['broker_id']:016x}", facts[0]["lsn"], facts[-1]["lsn"], facts[0]["at"].date())
    assert part.rows == len(facts), "a file of the lake has every fact of its range"
    return lay_as(root, part, to_arrow(list(facts)), tier)


def lay_as(root: Path, part: Part, table: pa.Table, tier: Tier = INCOMING) -> File:
    """Write a table under a name that may not fit it."""
    file = File(part, tier)
    target = root / file.path
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f"_tmp-{target.name}")
    pq.write_table(table, temporary)
    temporary.rename(target)
    return file


def lay_all(root: Path, lots: Iterable[Sequence[Fact]], tier: Tier = INCOMING) -> list[File]:
    return [lay(root, lot, tier) for lot in lots]
