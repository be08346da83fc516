"""What came and went, minute by minute? One aggregate over the facts, by numbers; its few rows are then given words."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import THROUGHPUT
from dragoman_spark.transforms.kinds import ACCEPTED, CLOSED, QUARANTINED, RELEASED
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.outcomes import counts_of_ends, sum_or_0
from dragoman_spark.transforms.periods import MINUTE_S, period_begin, period_no


def throughput(facts: DataFrame, queues: DataFrame) -> DataFrame:
    """Rows of THROUGHPUT. A fact counts in the minute in which it happened: what is accepted in one may end in another, where all
    its wait and work then count. Brokers that share a queue's name have rows of their own, which add up as batches do."""
    kind = F.col("kind")
    wait_us, work_us = _wait_us(), _work_us()
    counts = (
        facts.where(kind.isin(ACCEPTED, RELEASED, CLOSED, QUARANTINED))
        .groupBy(period_no("at", MINUTE_S).alias("minute_no"), "broker_id", "queue_no", "client_dialect")
        .agg(
            F.count_if(kind == ACCEPTED).alias("accepted"),
            *counts_of_ends(),
            F.count_if(kind == RELEASED).alias("released"),
            F.count_if(kind == QUARANTINED).alias("quarantined"),
            F.count(wait_us).alias("waited"),
            (sum_or_0(wait_us) / 1000).alias("wait_ms"),
            F.count(work_us).alias("worked"),
            (sum_or_0(work_us) / 1000).alias("work_ms"),
            sum_or_0(F.when(kind == ACCEPTED, F.col("body_size"))).alias("body_bytes"),
            sum_or_0(F.col("reply_size")).alias("reply_bytes"),
        )
    )
    return THROUGHPUT.select(
        named(counts, queues)
        .withColumn("minute", period_begin("minute_no", MINUTE_S))
        .withColumn("client_dialect", worded("client_dialect", lake.DIALECTS))
    )


def _wait_us() -> Column:
    """What `messages` calls wait, in whole microseconds: from accepted, or due if later, to the first lease. Only a closing fact says
    when these were."""
    return F.unix_micros("first_leased_at") - F.unix_micros(F.greatest("accepted_at", "due_at"))


def _work_us() -> Column:
    """What `messages` calls work, in whole microseconds: from the last lease to the end, where a worker settled it."""
    is_settled = (F.col("kind") == CLOSED) & F.col("worker_no").isNotNull()
    return F.when(is_settled, F.unix_micros("at") - F.unix_micros("leased_at"))
