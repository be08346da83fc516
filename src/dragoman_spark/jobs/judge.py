"""The quality gates, over the facts since they were last checked.

They read every column of every fact, which costs as much as all tables together: so they run not in the batches, whose rows people wait
for, but after them. The result is committed as a batch of its own, without facts, and so as reliably as any other.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dragoman.lake.layout import Gap, uncovered
from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.carry import read_orphans
from dragoman_spark.jobs.plan import Ranges
from dragoman_spark.jobs.state import State
from dragoman_spark.jobs.tables.folders import batch_folder, write_folder
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.sources.catalog import Catalog
from dragoman_spark.sources.facts import read_facts
from dragoman_spark.sources.small import small_frame
from dragoman_spark.tables import ORPHANS, QUALITY
from dragoman_spark.transforms.checks.quality import Seen, quality

_SPANS: Final = T.StructType().add("span_broker", "long").add("span_first", "long").add("span_last", "long")


@dataclass(frozen=True, slots=True)
class Judgement:
    """Rows of `quality`, and the facts they are about."""

    rows: list[Row]
    done: dict[str, Ranges]

    @property
    def failures(self) -> int:
        """The number of fatal expectations that are not met."""
        return sum(row["rows"] > 0 and row["is_fatal"] for row in self.rows)


def judge(session: SparkSession, root: TableRoot, catalog: Catalog, state: State) -> Judgement | None:
    """Check every expectation on the facts that are done and not judged; None: there is nothing new."""
    fresh = not_in(state.judged, state.done)
    if not any(fresh.values()):
        return None
    facts = read_facts(session, catalog.root, catalog.takes(fresh))
    faults = _of(session, read_orphans(session, root, state), fresh)
    return Judgement(quality(state.batch, facts, faults, _seen(new_gaps(state))).collect(), state.done)


def keep(session: SparkSession, root: TableRoot, before: State, found: Judgement) -> State:
    """Commit the result as the next batch."""
    batch = before.batch + 1
    rows = [tuple(batch if name == "batch" else row[name] for name in QUALITY.names) for row in found.rows]
    write_folder(small_frame(session, rows, QUALITY.struct()), root, QUALITY.name, batch_folder(batch))
    after = replace(before, batch=batch, judged=found.done)
    states.commit(root, after)
    return after


def not_in(judged: dict[str, Ranges], done: dict[str, Ranges]) -> dict[str, Ranges]:
    """The ranges that are done and not judged."""
    return {
        broker: [piece for first, last in ranges for piece in uncovered(first, last, judged.get(broker, []))]
        for broker, ranges in done.items()
    }


def new_gaps(state: State) -> list[Gap]:
    """Gaps that were accepted since: lsns that no file has, between others of their broker."""
    known = {(broker, *gap) for broker, ranges in state.judged.items() for gap in _between(ranges)}
    found = {(broker, *gap) for broker, ranges in state.done.items() for gap in _between(ranges)}
    return [Gap(*gap) for gap in sorted(found - known)]


def _between(ranges: Ranges) -> Ranges:
    return [(before[1] + 1, after[0] - 1) for before, after in itertools.pairwise(ranges)]


def _of(session: SparkSession, orphans: DataFrame, fresh: dict[str, Ranges]) -> DataFrame:
    """The orphans whose latest fact is in these ranges."""
    rows = [(int(broker, 16), first, last) for broker, ranges in fresh.items() for first, last in ranges]
    spans = small_frame(session, rows, _SPANS)
    is_of = (F.col("broker_id") == F.col("span_broker")) & F.col("last_lsn").between(
        F.col("span_first"), F.col("span_last")
    )
    return ORPHANS.select(orphans.join(F.broadcast(spans), is_of, "left_semi"))


def _seen(gaps: list[Gap]) -> dict[str, Seen]:
    """The result for expectations that only file names show."""
    if not gaps:
        return {}
    facts = sum(gap.last_lsn - gap.first_lsn + 1 for gap in gaps)
    first = {"broker": gaps[0].broker, "first_lsn": gaps[0].first_lsn, "last_lsn": gaps[0].last_lsn}
    return {"gap": (facts, json.dumps(first))}
