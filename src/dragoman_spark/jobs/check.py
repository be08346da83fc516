"""Verifies the streamed tables: rebuilds every table from the lake at once and compares it with what the batches wrote.

Rows are compared by two hashes of all their columns: a row that only one side has is a difference. So a table of millions
needs one grouping by numbers, and only rows that differ are looked up to be shown.
"""

from __future__ import annotations

import time
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from dragoman_spark.jobs.carry import begins_frame, whole_lives
from dragoman_spark.jobs.options import Differences, Options, Progress
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.state import State
from dragoman_spark.jobs.tables.grow import tables_of
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore
from dragoman_spark.sources.catalog import Catalog
from dragoman_spark.sources.facts import read_facts
from dragoman_spark.tables import BY_NAME
from dragoman_spark.transforms.events import events
from dragoman_spark.transforms.queues import queues

EXAMPLES_MAX: Final = 5
# Sums of milliseconds are of microseconds; smaller differences come from the order of addition.
DECIMALS: Final = 3
_HASHES: Final = ["_hash", "_other_hash"]


def check(session: SparkSession, lake_root: str, out: str, options: Options, progress: Progress) -> Differences:
    """Compare every growing table, and what is open and orphaned, with the same rebuilt from the facts that are done."""
    began = time.monotonic()
    store, catalog = TableStore(TableRoot(out)), Catalog(lake_root)
    takes = catalog.whole(store.committed.done)
    truth = true_tables(session, read_facts(session, catalog.root, takes), store.committed)
    found: dict[str, tuple[int, list[str]]] = {}

    def compare(name: str) -> None:
        found[name] = differences(store.read(session, name), truth[name])
        progress.step("tables", len(found), len(truth))

    together([partial(compare, name) for name in truth])
    return Differences(
        rows_by_table={name: found[name][0] for name in truth},
        examples_by_table={name: found[name][1] for name in truth if found[name][1]},
        facts=sum(take.rows for take in takes),
        seconds=time.monotonic() - began,
    )


def true_tables(session: SparkSession, facts: DataFrame, state: State) -> dict[str, DataFrame]:
    """The tables as one batch of all these facts makes them."""
    named = queues(events(facts))
    open_now, orphaned = whole_lives(session, facts, begins_frame(session, state.begins))
    grown = {
        # Brokers may have queues of the same name, whose counts are added up when read.
        name: BY_NAME[name].merged(frame) if BY_NAME[name].growth == "counted" else frame
        for name, frame in tables_of(facts, named).items()
    }
    return {**grown, "open": open_now, "orphans": orphaned, "queues": named}


def differences(streamed: DataFrame, truth: DataFrame) -> tuple[int, list[str]]:
    """The number of rows that only one side has, and a few of them as text."""
    both = _hashed(streamed, 1).unionByName(_hashed(truth, -1))
    uneven = both.groupBy(_HASHES).agg(F.sum("_side").alias("_side")).where(F.col("_side") != 0)
    rows = uneven.agg(F.sum(F.abs("_side"))).collect()[0][0] or 0
    if not rows:
        return 0, []
    found = both.join(F.broadcast(uneven.select(_HASHES).limit(EXAMPLES_MAX)), _HASHES).limit(EXAMPLES_MAX)
    row = F.to_json(F.struct(*streamed.columns))
    shown = found.select(
        F.when(F.col("_side") > 0, "only streamed: ").otherwise("only in the lake: ").alias("side"), row.alias("row")
    )
    return rows, [f"{one['side']}{one['row']}" for one in shown.collect()]


def _hashed(frame: DataFrame, side: int) -> DataFrame:
    """The rows of one side with their hashes."""
    rounded = [
        F.round(F.coalesce(F.col(field.name), F.lit(0.0)), DECIMALS)
        if isinstance(field.dataType, T.DoubleType)
        else F.col(field.name)
        for field in frame.schema.fields
    ]
    # A hash ignores nulls: which columns are null is part of the row.
    nulls = F.concat(*[F.col(name).isNull().cast("int").cast("string") for name in frame.columns])
    return frame.select(
        "*",
        F.xxhash64(*rounded, nulls).alias("_hash"),
        F.hash(*rounded, nulls).alias("_other_hash"),
        F.lit(side).alias("_side"),
    )
