"""The workers that each queue needs in the next seven days."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman_spark.tables import CAPACITY
from dragoman_spark.transforms.checks.objectives import ALL_QUEUES, Objective, mean_waits_ms
from dragoman_spark.transforms.forecast.erlang import staffing
from dragoman_spark.transforms.forecast.seasons import (
    DAY_HOURS,
    WEEK_HOURS,
    hour_begin,
    hour_no,
    hours_of_season,
    next_hour_no,
)

# The last week's work predicts the next week better than last year's; but a mean of a few messages is unreliable.
RECENT_HOURS: Final = WEEK_HOURS
RECENT_MESSAGES_MIN: Final = 100
_HOUR_S: Final = 3600.0


def capacity(throughput: DataFrame, objectives: Iterable[Objective], now: Column | datetime) -> DataFrame:
    """One row per queue and each of the next 168 full hours.

    Arrivals: the mean of the same hour of all weeks seen, empty ones included; for a queue not seen at that hour of the week, the
    mean of that hour of the day; else of all its time. Service: the mean work of the last week if at least 100 messages were
    processed in it, else of all. Workers: Erlang C; null if no message was ever processed.
    """
    forecast = (
        _queues(_hours(throughput), F.lit(now))
        .withColumn("hour_no", F.explode(F.sequence("next_no", F.col("next_no") + WEEK_HOURS - 1)))
        .withColumn("arrivals_per_s", _arrivals_per_s())
        .withColumn("weeks", _seen_hours(WEEK_HOURS))
        .withColumn("load_erlangs", F.col("arrivals_per_s") * F.col("service_ms") / 1000)
        .withColumn("hour", hour_begin(F.col("hour_no")))
        .withColumn("wait_objective_ms", _wanted_ms(mean_waits_ms(objectives)))
    )
    needed = staffing(F.col("load_erlangs"), F.col("service_ms"), F.col("wait_objective_ms"))
    # An array of one, and inline_outer: the search runs once per row, and a row without a result stays.
    staffed = forecast.select("*", F.inline_outer(F.array(needed))).withColumnRenamed("workers", "workers_needed")
    return CAPACITY.select(staffed)


def _hours(throughput: DataFrame) -> DataFrame:
    """One row per queue and hour with traffic."""
    return throughput.groupBy("queue", hour_no(F.col("minute")).alias("hour_no")).agg(
        F.min("minute").alias("first_minute"),
        F.sum("accepted").alias("accepted"),
        F.sum("worked").alias("worked"),
        F.sum("work_ms").alias("work_ms"),
    )


def _queues(hours: DataFrame, now: Column) -> DataFrame:
    """One row per queue, with its full hours [begin_no, end_no).

    The other columns are the arrivals at each hour of the week in them, its mean rate, its service time, and the first hour to forecast.

    All in one shuffle: what is clustered by queue is clustered by queue and place, too.
    """
    begin_no = next_hour_no(F.min("first_minute").over(Window.partitionBy("queue")))
    is_full = (F.col("hour_no") >= F.col("begin_no")) & (F.col("hour_no") < hour_no(now))
    is_recent = F.col("hour_no") >= hour_no(now) - RECENT_HOURS
    places = (
        hours.withColumn("begin_no", begin_no)
        .groupBy("queue", "begin_no", (F.col("hour_no") % WEEK_HOURS).alias("place"))
        .agg(
            F.sum(F.when(is_full, F.col("accepted")).otherwise(0)).alias("seen"),
            F.min("first_minute").alias("first_minute"),
            F.sum("accepted").alias("accepted"),
            F.sum("worked").alias("worked"),
            F.sum("work_ms").alias("work_ms"),
            F.sum(F.when(is_recent, F.col("worked"))).alias("recent_worked"),
            F.sum(F.when(is_recent, F.col("work_ms"))).alias("recent_ms"),
        )
    )
    # The minute of the first message counts as whole.
    seen_us = F.greatest(F.unix_micros(now) - F.unix_micros(F.min("first_minute")), F.lit(60_000_000))
    return places.groupBy("queue", "begin_no").agg(
        F.greatest(hour_no(now), F.col("begin_no")).alias("end_no"),
        next_hour_no(now).alias("next_no"),
        F.map_from_entries(F.collect_list(F.struct("place", "seen"))).alias("seen"),
        (F.sum("accepted") / (seen_us / 1e6)).alias("mean_per_s"),
        F.when(F.sum("recent_worked") >= RECENT_MESSAGES_MIN, F.sum("recent_ms") / F.sum("recent_worked"))
        .otherwise(F.sum("work_ms") / F.nullif(F.sum("worked"), F.lit(0)))
        .alias("service_ms"),
    )


def _seen_hours(season_hours: int) -> Column:
    place = F.col("hour_no") % season_hours
    return hours_of_season(F.col("begin_no"), F.col("end_no"), place, season_hours)


def _arrivals_per_s() -> Column:
    by_week, by_day = _seen_hours(WEEK_HOURS), _seen_hours(DAY_HOURS)
    of_day = sum((_seen(F.col("hour_no") + day * DAY_HOURS) for day in range(1, 7)), start=_seen(F.col("hour_no")))
    return (
        F.when(by_week > 0, _seen(F.col("hour_no")) / F.nullif(by_week, F.lit(0)) / _HOUR_S)
        .when(by_day > 0, of_day / F.nullif(by_day, F.lit(0)) / _HOUR_S)
        .otherwise(F.col("mean_per_s"))
    )


def _seen(number: Column) -> Column:
    """The arrivals at this hour of the week, in all weeks."""
    return F.coalesce(F.element_at("seen", number % WEEK_HOURS), F.lit(0))


def _wanted_ms(waits_ms: dict[str, float]) -> Column:
    wanted = F.lit(waits_ms[ALL_QUEUES])
    pairs = [F.lit(part) for queue, wait_ms in waits_ms.items() if queue != ALL_QUEUES for part in (queue, wait_ms)]
    return F.coalesce(F.element_at(F.create_map(*pairs), F.col("queue")), wanted) if pairs else wanted
