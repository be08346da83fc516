"""The funnel: how far messages came, day by day. The counts of each day's minutes added up and named."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import FUNNEL
from dragoman_spark.transforms.life.outcomes import ENDS
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.volume.periods import DAY_S, MINUTE_S, day

_STEPS: Final = ("accepted", "leased", "delivered", *ENDS, "quarantined", "requeued", "retried", "retries")


def funnel(counts: DataFrame, queues: DataFrame) -> DataFrame:
    """Rows of FUNNEL. How far a message came is counted when it ends, from its closing fact: an open one counts only as accepted. Brokers
    that share a queue's name have separate rows, which add up as batches do."""
    days = (
        counts.where(F.greatest(*_STEPS) > 0)
        .groupBy(
            F.floor(F.col("minute_no") / (DAY_S // MINUTE_S)).cast("int").alias("day_no"),
            "broker_id",
            "queue_no",
            "client_dialect",
        )
        .agg(*[F.sum(step).alias(step) for step in _STEPS])
    )
    return FUNNEL.select(
        named(days, queues)
        .withColumn("date", day("day_no"))
        .withColumn("client_dialect", worded("client_dialect", lake.DIALECTS))
    )
