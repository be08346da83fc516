"""Latency: a histogram of the wait, work and total time of messages that can be merged over any dimension and period.

Bucket 0 is below the lake's resolution (1 µs); bucket n goes from 2^((n-1)/32) to 2^(n/32) µs. A value is read back
as its bucket's geometric middle, so it is at most 2^(1/64) - 1 = 1.09 % off, whatever was merged (docs/concepts/latency-histograms.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import LATENCY
from dragoman_spark.transforms.names import named
from dragoman_spark.transforms.volume.periods import HOUR_S, period_begin, period_no

BUCKETS_PER_OCTAVE: Final = 32
MEASURES: Final = ("wait", "work", "total")
PERCENTILES: Final = (0.5, 0.95, 0.99, 0.999)


def latency(messages: DataFrame, queues: DataFrame) -> DataFrame:
    """Rows of LATENCY: each settled message counts once in each measure that it has. Brokers that share a queue's name have separate rows,
    which add up as batches do."""
    keys = [F.col(name) for name in ("hour_no", "broker_id", "queue_no", "client_dialect", "worker_dialect")]
    measures = [F.col(name) for name in MEASURES]
    buckets = messages.select(
        period_no("closed_at", HOUR_S).alias("hour_no"),
        *keys[1:],
        *[bucket(f"{name}_ms").alias(name) for name in MEASURES],
    )
    # One pass that counts by each measure in turn; the other two are null in its rows. Exploding an array of the three costs half as much
    # again.
    counts = (
        buckets.groupingSets([[*keys, measure] for measure in measures], *keys, *measures)
        .agg(F.count(F.lit(1)).alias("messages"), *[F.grouping(name).alias(f"is_not_{name}") for name in MEASURES])
        .withColumn("bucket", F.coalesce(*measures))
        .where(F.col("bucket").isNotNull())
    )
    measure = F.coalesce(*[F.when(F.col(f"is_not_{name}") == 0, F.lit(name)) for name in MEASURES])
    return LATENCY.select(
        named(counts, queues)
        .withColumn("hour", period_begin("hour_no", HOUR_S))
        .withColumn("client_dialect", worded("client_dialect", lake.DIALECTS))
        .withColumn("worker_dialect", worded("worker_dialect", lake.DIALECTS))
        .withColumn("measure", measure)
    )


def bucket(duration_ms: str) -> Column:
    """The bucket of a duration in milliseconds; null stays null. Whole microseconds first: 1.024 ms is 1024 µs, not 1023.99…"""
    duration_us = F.rint(F.col(duration_ms) * 1000)
    number = F.floor(F.log2(duration_us) * BUCKETS_PER_OCTAVE) + 1
    return F.when(duration_us < 1, 0).when(duration_us >= 1, number).cast("int")


def middle_ms(number: Column) -> Column:
    """The geometric middle of a bucket, in milliseconds."""
    return F.when(number > 0, F.pow(F.lit(2.0), (number - 0.5) / BUCKETS_PER_OCTAVE) / 1000).otherwise(F.lit(0.0))


def percentiles(buckets: DataFrame, by: Sequence[str], ps: Sequence[float] = PERCENTILES) -> DataFrame:
    """One row per `by` and measure: `messages`, and for each p the duration that at least that share of them did not exceed. 0.5 is
    `p50_ms`, 0.999 is `p999_ms`. The frame may hold LATENCY rows of any batches, hours and queues."""
    keys = [*by, "measure"]
    merged = buckets.groupBy(*keys, "bucket").agg(F.sum("messages").alias("messages"))
    whole = Window.partitionBy(*keys)
    so_far = whole.orderBy("bucket").rowsBetween(Window.unboundedPreceding, Window.currentRow)
    # The quotient of two whole numbers is exactly the double of the literal p, so that 95 of 100 do reach 0.95.
    share = F.sum("messages").over(so_far) / F.sum("messages").over(whole)
    reached = merged.withColumn("share", share).groupBy(*keys)
    first = [middle_ms(F.min(F.when(F.col("share") >= p, F.col("bucket")))).alias(percentile_name(p)) for p in ps]
    return reached.agg(*first, F.sum("messages").alias("messages"))


def percentile_name(p: float) -> str:
    """The column name of a percentile: 0.5 → p50_ms, 0.999 → p999_ms."""
    digits = f"{p:.9f}".rstrip("0").partition(".")[2]
    return f"p{digits:0<2}_ms"
