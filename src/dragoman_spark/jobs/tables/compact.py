"""Compaction: folds many small batches into few large files. Readers see no difference, before, meanwhile or after.

A fold is written under a name that is not read yet; then `layers.json` names it; then the folders it was made from are removed. After a
crash following the first step the next fold overwrites that folder; after one following the second, the next fold removes the folders that
are no longer read.
"""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.options import Options, Progress, Summary
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.tables.delta import publish
from dragoman_spark.jobs.tables.folders import write_folder
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import GROWING, Layer, TableStore, write_layers
from dragoman_spark.schemas import Table

# Batches that may stay separate before `watch` folds them: every reader opens as many small files of each table.
BATCHES_MAX: Final = 64
# Folds of the same level that may exist before they are folded again.
FOLDS_MAX: Final = 16
# Of a base: above all folds.
BASE_LEVEL: Final = 99


def compact(session: SparkSession, out: str, options: Options, progress: Progress) -> Summary:
    """Fold everything that is committed into one base."""
    began = time.monotonic()
    root = TableRoot(out)
    with root.writing():
        store = TableStore(root)
        sweep(store)
        rows = fold(session, store, 0, free_name(store, f"base={store.last}"), BASE_LEVEL, progress)
        sweep(TableStore(root))
        # Spark's list of the files it has seen only grows. It is not needed: the state knows what is done.
        root.remove(f"{states.PROGRESS}/checkpoint")
    return Summary(rows_by_table=rows, facts=store.committed.facts, seconds=time.monotonic() - began)


def fold_some(session: SparkSession, root: TableRoot, progress: Progress) -> None:
    """Called by `watch` now and then: fold the latest batches, and folds of one level, if there are many."""
    store = TableStore(root)
    covered = store.layers[-1].last if store.layers else states.BEFORE_ALL.batch
    if store.last - covered < BATCHES_MAX:
        return
    # Remove what the previous fold replaced: its readers have finished.
    sweep(store)
    level = 1
    skip = len(store.layers)
    while skip - FOLDS_MAX >= 0 and all(_is_fold(one, level) for one in store.layers[skip - FOLDS_MAX : skip]):
        skip, level = skip - FOLDS_MAX, level + 1
    covered = store.layers[skip - 1].last if skip else states.BEFORE_ALL.batch
    fold(session, store, skip, f"fold={covered + 1}-{store.last}", level, progress)


def fold(
    session: SparkSession, store: TableStore, skip: int, folder: str, level: int, progress: Progress
) -> dict[str, int]:
    """Make one layer of all that is above the lowest `skip` ones; return rows by table."""
    rows: dict[str, int] = {}

    def write(table: Table) -> None:
        write_folder(folded(session, store, table, skip), store.root, table.name, folder)
        rows[table.name] = store.root.rows(f"{table.name}/{folder}")
        progress.step("tables", len(rows), len(GROWING))

    together([partial(write, table) for table in GROWING])
    write_layers(store.root, [*store.layers[:skip], Layer(folder, store.last, level)])
    return rows


def fold_days(session: SparkSession, root: TableRoot, progress: Progress) -> None:
    """If days were rebuilt, make one base of everything: a Delta log names whole files, and cannot hide rows."""
    store = TableStore(root)
    if store.has_days:
        fold(session, store, 0, free_name(store, f"base={store.last}"), BASE_LEVEL, progress)


def folded(session: SparkSession, store: TableStore, table: Table, skip: int) -> DataFrame:
    rows = store.read_rows(session, table, skip)
    return table.merged(rows) if table.growth == "counted" else rows


def sweep(store: TableStore) -> None:
    """Remove folded folders and the leftovers of crashes. Batches after the last committed one may be in progress, and stay."""
    # First the Delta logs must stop naming them.
    publish(store.root)
    for table in GROWING:
        read = store.folders_read(table)
        for name in store.root.folders(table.name):
            is_layer = name.startswith(("base=", "fold=", "day="))
            if name not in read and (is_layer or name in store.batch_folders(table)):
                store.root.remove(f"{table.name}/{name}")


def free_name(store: TableStore, name: str) -> str:
    """A layer's name; with a number after it if an existing layer has that name."""
    taken = {layer.folder for layer in store.layers}
    names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(2)))
    return next(one for one in names if one not in taken)


def _is_fold(layer: Layer, level: int) -> bool:
    return layer.day is None and layer.level == level
