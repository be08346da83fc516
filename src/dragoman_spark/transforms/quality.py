"""Is the data what it must be? Every expectation, how many rows break it, and one that does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman_spark.tables import QUALITY
from dragoman_spark.transforms.expectations import (
    GAP,
    OF_FACTS,
    ORPHAN,
    SCHEMA_VERSION,
    TIME_BACKWARDS,
    Expectation,
)

# Facts are looked at in runs of 1024: sorting them all to compare each with the one before would cost more than all other tables.
# What can hide is a step back that is made up for within the same run.
_RUN_SHIFT: Final = 10


# How many rows break an expectation, and one of them as JSON.
Seen = tuple[int, str | None]


def quality(batch: int, facts: DataFrame, orphans: DataFrame, seen: Mapping[str, Seen] | None = None) -> DataFrame:
    """One row per expectation, broken or not. `seen` brings what only the files tell: of `gap` and `schema_version`."""
    found = _of_facts(facts).unionByName(_of_time(facts)).unionByName(_of_orphans(orphans))
    of_files = [_row(one, *map(F.lit, (seen or {}).get(one.name, (0, None)))) for one in (GAP, SCHEMA_VERSION)]
    return QUALITY.select(
        found.agg(F.flatten(F.collect_list("rows")).alias("rows"))
        .select(F.inline(F.concat("rows", F.array(*of_files))))
        .withColumn("batch", F.lit(batch))
    )


def _of_facts(facts: DataFrame) -> DataFrame:
    """All conditions in one scan. Only facts that break one go further, and only they are made into JSON."""
    broken = facts.drop("body").where(" or ".join(f"({one.broken_if})" for one in OF_FACTS))
    return broken.agg(F.array(*[_counted(one, F.expr(one.broken_if), "lsn") for one in OF_FACTS]).alias("rows"))


def _of_orphans(orphans: DataFrame) -> DataFrame:
    return orphans.agg(F.array(_counted(ORPHAN, F.col("why") != "before_lake", "first_lsn")).alias("rows"))


def _of_time(facts: DataFrame) -> DataFrame:
    """A run's first fact has its earliest instant, its last one the latest, and no run begins before the one ahead of it ended."""
    runs = facts.groupBy("broker_id", F.shiftright("lsn", _RUN_SHIFT).alias("run")).agg(
        F.min("lsn").alias("first_lsn"),
        F.max("lsn").alias("last_lsn"),
        F.min("at").alias("earliest_at"),
        F.max("at").alias("latest_at"),
        F.min_by("at", "lsn").alias("first_at"),
        F.max_by("at", "lsn").alias("last_at"),
    )
    before = Window.partitionBy("broker_id").orderBy("run")
    is_back = (
        (F.col("first_at") != F.col("earliest_at"))
        | (F.col("last_at") != F.col("latest_at"))
        | F.coalesce(F.col("earliest_at") < F.col("before_at"), F.lit(False))
    )
    backward = runs.withColumn("before_at", F.lag("latest_at").over(before)).where(is_back)
    return backward.agg(F.array(_counted(TIME_BACKWARDS, F.lit(True), "first_lsn")).alias("rows"))


def _counted(expectation: Expectation, is_broken: Column, order: str) -> Column:
    example = F.min_by(F.when(is_broken, F.to_json(F.struct("*"))), F.when(is_broken, F.col(order)))
    return _row(expectation, F.count_if(is_broken), example)


def _row(expectation: Expectation, rows: Column, example: Column) -> Column:
    return F.struct(
        F.lit(expectation.name).alias("expectation"),
        rows.cast("long").alias("rows"),
        F.lit(expectation.is_fatal).alias("is_fatal"),
        example.cast("string").alias("example"),
    )
