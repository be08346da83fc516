"""Workers: how busy each was, and how its attempts ended.

A worker may hold several messages at once, so its busy time is the length of the union of the spans in which it held one. In the order
in which they began, a span adds its part beyond the latest end of all that began before:

    ├─────────┤                 adds all
       ├───┤                    adds nothing
            ├──────┤            adds what is beyond the first
                      ├────┤    adds all
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman.lake import schema as lake
from dragoman_spark.schemas import worded
from dragoman_spark.tables import WORKERS
from dragoman_spark.transforms.life.outcomes import DONE

_KEYS: Final = ["broker_id", "worker_no"]
_FAILURES: Final = ("failed", "timed_out", "returned", "retries_used_up", "refused_by_worker")
_FAILURE_NUMBERS: Final = [number for number, word in lake.REASONS.items() if word in _FAILURES]
_COUNT_BITS: Final = 40  # a worker's number is boot_no << 40 | count, shown as w<boot>.<count>


def workers(attempts: DataFrame, peers: DataFrame) -> DataFrame:
    """Rows of WORKERS, from attempts that have ended. A worker that joined before the lake begins is included, without the values that only
    its joining has: no work is left out."""
    did = (
        _busy(_clipped(attempts, peers))
        .groupBy(*_KEYS)
        .agg(
            F.sum("busy_us").alias("busy_us"),
            F.sum("clipped_us").alias("clipped_us"),
            F.sum("held_us").alias("held_us"),
            F.count(F.lit(1)).alias("attempts"),
            F.count_if("is_done").alias("done"),
            F.count_if("is_failed").alias("failed"),
            F.count_if("is_death").alias("deaths"),
            F.max("worker_dialect").alias("dialect_seen"),
        )
    )
    known = peers.join(did, _KEYS, "full").withColumn("dialect", F.coalesce("worker_dialect", "dialect_seen"))
    return WORKERS.select(_told(known))


def _clipped(attempts: DataFrame, peers: DataFrame) -> DataFrame:
    """Attempts as spans of microseconds, cut to the time their worker was connected."""
    joined_us = F.unix_micros("joined_at")
    spans = peers.select(*_KEYS, joined_us.alias("joined_us"), (joined_us + _us("connected_ms")).alias("left_us"))
    leased_us, ended_us = F.unix_micros("leased_at"), F.unix_micros("ended_at")
    # If another worker's late reply ended the attempt, it is no reply of this one: its dialect is null then.
    is_done = (F.col("outcome") == DONE) & F.col("worker_dialect").isNotNull()
    return attempts.join(F.broadcast(spans), _KEYS, "left").select(
        *_KEYS,
        F.greatest(leased_us, "joined_us").alias("begin_us"),
        F.least(ended_us, "left_us").alias("end_us"),
        (ended_us - leased_us).alias("held_us"),
        is_done.alias("is_done"),
        (F.col("reason").isin(_FAILURE_NUMBERS) & ~F.col("is_death")).alias("is_failed"),
        "is_death",
        "worker_dialect",
    )


def _busy(spans: DataFrame) -> DataFrame:
    """Each span with its contribution to its worker's busy time."""
    before = Window.partitionBy(*_KEYS).orderBy("begin_us").rowsBetween(Window.unboundedPreceding, -1)
    begin_us, end_us = F.col("begin_us"), F.col("end_us")
    beyond_us = end_us - F.greatest(begin_us, F.max("end_us").over(before))
    return spans.withColumn("busy_us", F.greatest(beyond_us, F.lit(0))).withColumn(
        "clipped_us", F.greatest(end_us - begin_us, F.lit(0))
    )


def _told(known: DataFrame) -> DataFrame:
    """The table's own columns, from what is known of a worker's connection (maybe nothing) and its work (maybe none)."""
    connected_ms = F.col("connected_ms")
    lasted_ms = F.when(connected_ms > 0, connected_ms)
    busy_ms = F.coalesce("busy_us", F.lit(0)) / 1000
    attempts = F.coalesce("attempts", F.lit(0))
    return known.select(
        *_KEYS,
        F.coalesce(_unless_empty("identity"), _unless_empty("remote"), _people_see()).alias("worker"),
        worded("dialect", lake.DIALECTS).alias("worker_dialect"),
        "joined_at",
        "left_at",
        worded("reason", lake.REASONS).alias("left_because"),
        "connected_ms",
        busy_ms.alias("busy_ms"),
        (connected_ms - busy_ms).alias("idle_ms"),
        (busy_ms / lasted_ms).alias("utilisation"),
        (F.coalesce("clipped_us", F.lit(0)) / 1000 / lasted_ms).alias("held_mean"),
        attempts.alias("attempts"),
        *[F.coalesce(name, F.lit(0)).alias(name) for name in ("done", "failed", "deaths")],
        (F.col("held_us") / 1000 / F.col("attempts")).alias("work_ms_mean"),
    )


def _us(duration_ms: str) -> Column:
    return F.rint(F.col(duration_ms) * 1000).cast("long")


def _unless_empty(column: str) -> Column:
    return F.when(F.col(column) != "", F.col(column))


def _people_see() -> Column:
    number = F.col("worker_no")
    count = number.bitwiseAND(F.lit((1 << _COUNT_BITS) - 1))
    return F.concat(F.lit("w"), F.shiftright(number, _COUNT_BITS).cast("string"), F.lit("."), count.cast("string"))
