"""The tables that are made whole each time, from those that grow: outside the batches, which must be quick."""

from __future__ import annotations

from pyspark.sql import SparkSession

from dragoman_spark.jobs.answers import state_answers
from dragoman_spark.jobs.delta import publish
from dragoman_spark.jobs.options import Options, Progress
from dragoman_spark.jobs.place import Place
from dragoman_spark.jobs.shelf import CARRIED, Shelf, write_stated


def refresh(session: SparkSession, out: str, options: Options, progress: Progress) -> None:
    """Make them anew from what is committed; what goes over from batch to batch is laid out for others to read, too."""
    look = Shelf(Place(out))
    for name in CARRIED:
        write_stated(session, out, name, look.read(session, name))
    state_answers(session, out, options, progress)
    publish(look.place)
