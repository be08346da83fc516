"""The context of every job: checks its inputs, opens Spark, shows progress, and reports failures in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import click

from dragoman.errors import DragomanError, LakeEmpty, NoTables
from dragoman.printable import traceback_text
from dragoman_spark.cli.bars import bars
from dragoman_spark.cli.call import Call
from dragoman_spark.jobs.options import Progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SPARK_STAGE: Final = "starting Spark"


@dataclass(frozen=True, slots=True)
class Work:
    session: SparkSession
    progress: Progress


@contextmanager
def at_work(call: Call, app: str) -> Iterator[Work]:
    """An open session and its progress bars, for one command."""
    from dragoman_spark.jobs.spark.errors import readable
    from dragoman_spark.jobs.spark.session import open_session

    with traced(call.is_traced), readable(call.remote or call.master or ""), bars(call.as_json) as progress:
        progress.step(SPARK_STAGE, 0, 1)
        with open_session(app, call.master, call.remote, call.conf, is_verbose=call.is_traced) as session:
            progress.step(SPARK_STAGE, 1, 1)
            yield Work(session, progress)


def facts_are_there(call: Call) -> None:
    """Raise for a lake without facts, before Spark is started."""
    from dragoman.lake.store import TIERS, Lake
    from dragoman_spark.jobs.spark.errors import spark_is_there
    from dragoman_spark.jobs.tables.root import for_arrow

    spark_is_there()
    lake = Lake(for_arrow(call.lake))
    if not any(lake.parts(tier) for tier in TIERS):
        raise LakeEmpty(call.lake)


def tables_are_there(call: Call) -> None:
    """Raise for a directory without tables, before Spark is started."""
    from dragoman_spark.jobs.spark.errors import spark_is_there

    spark_is_there()
    from dragoman_spark.jobs.state import last_state
    from dragoman_spark.jobs.tables.root import TableRoot

    if last_state(TableRoot(call.out)) is None:
        raise NoTables(call.out)


@contextmanager
def traced(is_wanted: bool) -> Iterator[None]:
    """With --trace, print the traceback behind an error before it is reported in one line."""
    try:
        yield
    except DragomanError as error:
        if is_wanted:
            click.echo(traceback_text(error.__cause__ or error), err=True)
        raise
