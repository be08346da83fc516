"""Rebuilds the stated tables from the growing ones: outside the batches, which must be fast."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from dragoman_spark.jobs.options import SILENT, Options, Progress
from dragoman_spark.jobs.tables.answers import answers
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import CARRIED, TableStore, write_stated


def refresh(session: SparkSession, out: str, options: Options, progress: Progress = SILENT) -> None:
    """Rebuild the stated tables from what is committed; the carried tables are written for other readers, too."""
    makers = answers(session, out, options)
    look = TableStore(TableRoot(out))
    first = {name: partial(look.read, session, name) for name in CARRIED} | {"peers": makers.pop("peers")}
    tables = len(first) + len(makers)
    write_stated(look.root, first)
    progress.step("answers", len(first), tables)
    write_stated(look.root, makers)
    progress.step("answers", tables, tables)
