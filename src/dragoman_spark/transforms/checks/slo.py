"""Service level objectives: whether they are met, and how fast the error budget is used up."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman.lake.schema import OUTCOMES
from dragoman_spark.tables import SLO
from dragoman_spark.transforms.checks.objectives import ALL_QUEUES, Objective, shares
from dragoman_spark.transforms.names import named

# From the shortest to the longest: each contains the one before.
WINDOWS: Final = (("1h", 1), ("6h", 6), ("3d", 72))
_DONE: Final = next(number for number, word in OUTCOMES.items() if word == "done")


def slo(messages: DataFrame, queues: DataFrame, objectives: Iterable[Objective], now: Column | datetime) -> DataFrame:
    """One row per objective and window, exact, from one pass over the messages of the longest window. Every message that ended counts, also
    an expired or cancelled one: its client got no answer. An objective without messages is neither met nor missed: its share is null."""
    wanted = shares(objectives)
    limits = _limits(wanted)
    # A global aggregate has one row even if nothing ended, so objectives without a message are rows, too.
    ended = named(_ended(messages, limits, F.lit(now)), queues).agg(
        F.collect_list(F.struct("queue", "ring", "messages", "good")).alias("ended")
    )
    asked = ended.select("ended", F.inline(_asked(wanted, limits))).select("*", F.inline(_windows()))
    mine = F.filter("ended", _is_asked)
    counted = asked.withColumn("mine", mine).select(
        "*",
        F.aggregate("mine", F.lit(0).cast("long"), lambda sum_, row: sum_ + row["messages"]).alias("messages"),
        F.aggregate("mine", F.lit(0).cast("long"), lambda sum_, row: sum_ + F.get(row["good"], F.col("limit"))).alias(
            "good"
        ),
    )
    # Null if nothing ended.
    share = F.when(F.col("messages") > 0, F.col("good") / F.col("messages"))
    judged = counted.withColumn("share", share).withColumns(
        {
            "burn_rate": (1 - F.col("share")) / (1 - F.col("target")),
            "is_met": F.col("share") >= F.col("target"),
        }
    )
    return SLO.select(judged)


# What makes a message good besides its answer: a measure and its threshold. Objectives that differ only in queue or target share one.
_Limit = tuple[str, float | None]


def _limits(wanted: list[Objective]) -> list[_Limit]:
    return sorted({(objective.measure, objective.threshold_ms) for objective in wanted}, key=str)


def _ended(messages: DataFrame, limits: list[_Limit], now: Column) -> DataFrame:
    """The number of messages that ended, and of those within each limit, by queue and ring: the shortest window they are in."""
    closed_at = F.col("closed_at")
    ring = F.lit(len(WINDOWS) - 1)
    for number, (_, hours) in reversed(list(enumerate(WINDOWS[:-1]))):
        ring = F.when(closed_at > now - _hours(hours), F.lit(number)).otherwise(ring)
    goods = [F.count_if(_is_good(limit)).alias(f"good_{n}") for n, limit in enumerate(limits)]
    counted = (
        messages.where((closed_at > now - _hours(WINDOWS[-1][1])) & (closed_at <= now))
        .groupBy("broker_id", "queue_no", ring.alias("ring"))
        .agg(F.count("*").alias("messages"), *goods)
    )
    good = F.array(*[F.col(f"good_{n}") for n in range(len(limits))]).cast("array<long>")
    return counted.withColumn("good", good)


def _is_good(limit: _Limit) -> Column:
    measure, threshold_ms = limit
    is_done = F.col("outcome") == _DONE
    if threshold_ms is None:
        return is_done
    return is_done & (F.col(f"{measure}_ms") <= threshold_ms)


def _asked(wanted: list[Objective], limits: list[_Limit]) -> Column:
    rows = [
        F.struct(
            F.lit(objective.name).alias("objective"),
            F.lit(objective.queue).alias("queue"),
            F.lit(objective.measure).alias("measure"),
            F.lit(objective.threshold_ms).cast("double").alias("threshold_ms"),
            F.lit(objective.target).cast("double").alias("target"),
            F.lit(limits.index((objective.measure, objective.threshold_ms))).alias("limit"),
        )
        for objective in wanted
    ]
    return F.array(*rows)


def _windows() -> Column:
    return F.array(
        *[F.struct(F.lit(name).alias("window"), F.lit(n).alias("window_no")) for n, (name, _) in enumerate(WINDOWS)]
    )


def _is_asked(row: Column) -> Column:
    is_queue = (F.col("queue") == ALL_QUEUES) | (row["queue"] == F.col("queue"))
    return (row["ring"] <= F.col("window_no")) & is_queue


def _hours(hours: int) -> Column:
    return F.make_dt_interval(hours=F.lit(hours))
