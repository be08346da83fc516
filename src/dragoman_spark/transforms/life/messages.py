"""Settled messages. A closing fact has everything, so this is a scan: no grouping, join or shuffle."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import MESSAGES
from dragoman_spark.transforms.instants import span_ms, utc_day
from dragoman_spark.transforms.life.kinds import CLOSED


def messages(facts: DataFrame) -> DataFrame:
    """One row per closing fact."""
    closed_at = F.col("at")
    # A message may end before it is due (cancelled, purged): its wait is then 0, not negative.
    ready_at = F.greatest(
        F.col("accepted_at"), F.when(F.col("due_at") > closed_at, closed_at).otherwise(F.col("due_at"))
    )
    is_worked = F.col("worker_no").isNotNull()
    closed = facts.where(F.col("kind") == CLOSED)
    return MESSAGES.select(
        closed.select(
            "*",
            F.col("attempt").alias("attempts"),
            closed_at.alias("closed_at"),
            span_ms(ready_at, F.col("first_leased_at")).alias("wait_ms"),
            F.when(is_worked, span_ms(F.col("leased_at"), closed_at)).alias("work_ms"),
            span_ms(ready_at, closed_at).alias("total_ms"),
            utc_day(closed_at).alias("date"),
        )
    )
