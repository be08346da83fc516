"""Tables without Spark: folders of Parquet files written by hand, and what a root holds read back as plain rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import GROWING, TableStore, read_stated_folders
from dragoman_spark.schemas import Table
from dragoman_spark.tables import TABLES

ARROW_TYPES = {
    "byte": pa.int8(), "short": pa.int16(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64(),
    "boolean": pa.bool_(), "timestamp": pa.timestamp("us", "UTC"), "date": pa.date32(), "string": pa.string(),
    "binary": pa.binary(), "strings": pa.list_(pa.string()),
}  # fmt: skip
# Sums of milliseconds are of microseconds; what lies below is the order in which they were added.
DECIMALS = 3


def write_rows(out: Path, table: Table, folder: str, rows: list[dict[str, Any]]) -> Path:
    """As Spark writes a folder: a new file name each time, and nothing of what was there before."""
    schema = pa.schema([(column.name, ARROW_TYPES[column.type]) for column in table.columns])
    target = out / table.name / folder
    target.mkdir(parents=True, exist_ok=True)
    number = 1 + max((int(old.stem.removeprefix("part-")) for old in target.iterdir()), default=0)
    for old in target.iterdir():
        old.unlink()
    path = target / f"part-{number}.parquet"
    pq.write_table(pa.table({name: [row.get(name) for row in rows] for name in schema.names}, schema=schema), path)
    return path


def rows_of_all(out: Path, tables: Iterable[Table] = TABLES) -> dict[str, list[str]]:
    """The tables' rows, counts added up, in words and in order: two places that hold the same are equal."""
    root = TableRoot(str(out))
    store, stated = TableStore(root), read_stated_folders(root)
    found = {}
    for table in tables:
        folders = store.folders_read(table) if table in GROWING else {stated[table.name]}
        records = [row for folder in folders for row in root.records(f"{table.name}/{folder}")]
        found[table.name] = in_words(table, records)
    return found


def in_words(table: Table, rows: list[dict[str, Any]]) -> list[str]:
    if table.growth == "counted":
        rows = _added_up(table, rows)
    return sorted(str([_rounded(row[name]) for name in table.names]) for row in rows)


def _added_up(table: Table, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        known = found.setdefault(tuple(row[name] for name in table.keys), {**row, **dict.fromkeys(table.sums, 0)})
        for name in table.sums:
            known[name] += row[name] or 0
    return list(found.values())


def _rounded(value: Any) -> Any:
    return round(value, DECIMALS) if isinstance(value, float) else value
