"""Queues: the name of each, and whether it is paused."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman_spark.tables import QUEUES
from dragoman_spark.transforms.life.kinds import PAUSED, QUEUE_NAMED, RESUMED


def queues(events: DataFrame) -> DataFrame:
    """One row per queue. Its first name counts: a broker names all its queues again at each start."""
    is_named = F.col("kind") == QUEUE_NAMED
    is_switched = F.col("kind").isin(PAUSED, RESUMED)
    kept = (
        events.where(F.col("kind").isin(QUEUE_NAMED, PAUSED, RESUMED))
        .groupBy("broker_id", "queue_no")
        .agg(
            F.min_by(F.when(is_named, F.col("text")), F.when(is_named, F.col("lsn"))).alias("name"),
            F.min(F.when(is_named, F.col("at"))).alias("named_at"),
            F.max_by(F.col("kind"), F.when(is_switched, F.col("lsn"))).alias("last_switch"),
        )
    )
    unnamed = F.concat(F.lit("#"), F.col("queue_no").cast("string"))
    return QUEUES.select(
        kept.withColumn("queue", F.coalesce("name", unnamed)).withColumn(
            "is_paused", F.coalesce(F.col("last_switch") == PAUSED, F.lit(False))
        )
    )
