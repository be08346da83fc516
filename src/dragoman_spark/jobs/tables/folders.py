"""Folders of Parquet files: how Spark writes and reads them."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.schemas import Table
from dragoman_spark.sources.small import small_frame
from dragoman_spark.tables import BY_NAME

_SETTINGS: Final = {
    "compression": "zstd",
    "parquet.compression.codec.zstd.level": "1",
    # Delta-encoded numbers: an eighth smaller, and no slower to write.
    "parquet.writer.version": "v2",
    "mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
}
# Columns of the large tables with almost no repeated values, for which a dictionary is useless. Without it and with the level above,
# `messages` takes two fifths less processor time to write and a fifth more space.
_LARGE: Final = frozenset({"messages", "attempts"})
_MANY_VALUED: Final = frozenset({"message_no", "lsn"})


def write_folder(frame: DataFrame, root: TableRoot, name: str, folder: str) -> None:
    """Write rows as one folder of a table, replacing the leftovers of a crash."""
    plain = {f"parquet.enable.dictionary#{column}": "false" for column in _plain_columns(name)}
    frame.write.mode("overwrite").options(**_SETTINGS, **plain).parquet(root.uri(f"{name}/{folder}"))


def _plain_columns(name: str) -> list[str]:
    if name not in _LARGE:
        return []
    columns = BY_NAME[name].columns
    return [column.name for column in columns if column.name in _MANY_VALUED or column.type in {"timestamp", "double"}]


def read_folders(session: SparkSession, root: TableRoot, table: Table, folders: list[str]) -> DataFrame:
    if not folders:
        return small_frame(session, [], table.struct())
    reader = session.read.schema(table.struct()).option("recursiveFileLookup", "true")
    return reader.parquet(*[root.uri(f"{table.name}/{folder}") for folder in folders])


def batch_folder(batch: int) -> str:
    return f"batch={batch}"


def batch_of(folder: str) -> int | None:
    """The batch of a folder; None: it has several batches, or none."""
    number = folder.removeprefix("batch=")
    return int(number) if number != folder and number.lstrip("-").isdigit() else None
