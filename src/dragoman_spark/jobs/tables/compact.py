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
from dragoman_spark.jobs.tables.place import Place
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
    place = Place(out)
    with place.writing():
        shelf = TableStore(place)
        sweep(shelf)
        rows = fold(session, shelf, 0, free_name(shelf, f"base={shelf.last}"), BASE_LEVEL, progress)
        sweep(TableStore(place))
        # Spark's list of the files it has seen only grows. It is not needed: the state knows what is done.
        place.remove(f"{states.PROGRESS}/checkpoint")
    return Summary(rows_by_table=rows, facts=shelf.committed.facts, seconds=time.monotonic() - began)


def fold_some(session: SparkSession, place: Place, progress: Progress) -> None:
    """Called by `watch` now and then: fold the latest batches, and folds of one level, if there are many."""
    shelf = TableStore(place)
    covered = shelf.layers[-1].last if shelf.layers else states.BEFORE_ALL.batch
    if shelf.last - covered < BATCHES_MAX:
        return
    # Remove what the previous fold replaced: its readers have finished.
    sweep(shelf)
    level = 1
    skip = len(shelf.layers)
    while skip - FOLDS_MAX >= 0 and all(_is_fold(one, level) for one in shelf.layers[skip - FOLDS_MAX : skip]):
        skip, level = skip - FOLDS_MAX, level + 1
    covered = shelf.layers[skip - 1].last if skip else states.BEFORE_ALL.batch
    fold(session, shelf, skip, f"fold={covered + 1}-{shelf.last}", level, progress)


def fold(
    session: SparkSession, shelf: TableStore, skip: int, folder: str, level: int, progress: Progress
) -> dict[str, int]:
    """Make one layer of all that is above the lowest `skip` ones; return rows by table."""
    rows: dict[str, int] = {}

    def write(table: Table) -> None:
        write_folder(folded(session, shelf, table, skip), shelf.place, table.name, folder)
        rows[table.name] = shelf.place.rows(f"{table.name}/{folder}")
        progress.step("tables", len(rows), len(GROWING))

    together([partial(write, table) for table in GROWING])
    write_layers(shelf.place, [*shelf.layers[:skip], Layer(folder, shelf.last, level)])
    return rows


def fold_days(session: SparkSession, place: Place, progress: Progress) -> None:
    """If days were rebuilt, make one base of everything: a Delta log names whole files, and cannot hide rows."""
    shelf = TableStore(place)
    if shelf.has_days:
        fold(session, shelf, 0, free_name(shelf, f"base={shelf.last}"), BASE_LEVEL, progress)


def folded(session: SparkSession, shelf: TableStore, table: Table, skip: int) -> DataFrame:
    rows = shelf.read_rows(session, table, skip)
    return table.merged(rows) if table.growth == "counted" else rows


def sweep(shelf: TableStore) -> None:
    """Remove folded folders and the leftovers of crashes. Batches after the last committed one may be in progress, and stay."""
    # First the Delta logs must stop naming them.
    publish(shelf.place)
    for table in GROWING:
        read = shelf.folders_read(table)
        for name in shelf.place.folders(table.name):
            is_layer = name.startswith(("base=", "fold=", "day="))
            if name not in read and (is_layer or name in shelf.batch_folders(table)):
                shelf.place.remove(f"{table.name}/{name}")


def free_name(shelf: TableStore, name: str) -> str:
    """A layer's name; with a number after it if an existing layer has that name."""
    taken = {layer.folder for layer in shelf.layers}
    names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(2)))
    return next(one for one in names if one not in taken)


def _is_fold(layer: Layer, level: int) -> bool:
    return layer.day is None and layer.level == level
