"""Crossings: messages by the client's and the worker's dialect, with outcomes and durations. One aggregate over the messages."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import CROSSINGS
from dragoman_spark.transforms.life.outcomes import DONE, sum_or_0


def crossings(messages: DataFrame) -> DataFrame:
    """Rows of CROSSINGS. Messages that no worker settled (expired, cancelled) have the worker dialect null."""
    counts = messages.groupBy("date", "client_dialect", "worker_dialect").agg(
        F.count(F.lit(1)).alias("messages"),
        F.count_if(F.col("outcome") == DONE).alias("done"),
        *[_sum_ms(name).alias(name) for name in ("wait_ms", "work_ms", "total_ms")],
        sum_or_0(F.col("body_size")).alias("body_bytes"),
        sum_or_0(F.col("reply_size")).alias("reply_bytes"),
    )
    return CROSSINGS.select(
        counts.withColumn("client_dialect", worded("client_dialect", lake.DIALECTS)).withColumn(
            "worker_dialect", worded("worker_dialect", lake.DIALECTS)
        )
    )


def _sum_ms(duration_ms: str) -> Column:
    """A sum of durations in whole microseconds: exactly the same in any order of addition."""
    return sum_or_0(F.rint(F.col(duration_ms) * 1000).cast("long")) / 1000
