"""Anomalies: hours that differ far from comparable hours.

Each hour is compared with the other hours of its season: the same hour of the week, or of the day if a queue has less than four
weeks of history. Median and median absolute deviation, not mean and deviation: one extreme hour must not hide the next one.

The spread has a minimum, so that in a queue that never varies a single extra message is no anomaly: counts vary by their square
root by chance alone, and 5 % or one message is not worth an alarm.
"""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman_spark.tables import ANOMALIES
from dragoman_spark.transforms.forecast.seasons import DAY_HOURS, WEEK_HOURS, hour_begin, hour_no, next_hour_no
from dragoman_spark.transforms.once import once

SCORE_MIN: Final = 4.0
# An hour is compared with at least three others.
SEASONS_MIN: Final = 4
# Older hours are no longer comparable, and every hour of a season is compared with all others: the cost is quadratic.
HISTORY_HOURS: Final = 12 * WEEK_HOURS
# The deviation of a normal distribution is 1.4826 times its median absolute deviation.
DEVIATION: Final = 1.4826
SHARE_MIN: Final = 0.05
COUNT_MIN: Final = 1.0
# Mean waits are not counts, so the square root does not apply to them. Smaller differences are unnoticeable, and timers round.
WAIT_SHARE_MIN: Final = 0.1
WAIT_MS_MIN: Final = 10.0
_VALUES: Final = ("accepted", "failed", "waited", "wait_ms")


def anomalies(throughput: DataFrame, now: Column | datetime) -> DataFrame:
    """One row per queue, full hour and metric with a score of at least 4, in either direction. An hour without traffic has 0 accepted and 0
    failed, and no wait. A queue with less than four days of history has no season, and no anomalies."""
    metrics = _metrics(_without_gaps(_hours(throughput), F.lit(now)))
    place = F.col("hour_no") % F.col("season_hours")
    seasons = metrics.groupBy("queue", "metric", "season_hours", place.alias("place")).agg(
        # Sorted by value: it stays sorted when one member is removed.
        F.sort_array(F.collect_list(F.struct("value", "hour_no"))).alias("members")
    )
    scored = seasons.where(F.size("members") >= SEASONS_MIN).select(
        "queue", "metric", "season_hours", F.inline(F.transform("members", _against_others))
    )
    season = F.when(F.col("season_hours") == WEEK_HOURS, F.lit("hour_of_week")).otherwise(F.lit("hour_of_day"))
    listed = (
        scored.withColumn("spread", F.greatest(DEVIATION * F.col("deviation"), _spread_min()))
        .withColumn("score", (F.col("value") - F.col("expected")) / F.col("spread"))
        .where(F.abs("score") >= SCORE_MIN)
        .withColumn("hour", hour_begin(F.col("hour_no")))
        .withColumn("season", season)
    )
    return ANOMALIES.select(listed)


def _hours(throughput: DataFrame) -> DataFrame:
    """One row per queue and hour with traffic."""
    failed = F.col("rejected") + F.col("expired") + F.col("quarantined")
    return throughput.groupBy("queue", hour_no(F.col("minute")).alias("hour_no")).agg(
        F.min("minute").alias("first_minute"),
        F.sum("accepted").alias("accepted"),
        F.sum(failed).alias("failed"),
        F.sum("waited").alias("waited"),
        F.sum("wait_ms").alias("wait_ms"),
    )


def _without_gaps(hours: DataFrame, now: Column) -> DataFrame:
    """One row per queue and full hour of its history, with or without traffic: each hour with traffic is followed by the empty ones up to
    the next. In one shuffle, by queue, which also serves the seasons."""
    of_queue = Window.partitionBy("queue")
    begin_no = F.greatest(next_hour_no(F.min("first_minute").over(of_queue)), hour_no(now) - HISTORY_HOURS)
    next_no = F.coalesce(F.lead("hour_no").over(of_queue.orderBy("hour_no")), hour_no(now))
    seen = hour_no(now) - F.col("begin_no")
    season_hours = F.when(seen >= SEASONS_MIN * WEEK_HOURS, F.lit(WEEK_HOURS)).when(
        seen >= SEASONS_MIN * DAY_HOURS, F.lit(DAY_HOURS)
    )
    first, last = F.greatest("hour_no", "begin_no"), F.least(F.col("next_no"), hour_no(now)) - 1
    filled = (
        hours.withColumn("begin_no", begin_no)
        .withColumn("next_no", next_no)
        .withColumn("season_hours", season_hours)
        .where(F.col("season_hours").isNotNull() & (first <= last))
        .withColumn("each_no", F.explode(F.sequence(first, last)))
    )
    values = [F.when(F.col("each_no") == F.col("hour_no"), F.col(name)).alias(name) for name in _VALUES]
    return filled.select("queue", "season_hours", F.col("each_no").alias("hour_no"), *values)


def _metrics(hours: DataFrame) -> DataFrame:
    """One row per queue, hour and metric that has a value."""
    values = {
        "accepted": F.coalesce("accepted", F.lit(0)).cast("double"),
        "failed": F.coalesce("failed", F.lit(0)).cast("double"),
        "wait_ms": F.col("wait_ms") / F.nullif(F.col("waited"), F.lit(0)),
    }
    rows = [F.struct(F.lit(metric).alias("metric"), value.alias("value")) for metric, value in values.items()]
    return hours.select("queue", "season_hours", "hour_no", F.inline(F.array(*rows))).where(F.col("value").isNotNull())


def _against_others(member: Column) -> Column:
    others = F.transform(
        F.filter("members", lambda other: other["hour_no"] != member["hour_no"]), lambda other: other["value"]
    )
    return once(
        others,
        lambda values: once(
            _median(values),
            lambda expected: F.struct(
                member["hour_no"].alias("hour_no"),
                member["value"].alias("value"),
                expected.alias("expected"),
                once(F.sort_array(F.transform(values, lambda v: F.abs(v - expected))), _median).alias("deviation"),
            ),
        ),
    )


def _median(in_order: Column) -> Column:
    """The median of sorted values: the middle one, or the mean of the two."""
    size = F.size(in_order)
    return (F.get(in_order, F.floor((size - 1) / 2).cast("int")) + F.get(in_order, F.floor(size / 2).cast("int"))) / 2


def _spread_min() -> Column:
    expected = F.col("expected")
    of_counts = F.greatest(F.sqrt(expected), SHARE_MIN * expected, F.lit(COUNT_MIN))
    of_waits = F.greatest(WAIT_SHARE_MIN * expected, F.lit(WAIT_MS_MIN))
    return F.when(F.col("metric") == "wait_ms", of_waits).otherwise(of_counts)
