"""The tables on disk, and how their readers find them.

    <out>/<table>/batch=N        what one batch added or counted; visible once state N is committed
    <out>/<table>/fold=A-K       batches A … K folded into one
    <out>/<table>/base=K         everything up to batch K folded into one
    <out>/<table>/day=D-K        one day's rows, rebuilt from the lake: that day's rows in the layers below no longer count
    <out>/<table>/stated=S       a table that is rebuilt whole each time
    <out>/layers.json            which folds, bases and days count; replaced whole, after the folders it names
    <out>/stated.json            which stated folder counts, of each table
    <out>/progress/batch=N       the state, and the tables carried from batch to batch (`open`, `orphans`)

A folder that is in neither document and belongs to no committed batch is a leftover of a crash, and is not read.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import partial, reduce
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from dragoman.errors import NoTables
from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.carry import read_open, read_orphans, read_queues
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.state import State
from dragoman_spark.jobs.tables.folders import batch_folder, read_folders, write_folder
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.schemas import Table
from dragoman_spark.sources.small import small_frame
from dragoman_spark.tables import BY_NAME, TABLES

LAYERS: Final = "layers.json"
STATED: Final = "stated.json"
# Carried whole from batch to batch, so the latest batch has all of them.
CARRIED: Final = {"open": read_open, "orphans": read_orphans, "queues": read_queues}
GROWING: Final = tuple(t for t in TABLES if t.growth != "stated" and t.name not in CARRIED)
# The column with the day of a row; `orphans` and `quality` have none.
DAY_COLUMNS: Final = {
    "events": "at", "messages": "date", "attempts": "date", "latency": "hour", "throughput": "minute", "funnel": "date",
    "crossings": "date",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Layer:
    """A folder that replaces batches: those after the layer below it up to `last`; or one day of all up to `last`."""

    folder: str
    last: int
    # How often it was folded: layers of the same level are folded together when there are many.
    level: int = 0
    day: date | None = None


class TableStore:
    """One consistent view of the tables: what is committed when it is created."""

    def __init__(self, root: TableRoot) -> None:
        self.root = root
        self.state: State | None = states.last_state(root)
        self.layers = read_layers(root)

    @property
    def last(self) -> int:
        return self.committed.batch

    @property
    def committed(self) -> State:
        if self.state is None:
            raise NoTables(self.root.address)
        return self.state

    @property
    def has_days(self) -> bool:
        """Whether a rebuilt day hides rows of the folders below it."""
        return any(layer.day is not None for layer in self.layers)

    def read(self, session: SparkSession, name: str) -> DataFrame:
        """A table for readers: every row once, counts added up."""
        table, committed = BY_NAME[name], self.committed
        if name in CARRIED:
            return CARRIED[name](session, self.root, committed)
        if table.growth == "stated":
            return self._read_stated(session, table)
        frame = self.read_rows(session, table)
        return table.merged(self._named(session, frame)) if table.growth == "counted" else frame

    def read_rows(self, session: SparkSession, table: Table, skip: int = 0) -> DataFrame:
        """A growing table's rows as stored, counts not added up; without the lowest `skip` layers."""
        frames = []
        for without, folders in self._folders(table, skip).items():
            frame = read_folders(session, self.root, table, folders)
            if without:
                day = F.to_date(F.col(DAY_COLUMNS[table.name]))
                frame = frame.where(~day.isin(*without))
            frames.append(frame)
        return reduce(DataFrame.unionByName, frames) if frames else small_frame(session, [], table.struct())

    def folders_read(self, table: Table) -> set[str]:
        """The folders of a growing table that its rows are read from."""
        return {folder for folders in self._folders(table, 0).values() for folder in folders}

    def batch_folders(self, table: Table) -> set[str]:
        """The folders of its committed batches that exist."""
        return {batch_folder(batch) for batch in self._batches(table, states.BEFORE_ALL.batch)}

    def _batches(self, table: Table, after: int) -> list[int]:
        numbers = [name.removeprefix("batch=") for name in self.root.folders(table.name) if name.startswith("batch=")]
        return sorted(int(n) for n in numbers if n.lstrip("-").isdigit() and after < int(n) <= self.last)

    def _folders(self, table: Table, skip: int) -> dict[frozenset[date], list[str]]:
        """Folders to read, by the days that no longer count in them."""
        covered = self.layers[skip - 1].last if skip else states.BEFORE_ALL.batch
        single = self._batches(table, covered)
        pieces: list[tuple[list[str], set[date]]] = []
        for layer in self.layers[skip:]:
            if layer.day is not None:
                if table.name not in DAY_COLUMNS:
                    continue
                pieces.append(([batch_folder(n) for n in single if covered < n <= layer.last], set()))
                for _, without in pieces:
                    without.add(layer.day)
            pieces.append(([layer.folder], set()))
            covered = layer.last
        pieces.append(([batch_folder(n) for n in single if covered < n], set()))
        found: dict[frozenset[date], list[str]] = {}
        for folders, without in pieces:
            if folders:
                found.setdefault(frozenset(without), []).extend(folders)
        return found

    def _named(self, session: SparkSession, counts: DataFrame) -> DataFrame:
        """Rename counts of `#3` to the name of queue 3 if that became known later: in a lake that begins in the middle, or by a late file.
        If several brokers have a queue 3 the name stays `#3`, as it could be either."""
        if "queue" not in counts.columns:
            return counts
        queues = self.read(session, "queues")
        number = F.concat(F.lit("#"), F.col("queue_no").cast("string"))
        found = queues.groupBy(number.alias("number")).agg(
            F.count(F.lit(1)).alias("queues"), F.first("queue").alias("said")
        )
        is_sure = (F.col("queues") == 1) & (F.col("said") != F.col("number"))
        sure = found.where(is_sure).join(queues.select(F.col("queue").alias("number")), "number", "left_anti")
        named = counts.join(F.broadcast(sure), F.col("queue") == F.col("number"), "left")
        return named.withColumn("queue", F.coalesce("said", "queue")).drop("number", "queues", "said")

    def _read_stated(self, session: SparkSession, table: Table) -> DataFrame:
        folder = read_stated_folders(self.root).get(table.name)
        return read_folders(session, self.root, table, [folder] if folder else [])


