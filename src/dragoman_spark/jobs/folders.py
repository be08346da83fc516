"""Folders of Parquet files: how Spark writes them and reads them back."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs.place import Place
from dragoman_spark.schemas import Table


def write_folder(frame: DataFrame, place: Place, name: str, folder: str) -> None:
    """Write rows as one folder of a table, in place of whatever a crash left there."""
    writer = frame.write.mode("overwrite").option("compression", "zstd")
    writer.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false").parquet(place.uri(f"{name}/{folder}"))


def read_folders(session: SparkSession, place: Place, table: Table, folders: list[str]) -> DataFrame:
    if not folders:
        return session.createDataFrame([], table.struct())
    reader = session.read.schema(table.struct()).option("recursiveFileLookup", "true")
    return reader.parquet(*[place.uri(f"{table.name}/{folder}") for folder in folders])


def batch_folder(batch: int) -> str:
    return f"batch={batch}"


def batch_of(folder: str) -> int | None:
    """The batch that a folder is of; None: it is of several, or of none."""
    number = folder.removeprefix("batch=")
    return int(number) if number != folder and number.lstrip("-").isdigit() else None
