"""Many small batches into few large files. Readers see no difference, before, meanwhile or after.

A fold is written under a name nobody reads yet; then `layers.json` says that it counts; then what it was made of goes. A crash after
the first step leaves a folder that the next fold writes over, one after the second leaves folders that are not read any more and that
the next one clears away.
"""

from __future__ import annotations

import itertools
import time
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.delta import publish
from dragoman_spark.jobs.folders import write_folder
from dragoman_spark.jobs.options import Options, Progress, Summary
from dragoman_spark.jobs.place import Place
from dragoman_spark.jobs.shelf import GROWING, Layer, Shelf, write_layers
from dragoman_spark.jobs.together import together
from dragoman_spark.schemas import Table

# Batches that may lie there one by one before `watch` folds them: as many small files of each table are opened by every reader.
BATCHES_MAX: Final = 64
# Folds of the same level that may lie there before they are folded again.
FOLDS_MAX: Final = 16
# Of a base: above all folds.
BASE_LEVEL: Final = 99


def compact(session: SparkSession, out: str, options: Options, progress: Progress) -> Summary:
    """Fold everything that is committed into one base."""
    began = time.monotonic()
    place = Place(out)
    with place.writing():
        shelf = Shelf(place)
        sweep(shelf)
        rows = fold(session, shelf, 0, free_name(shelf, f"base={shelf.last}"), BASE_LEVEL, progress)
        sweep(Shelf(place))
        # Spark's list of the files it has seen only grows. It is not needed: the state knows what is done.
        place.remove(f"{states.PROGRESS}/checkpoint")
    return Summary(rows_by_table=rows, facts=shelf.committed.facts, seconds=time.monotonic() - began)


def fold_some(session: SparkSession, place: Place, progress: Progress) -> None:
    """What `watch` does now and then: fold the latest batches when they are many, and folds of one level when they are."""
    shelf = Shelf(place)
    covered = shelf.layers[-1].last if shelf.layers else states.BEFORE_ALL.batch
    if shelf.last - covered < BATCHES_MAX:
        return
    # What the fold before this one replaced: whoever read it then is done.
    sweep(shelf)
    level = 1
    skip = len(shelf.layers)
    while skip - FOLDS_MAX >= 0 and all(_is_fold(one, level) for one in shelf.layers[skip - FOLDS_MAX : skip]):
        skip, level = skip - FOLDS_MAX, level + 1
    covered = shelf.layers[skip - 1].last if skip else states.BEFORE_ALL.batch
    fold(session, shelf, skip, f"fold={covered + 1}-{shelf.last}", level, progress)


def fold(session: SparkSession, shelf: Shelf, skip: int, folder: str, level: int, progress: Progress) -> dict[str, int]:
    """Make one layer of all that lies above the lowest `skip` ones; rows by table."""
    rows: dict[str, int] = {}

    def write(table: Table) -> None:
        write_folder(folded(session, shelf, table, skip), shelf.place, table.name, folder)
        rows[table.name] = shelf.place.rows(f"{table.name}/{folder}")
        progress.step("tables", len(rows), len(GROWING))

    together([partial(write, table) for table in GROWING])
    write_layers(shelf.place, [*shelf.layers[:skip], Layer(folder, shelf.last, level)])
    return rows


def fold_days(session: SparkSession, place: Place, progress: Progress) -> None:
    """Where days were made anew, make one base of everything: a Delta log names whole files, and cannot say that rows are hidden."""
    shelf = Shelf(place)
    if shelf.has_days:
        fold(session, shelf, 0, free_name(shelf, f"base={shelf.last}"), BASE_LEVEL, progress)


def folded(session: SparkSession, shelf: Shelf, table: Table, skip: int) -> DataFrame:
    rows = shelf.read_rows(session, table, skip)
    return table.merged(rows) if table.growth == "counted" else rows


def sweep(shelf: Shelf) -> None:
    """Clear away what is folded, and what crashes left. Batches after the last committed one may be at work, and stay."""
    # First nobody may be told of it any more.
    publish(shelf.place)
    for table in GROWING:
        read = shelf.folders_read(table)
        for name in shelf.place.folders(table.name):
            is_layer = name.startswith(("base=", "fold=", "day="))
            if name not in read and (is_layer or name in shelf.batch_folders(table)):
                shelf.place.remove(f"{table.name}/{name}")


def free_name(shelf: Shelf, name: str) -> str:
    """A layer's name; with a number behind it where a layer that counts already has that name."""
    taken = {layer.folder for layer in shelf.layers}
    names = itertools.chain([name], (f"{name}.{number}" for number in itertools.count(2)))
    return next(one for one in names if one not in taken)


def _is_fold(layer: Layer, level: int) -> bool:
    return layer.day is None and layer.level == level
