"""Attempts: which worker had each message, how long, and how it ended. The fact that ends an attempt also has its start: a scan suffices."""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman.lake.schema import REASONS
from dragoman_spark.tables import ATTEMPTS
from dragoman_spark.transforms.instants import span_ms, utc_day
from dragoman_spark.transforms.life.kinds import ATTEMPT_ENDS, QUARANTINED

_WORKERS_DIED: Final = next(number for number, word in REASONS.items() if word == "workers_died")


def attempts(facts: DataFrame) -> DataFrame:
    """One row per ended attempt. Closing a waiting message ends none: its attempts ended with facts of their own. An attempt belongs to its
    holder, even if another worker's late reply, or no worker, settled the message."""
    is_end = F.col("kind").isin(*ATTEMPT_ENDS) & F.col("leased_at").isNotNull()
    settled_by_holder = F.col("holder_no").isNull()
    # A released fact says whether it was a death; a message quarantined for deaths has a reason of its own.
    last_death = (F.col("kind") == QUARANTINED) & (F.col("reason") == _WORKERS_DIED)
    return ATTEMPTS.select(
        facts.where(is_end).select(
            "broker_id",
            "lsn",
            "message_no",
            "attempt",
            "queue_no",
            "client_dialect",
            "leased_at",
            "outcome",
            "reason",
            F.coalesce("holder_no", "worker_no").alias("worker_no"),
            F.when(settled_by_holder, F.col("worker_dialect")).alias("worker_dialect"),
            F.col("at").alias("ended_at"),
            span_ms(F.col("leased_at"), F.col("at")).alias("held_ms"),
            F.col("kind").alias("ended_by"),
            F.coalesce("is_death", last_death).alias("is_death"),
            utc_day(F.col("at")).alias("date"),
        )
    )
