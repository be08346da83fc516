"""How far did messages come, day by day? One aggregate over the facts, by numbers; its few rows are then given words."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import FUNNEL
from dragoman_spark.transforms.kinds import ACCEPTED, CLOSED, QUARANTINED, REQUEUED
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.outcomes import counts_of_ends, sum_or_0
from dragoman_spark.transforms.periods import DAY_S, day, period_no


def funnel(facts: DataFrame, queues: DataFrame) -> DataFrame:
    """Rows of FUNNEL. How far a message came is counted when it ends, from its closing fact: an open one has only been accepted.
    Brokers that share a queue's name have rows of their own, which add up as batches do."""
    kind = F.col("kind")
    is_retried = (kind == CLOSED) & (F.col("attempt") > 1)
    counts = (
        facts.where(kind.isin(ACCEPTED, CLOSED, QUARANTINED, REQUEUED))
        .groupBy(period_no("at", DAY_S).alias("day_no"), "broker_id", "queue_no", "client_dialect")
        .agg(
            F.count_if(kind == ACCEPTED).alias("accepted"),
            F.count("first_leased_at").alias("leased"),
            F.count("delivered_at").alias("delivered"),
            *counts_of_ends(),
            F.count_if(kind == QUARANTINED).alias("quarantined"),
            F.count_if(kind == REQUEUED).alias("requeued"),
            F.count_if(is_retried).alias("retried"),
            sum_or_0(F.when(is_retried, F.col("attempt") - 1)).alias("retries"),
        )
    )
    return FUNNEL.select(
        named(counts, queues)
        .withColumn("date", day("day_no"))
        .withColumn("client_dialect", worded("client_dialect", lake.DIALECTS))
    )
