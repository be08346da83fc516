"""The percentiles of all sections, read from the histograms in one pass: overall, by step, by queue, and by hour of the week."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report.period import Period, hour_of_week, step_of
from dragoman_spark.report.section import Reader
from dragoman_spark.transforms.volume.latency import percentiles

SHARES: Final = (0.5, 0.95, 0.99)
PERCENTS: Final = ("p50_ms", "p95_ms", "p99_ms")

_HOUR_S: Final = 3600
_ALL, _STEP, _QUEUE, _HOUR_OF_WEEK = range(4)


@dataclass(frozen=True, slots=True)
class Timings:
    """Rows with PERCENTS and `messages`; the last part of each key is the measure."""

    step_s: int = _HOUR_S
    of_all: dict[str, Row] = field(default_factory=dict)
    by_step: dict[tuple[int, str], Row] = field(default_factory=dict)
    by_queue: dict[tuple[str | None, str], Row] = field(default_factory=dict)  # None: all but the busiest
    by_hour_of_week: dict[tuple[int, str], Row] = field(default_factory=dict)


def timings(read: Reader, period: Period) -> Timings:
    """Compute all percentiles; a message counts once in each grouping."""
    step_s = period.step_s(_HOUR_S)
    nobody, no_number = F.lit(None).cast("string"), F.lit(0).cast("long")
    cuts = [
        (_ALL, no_number, nobody),
        (_STEP, step_of("hour", step_s), nobody),
        (_QUEUE, no_number, period.shown()),
        (_HOUR_OF_WEEK, hour_of_week("hour"), nobody),
    ]
    exploded = F.inline(
        F.array(
            *[
                F.struct(F.lit(cut).alias("cut"), number.cast("long").alias("number"), queue.alias("shown"))
                for cut, number, queue in cuts
            ]
        )
    )
    frame = (
        read("latency").where(F.col("measure").isin("wait", "total")).select(exploded, "measure", "bucket", "messages")
    )
    found = Timings(step_s)
    for row in percentiles(frame, ["cut", "number", "shown"], SHARES).collect():
        cut, measure = row["cut"], row["measure"]
        if cut == _ALL:
            found.of_all[measure] = row
        elif cut == _STEP:
            found.by_step[row["number"], measure] = row
        elif cut == _QUEUE:
            found.by_queue[row["shown"], measure] = row
        else:
            found.by_hour_of_week[row["number"], measure] = row
    return found
