"""The tables that are made whole each time, from those that grow: outside the batches, which must be quick."""

from __future__ import annotations

from functools import partial

from pyspark.sql import SparkSession

from dragoman_spark.jobs.answers import answers
from dragoman_spark.jobs.options import SILENT, Options, Progress
from dragoman_spark.jobs.place import Place
from dragoman_spark.jobs.shelf import CARRIED, Shelf, write_stated


def refresh(session: SparkSession, out: str, options: Options, progress: Progress = SILENT) -> None:
    """Make them anew from what is committed; what goes over from batch to batch is laid out for others to read, too."""
    makers = answers(session, out, options)
    look = Shelf(Place(out))
    first = {name: partial(look.read, session, name) for name in CARRIED} | {"peers": makers.pop("peers")}
    tables = len(first) + len(makers)
    write_stated(look.place, first)
    progress.step("answers", len(first), tables)
    write_stated(look.place, makers)
    progress.step("answers", tables, tables)
