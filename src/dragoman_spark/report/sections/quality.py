"""Data quality: the expectations that every batch was checked for, and the facts that fit no life."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report import words
from dragoman_spark.report.section import Cell, Grid, Reader, Section

NAME: Final = "quality"
LABEL: Final = "Quality"
EXAMPLE_LENGTH_MAX: Final = 240  # characters


def broken(read: Reader) -> list[Row]:
    """Every expectation with the number of rows that break it, summed over all batches."""
    return (
        read("quality")
        .groupBy("expectation")
        .agg(
            F.sum("rows").alias("rows"),
            F.max("is_fatal").alias("is_fatal"),
            F.count_distinct("batch").alias("batches"),
            F.max("example").alias("example"),
        )
        .orderBy(F.desc("rows"), "expectation")
        .collect()
    )


def section(rows: list[Row], orphans: dict[str, int]) -> Section:
    if not rows and not orphans:
        return Section(NAME, LABEL, "No expectation has been tried: run the pipeline first.")
    failing = [row for row in rows if row["rows"]]
    fatal = [row for row in failing if row["is_fatal"]]
    if failing:
        title = f"{len(failing)} of {words.several(len(rows), 'expectation')} {words.verb(len(failing), 'is', 'are')} broken"
    else:
        title = f"All {len(rows)} expectations hold" if len(rows) > 1 else "The expectation holds"
    grids = [Grid("Expectations", ("expectation", "", "# rows that break it", "# batches tried", "an example"), tuple(map(_cells, rows)), is_open=True)]  # fmt: skip
    if orphans:
        listed = tuple((why.replace("_", " "), words.count(n)) for why, n in sorted(orphans.items()))
        grids.append(
            Grid(
                "Messages whose facts fit no life (before lake: no fault)", ("why", "# messages"), listed, is_open=True
            )
        )
    return Section(
        NAME,
        LABEL,
        title,
        "Each expectation is tried on every batch of facts; 0 rows is what is expected. A broken fatal one makes the pipeline "
        "command fail.",
        grids=tuple(grids),
        alarm=f"broken: {', '.join(row['expectation'] for row in fatal[:4])}" if fatal else "",
    )


def _cells(row: Row) -> tuple[str | Cell, ...]:
    state = Cell("holds", "good")
    if row["rows"]:
        state = Cell("broken", "bad") if row["is_fatal"] else Cell("warns")
    example = row["example"] or ""
    if len(example) > EXAMPLE_LENGTH_MAX:
        example = example[: EXAMPLE_LENGTH_MAX - 1] + "…"
    return row["expectation"].replace("_", " "), state, words.count(row["rows"]), words.count(row["batches"]), example
