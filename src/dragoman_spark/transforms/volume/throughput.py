"""Throughput: the counts of each minute, named."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import THROUGHPUT
from dragoman_spark.transforms.life.outcomes import ENDS
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.volume.periods import MINUTE_S, period_begin


def throughput(counts: DataFrame, queues: DataFrame) -> DataFrame:
    """Rows of THROUGHPUT. A fact counts in the minute in which it happened: what is accepted in one may end in another, where all its wait
    and work then count. Brokers that share a queue's name have separate rows, which add up as batches do."""
    return THROUGHPUT.select(
        named(counts, queues)
        .where(F.greatest("accepted", *ENDS, "released", "quarantined") > 0)
        .withColumns(
            {
                "minute": period_begin("minute_no", MINUTE_S),
                "client_dialect": worded("client_dialect", lake.DIALECTS),
                "wait_ms": F.col("wait_us") / 1000,
                "work_ms": F.col("work_us") / 1000,
            }
        )
    )
