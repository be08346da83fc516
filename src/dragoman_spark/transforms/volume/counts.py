"""Counts per minute, queue and client's dialect. One aggregate over the facts, by numbers, from which `throughput` and `funnel` are made:
facts are many, its rows few."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman_spark.transforms.life.kinds import ACCEPTED, CLOSED, QUARANTINED, RELEASED, REQUEUED
from dragoman_spark.transforms.life.outcomes import counts_of_ends, sum_or_0
from dragoman_spark.transforms.volume.periods import MINUTE_S, period_no


def counts(facts: DataFrame) -> DataFrame:
    """One row for each (minute_no, broker_id, queue_no, client_dialect) with activity."""
    kind = F.col("kind")
    wait_us, work_us = _wait_us(), _work_us()
    is_retried = (kind == CLOSED) & (F.col("attempt") > 1)
    return (
        facts.where(kind.isin(ACCEPTED, RELEASED, CLOSED, QUARANTINED, REQUEUED))
        .groupBy(period_no("at", MINUTE_S).alias("minute_no"), "broker_id", "queue_no", "client_dialect")
        .agg(
            F.count_if(kind == ACCEPTED).alias("accepted"),
            F.count("first_leased_at").alias("leased"),
            F.count("delivered_at").alias("delivered"),
            *counts_of_ends(),
            F.count_if(kind == RELEASED).alias("released"),
            F.count_if(kind == QUARANTINED).alias("quarantined"),
            F.count_if(kind == REQUEUED).alias("requeued"),
            F.count_if(is_retried).alias("retried"),
            sum_or_0(F.when(is_retried, F.col("attempt") - 1)).alias("retries"),
            F.count(wait_us).alias("waited"),
            sum_or_0(wait_us).alias("wait_us"),
            F.count(work_us).alias("worked"),
            sum_or_0(work_us).alias("work_us"),
            sum_or_0(F.when(kind == ACCEPTED, F.col("body_size"))).alias("body_bytes"),
            sum_or_0(F.col("reply_size")).alias("reply_bytes"),
        )
    )


def _wait_us() -> Column:
    """The wait as in `messages`, in whole microseconds: from accepted, or due if later, to the first lease. Only a closing fact has these
    instants."""
    return F.unix_micros("first_leased_at") - F.unix_micros(F.greatest("accepted_at", "due_at"))


def _work_us() -> Column:
    """The work as in `messages`, in whole microseconds: from the last lease to the end, if a worker settled it."""
    is_settled = (F.col("kind") == CLOSED) & F.col("worker_no").isNotNull()
    return F.when(is_settled, F.unix_micros("at") - F.unix_micros("leased_at"))
