"""Rebuilds tables from the lake, the source of truth: all of them, or one day of those that have days.

Only facts that are done count, so that a stream continues afterwards unaffected. The new rows become a layer, under the
rules of `compact`: written first, then named in `layers.json`, so that no reader sees a part of it.
"""

from __future__ import annotations

import time
from dataclasses import replace
from datetime import date

from pyspark.sql import SparkSession

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.carry import begins_frame, carry_whole, read_queues
from dragoman_spark.jobs.options import Options, Progress, Summary
from dragoman_spark.jobs.tables.compact import BASE_LEVEL, fold_days, folded, free_name, sweep
from dragoman_spark.jobs.tables.delta import is_delta, publish
from dragoman_spark.jobs.tables.folders import write_folder
from dragoman_spark.jobs.tables.grow import NAMES, grow
from dragoman_spark.jobs.tables.refresh import refresh
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import GROWING, Layer, TableStore, write_layers
from dragoman_spark.sources.catalog import Catalog
from dragoman_spark.sources.facts import read_facts
from dragoman_spark.transforms.queues import queues


def backfill(
    session: SparkSession, lake_root: str, out: str, options: Options, date: date | None, progress: Progress
) -> Summary:
    """Rebuild the tables, of one day or of all, and then the stated tables."""
    began = time.monotonic()
    root, catalog = TableRoot(out), Catalog(lake_root)
    with root.writing():
        store = TableStore(root)
        sweep(store)
        if date is None:
            facts, rows = _whole(session, catalog, store, progress)
        else:
            facts, rows = _day(session, catalog, store, date, progress)
        refresh(session, out, options, progress)
        publish(root)
    return Summary(batches=1, facts=facts, rows_by_table=rows, seconds=time.monotonic() - began)


def _whole(
    session: SparkSession, catalog: Catalog, store: TableStore, progress: Progress
) -> tuple[int, dict[str, int]]:
    state, root = store.committed, store.root
    takes = catalog.whole(state.done)
    facts = read_facts(session, catalog.root, takes)
    folder = free_name(store, f"base={store.last}")
    rows = grow(session, root, folder, facts, queues, progress)
    for table in GROWING:
        # `quality` stays as it is: its rows are about the batches themselves.
        if table.name not in NAMES:
            write_folder(folded(session, store, table, 0), root, table.name, folder)
    carried = carry_whole(session, root, facts, store.last, begins_frame(session, state.begins), folder)
    write_layers(root, [Layer(folder, store.last, BASE_LEVEL)])
    states.commit(root, replace(state, carried=carried, rows_by_table=rows))
    sweep(TableStore(root))
    return sum(take.rows for take in takes), rows


def _day(
    session: SparkSession, catalog: Catalog, store: TableStore, day: date, progress: Progress
) -> tuple[int, dict[str, int]]:
    """Rebuild one day. A fact is in the folder of its own date, and every row of a day is made from facts of that day alone."""
    takes = catalog.takes(store.committed.done, day)
    facts = read_facts(session, catalog.root, takes)
    folder = free_name(store, f"day={day.isoformat()}-{store.last}")
    rows = grow(
        session, store.root, folder, facts, lambda _: read_queues(session, store.root, store.committed), progress
    )
    write_layers(store.root, [*store.layers, Layer(folder, store.last, day=day)])
    if is_delta(store.root):
        fold_days(session, store.root, progress)
    return sum(take.rows for take in takes), rows
