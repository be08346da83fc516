"""Streams a growing lake into growing tables: once through what is there (`run`), or until stopped (`watch`).

A session on this machine or a cluster streams with Spark's file source, `foreachBatch` and a checkpoint. Through Spark Connect the
batches are made here instead: there a batch's function would run on the server, which may not have dragoman. Both give the same result,
because the state decides what is taken; the checkpoint only saves Spark from reporting files again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from pyspark.sql import SparkSession

from dragoman.errors import LakeEmpty
from dragoman_spark.jobs import state as states
from dragoman_spark.jobs.intake import Intake
from dragoman_spark.jobs.options import Options, Progress, Summary
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.tables import delta
from dragoman_spark.jobs.tables.compact import fold_days, fold_some
from dragoman_spark.jobs.tables.refresh import refresh
from dragoman_spark.jobs.tables.root import TableRoot, for_spark
from dragoman_spark.sources.catalog import Catalog
from dragoman_spark.sources.facts import stream_files

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

CHECKPOINT: Final = f"{states.PROGRESS}/checkpoint"
# Of `watch`: how often stated tables are rebuilt.
REFRESH_S: Final = 60.0
# How soon a stop is noticed.
LOOK_S: Final = 0.2


def run(session: SparkSession, lake_root: str, out: str, options: Options, progress: Progress) -> Summary:
    """Take all that the lake has now, then rebuild the stated tables."""
    began = time.monotonic()
    root = TableRoot(out)
    with root.writing():
        intake = _begin(session, lake_root, root, options, progress)
        if not (intake.catalog.files() or intake.state.facts):
            raise LakeEmpty(lake_root)
        take_all(intake)
        _conclude(intake)
    return _summary(intake, began)


def take_all(intake: Intake) -> None:
    """Take what is in the lake now: the history in one batch, then the incoming files, batch by batch."""
    intake.take_history()
    if is_remote(intake.session):
        intake.take_pending()
    elif intake.pending():
        _await(_query(intake, {"availableNow": True}), intake, threading.Event())


def watch(
    session: SparkSession, lake_root: str, out: str, options: Options, progress: Progress, stop: threading.Event
) -> Summary:
    """Take what the lake has and all new files, until `stop` is set; stated tables are rebuilt about every minute, concurrently."""
    began = time.monotonic()
    root = TableRoot(out)
    with root.writing():
        intake = _begin(session, lake_root, root, options, progress)
        intake.take_history()

        freshly = _Freshly(intake)
        if is_remote(session):
            while not stop.wait(options.trigger_s):
                intake.take_pending()
                freshly.look()
        elif _has_come(intake, options, stop):
            query = _query(intake, {"processingTime": f"{round(options.trigger_s * 1000)} milliseconds"})
            _await(query, intake, stop, freshly.look)
        freshly.look(is_last=True)
    return _summary(intake, began)


def _conclude(intake: Intake) -> None:
    """After the batches: check the quality of their facts, and rebuild the stated tables."""
    session, root, progress = intake.session, intake.root, intake.progress
    together([intake.judge, lambda: refresh(session, root.address, intake.options, progress)])
    intake.publish()
    fold_some(session, root, progress)


def _has_come(intake: Intake, options: Options, stop: threading.Event) -> bool:
    """Wait for the first file: Spark does not watch a missing folder. False: stopped before there was one."""
    while not intake.catalog.incoming():
        if stop.wait(options.trigger_s):
            return False
    return True


def is_remote(session: SparkSession) -> bool:
    """Whether the session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect")


class _Freshly:
    """Rebuilds the stated tables if there are new facts and it is time."""

    def __init__(self, intake: Intake) -> None:
        self._intake = intake
        self._facts = -1
        self._next_s = time.monotonic()

    def look(self, is_last: bool = False) -> None:
        facts = self._intake.state.facts
        if not facts or facts == self._facts or not (is_last or time.monotonic() >= self._next_s):
            return
        self._facts = facts
        _conclude(self._intake)
        self._next_s = time.monotonic() + REFRESH_S


def _begin(session: SparkSession, lake_root: str, root: TableRoot, options: Options, progress: Progress) -> Intake:
    if options.format == "delta" or delta.is_delta(root):
        fold_days(session, root, progress)
        delta.begin(root)
    return Intake(session, Catalog(lake_root), root, options, progress)


def _query(intake: Intake, trigger: dict[str, bool | str]) -> StreamingQuery:
    writer = stream_files(intake.session, intake.catalog.root).writeStream.foreachBatch(intake.on_batch)
    writer = writer.option("checkpointLocation", f"{for_spark(intake.root.address)}/{CHECKPOINT}")
    return writer.trigger(**trigger).start()  # type: ignore[arg-type]


def _await(
    query: StreamingQuery, intake: Intake, stop: threading.Event, look: Callable[[], None] = lambda: None
) -> None:
    """Wait until the query has ended, or should end. A failure in a batch is raised as it was, not as Java reports it."""
    try:
        while query.isActive and not stop.wait(LOOK_S):
            look()
        if (failure := query.exception()) is not None:
            raise failure
    except Exception:
        if intake.error is not None:
            raise intake.error from None
        raise
    finally:
        intake.stop()
        query.stop()


def _summary(intake: Intake, began: float) -> Summary:
    return Summary(
        batches=intake.batches,
        facts=intake.facts,
        rows_by_table=dict(intake.state.rows_by_table),
        quality_failures=intake.quality_failures,
        seconds=time.monotonic() - began,
    )