def read_table(session: SparkSession, out: str, name: str) -> DataFrame:
    """A table for readers: every row once, counts added up. Raises NO_TABLES if the pipeline has not run yet."""
    return TableStore(TableRoot(out)).read(session, name)


def now_of(out: str) -> datetime:
    """The latest instant of any fact in the tables: the pipeline's now, so that results are reproducible."""
    now = TableStore(TableRoot(out)).committed.now
    if now is None:
        raise NoTables(out)
    return now


def write_stated(root: TableRoot, makers: Mapping[str, Callable[[], DataFrame]]) -> None:
    """Rebuild tables concurrently. Readers see the old ones until all of the new ones are complete."""
    folders = read_stated_folders(root)
    numbers = {name: int(folders.get(name, "stated=0").removeprefix("stated=")) + 1 for name in makers}

    def write(name: str) -> None:
        write_folder(makers[name](), root, name, f"stated={numbers[name]}")

    together([partial(write, name) for name in makers])
    root.write(STATED, json.dumps(folders | {name: f"stated={n}" for name, n in numbers.items()}, indent=1).encode())
    for name, number in numbers.items():
        for old in root.folders(name):
            # The one before stays for current readers.
            if old.startswith("stated=") and old not in (f"stated={number}", f"stated={number - 1}"):
                root.remove(f"{name}/{old}")


def read_layers(root: TableRoot) -> list[Layer]:
    text = root.read(LAYERS)
    layers = json.loads(text)["layers"] if text else []
    return [
        Layer(one["folder"], one["last"], one["level"], date.fromisoformat(one["day"]) if one["day"] else None)
        for one in layers
    ]


def write_layers(root: TableRoot, layers: list[Layer]) -> None:
    """Commit these layers."""
    documents = [
        {"folder": one.folder, "last": one.last, "level": one.level, "day": one.day.isoformat() if one.day else None}
        for one in layers
    ]
    root.write(LAYERS, json.dumps({"layers": documents}, indent=1).encode())


def read_stated_folders(root: TableRoot) -> dict[str, str]:
    text = root.read(STATED)
    return dict(json.loads(text)) if text else {}
