"""Data quality: every expectation, how many rows break it, and one example.

A first fast pass over every fact checks whether any fact of a run breaks any condition. Nearly always none does. Only the runs in
which one does are read again, to count the rows and to show an example.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from dragoman_spark.tables import QUALITY
from dragoman_spark.transforms.checks.expectations import EXPECTATIONS, OF_FACTS, ORPHAN, TIME_BACKWARDS, Expectation

# Facts are checked in runs of 1024: sorting them all to compare each with the one before would cost more than all other tables. A step back
# that is compensated within the same run stays undetected.
_RUN_SHIFT: Final = 10

# How many rows break an expectation, and one of them as JSON.
Seen = tuple[int, str | None]


def quality(batch: int, facts: DataFrame, orphans: DataFrame, seen: Mapping[str, Seen] | None = None) -> DataFrame:
    """One row per expectation, broken or not. `seen` has the results that only the files show: of `gap` and `schema_version`."""
    found = _of_facts(facts).unionByName(_of_orphans(orphans))
    entry = F.struct("expectation", F.struct("rows", "example"))
    by_name = found.agg(F.map_from_entries(F.collect_list(entry)).alias("found"))
    rows = by_name.select("found", F.inline(F.array(*[_expected(one, seen or {}) for one in EXPECTATIONS])))
    said = F.try_element_at("found", F.col("expectation"))
    return QUALITY.select(
        rows.withColumn("batch", F.lit(batch))
        .withColumn("rows", F.coalesce(said["rows"], "rows_seen"))
        .withColumn("example", F.coalesce(said["example"], "example_seen"))
    )


def _of_facts(facts: DataFrame) -> DataFrame:
    """`expectation, rows, example` of those that facts break. If no run is suspect, none is read again: Spark sees that before it begins."""
    told = facts.drop("body")
    suspects = (
        _runs(facts)
        .where((F.col("is_broken") == 1) | F.col("is_back"))
        .select("broker_id", "run", "first_lsn", "is_back")
    )
    near = told.withColumn("run", _run()).join(F.broadcast(suspects), ["broker_id", "run"])
    names = [F.when(F.expr(one.broken_if), one.name) for one in OF_FACTS]
    names.append(F.when(F.col("is_back") & (F.col("lsn") == F.col("first_lsn")), TIME_BACKWARDS.name))
    broken = near.withColumn("expectation", F.explode(F.array_compact(F.array(*names))))
    return _counted(broken, F.min_by(F.struct(*told.columns), "lsn"))


def _runs(facts: DataFrame) -> DataFrame:
    """One row per run: whether any of its facts breaks a condition, and whether its time goes backwards. It does not if its first fact has
    its earliest instant, its last one the latest, and it begins no earlier than the run before it ended."""
    any_broken = " or ".join(f"({one.broken_if})" for one in OF_FACTS)
    runs = facts.groupBy("broker_id", _run().alias("run")).agg(
        # `max` evaluates it once. Aggregates that do so several times make more code than Java compiles (8000 bytes).
        F.max(F.expr(f"if({any_broken}, 1, 0)")).alias("is_broken"),
        F.min("lsn").alias("first_lsn"),
        F.min("at").alias("earliest_at"),
        F.max("at").alias("latest_at"),
        F.min_by("at", "lsn").alias("first_at"),
        F.max_by("at", "lsn").alias("last_at"),
    )
    before_at = F.lag("latest_at").over(Window.partitionBy("broker_id").orderBy("run"))
    is_back = (
        (F.col("first_at") != F.col("earliest_at"))
        | (F.col("last_at") != F.col("latest_at"))
        | F.coalesce(F.col("earliest_at") < before_at, F.lit(False))
    )
    return runs.withColumn("is_back", is_back)


def _of_orphans(orphans: DataFrame) -> DataFrame:
    faults = orphans.where(F.col("why") != "before_lake").withColumn("expectation", F.lit(ORPHAN.name))
    return _counted(faults, F.min_by(F.struct(*orphans.columns), "first_lsn"))


def _counted(broken: DataFrame, example: Column) -> DataFrame:
    return broken.groupBy("expectation").agg(F.count("*").alias("rows"), F.to_json(example).alias("example"))


def _run() -> Column:
    return F.shiftright("lsn", _RUN_SHIFT)


def _expected(expectation: Expectation, seen: Mapping[str, Seen]) -> Column:
    rows, example = seen.get(expectation.name, (0, None))
    return F.struct(
        F.lit(expectation.name).alias("expectation"),
        F.lit(expectation.is_fatal).alias("is_fatal"),
        F.lit(rows).cast("long").alias("rows_seen"),
        F.lit(example).cast("string").alias("example_seen"),
    )
