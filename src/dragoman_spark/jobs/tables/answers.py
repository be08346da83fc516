"""The stated tables, which are rebuilt whole each time: peers and reports. After a run, not inside its batches.

All of them use one view of the tables, and one instant: the latest fact's, so that the same lake gives the same result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman.errors import NoTables
from dragoman_spark.jobs.options import Options
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore
from dragoman_spark.transforms.checks.objectives import read
from dragoman_spark.transforms.checks.slo import slo
from dragoman_spark.transforms.forecast.anomalies import anomalies
from dragoman_spark.transforms.forecast.capacity import capacity
from dragoman_spark.transforms.life.stuck import stuck
from dragoman_spark.transforms.peers import peers
from dragoman_spark.transforms.workers import workers

NAMES: Final = ("peers", "workers", "slo", "stuck", "capacity", "anomalies")


def answers(session: SparkSession, out: str, options: Options) -> dict[str, Callable[[], DataFrame]]:
    """A function for each stated table. `peers` goes first: the tables that need it read it back."""
    # Before any work: a misspelt objective should not cost a batch of Spark jobs.
    objectives = read(options.objectives_file)
    look = TableStore(TableRoot(out))
    now = options.now or look.committed.now
    if now is None:
        raise NoTables(out)

    def table(name: str) -> DataFrame:
        return look.read(session, name)

    found: dict[str, Callable[[], DataFrame]] = {
        "peers": lambda: peers(table("events"), now),
        "workers": lambda: workers(table("attempts"), table("peers")),
        "slo": lambda: slo(table("messages"), table("queues"), objectives, now),
        "stuck": lambda: stuck(table("open"), table("peers"), table("queues"), now),
        "capacity": lambda: capacity(table("throughput"), objectives, now),
        "anomalies": lambda: anomalies(table("throughput"), now),
    }
    assert tuple(found) == NAMES
    return found
