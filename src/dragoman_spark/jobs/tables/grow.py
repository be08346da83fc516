"""The growing tables from any set of facts: one batch, one day, or the whole lake.

Streaming and batch jobs both use this code, so their results cannot differ.

Messages and events are written first and read back for the counts and names made from them: facts are decoded once per table, while
rows of `messages` are a third of them and half as wide, and those of `events` are few. The counts per minute are cached in memory for
the two tables that are made from them.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs.options import SILENT, Progress
from dragoman_spark.jobs.spark.together import together
from dragoman_spark.jobs.tables.folders import read_folders, write_folder
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.tables import BY_NAME, EVENTS, MESSAGES
from dragoman_spark.transforms.events import events
from dragoman_spark.transforms.life.attempts import attempts
from dragoman_spark.transforms.life.messages import messages
from dragoman_spark.transforms.volume.counts import counts
from dragoman_spark.transforms.volume.crossings import crossings
from dragoman_spark.transforms.volume.funnel import funnel
from dragoman_spark.transforms.volume.latency import latency
from dragoman_spark.transforms.volume.throughput import throughput

NAMES: Final = ("messages", "attempts", "events", "throughput", "funnel", "latency", "crossings")


# From the events of these facts to the queues that name its counts.
Queues = Callable[[DataFrame], DataFrame]


def grow(
    session: SparkSession, root: TableRoot, folder: str, facts: DataFrame, queues: Queues, progress: Progress = SILENT
) -> dict[str, int]:
    """Write what the facts add to each growing table as its `folder`; return rows by table."""
    rows: dict[str, int] = {}

    def write(name: str, make: Callable[[], DataFrame]) -> None:
        write_folder(make(), root, name, folder)
        rows[name] = root.rows(f"{name}/{folder}")
        progress.step("tables", len(rows), len(NAMES))

    # Each frame is also built concurrently: for a small batch, that is half of the work.
    together(
        [
            partial(write, "events", lambda: events(facts)),
            partial(write, "messages", lambda: messages(facts)),
            partial(write, "attempts", lambda: attempts(facts)),
        ]
    )
    settled = read_folders(session, root, MESSAGES, [folder])
    named = queues(read_folders(session, root, EVENTS, [folder]))
    counted = counts(facts).persist()
    try:
        together(
            [
                partial(write, "latency", lambda: latency(settled, named)),
                partial(write, "throughput", lambda: throughput(counted, named)),
                partial(write, "funnel", lambda: funnel(counted, named)),
                partial(write, "crossings", lambda: crossings(settled)),
            ]
        )
    finally:
        counted.unpersist()
    assert set(rows) == set(NAMES) <= set(BY_NAME)
    return rows


def tables_of(facts: DataFrame, queues: DataFrame) -> dict[str, DataFrame]:
    """The same tables as lazy frames."""
    settled, counted = messages(facts), counts(facts)
    return {
        "messages": settled,
        "attempts": attempts(facts),
        "events": events(facts),
        "throughput": throughput(counted, queues),
        "funnel": funnel(counted, queues),
        "latency": latency(settled, queues),
        "crossings": crossings(settled),
    }
