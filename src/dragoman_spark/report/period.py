"""The period of the report, its queues, and its time steps.

Instants are seconds since 1970, UTC, throughout: a collected timestamp would be in the local time zone.

A step is chosen so that a line has at most POINTS_MAX points: minutes, hours, 6 hours, days, whatever the period needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from dragoman_spark.report import words
from dragoman_spark.report.section import Reader

STEPS_S: Final = (60, 300, 900, 3600, 21_600, 86_400, 604_800)
POINTS_MAX: Final = 400
QUEUES_SHOWN_MAX: Final = 8
OTHERS: Final = "others"

_HOUR_S: Final = 3600
_DAY_S: Final = 86_400
_STEP_WORDS: Final = dict(
    zip(STEPS_S, ("minute", "5 minutes", "15 minutes", "hour", "6 hours", "day", "week"), strict=True)
)
_SUMS: Final = ("accepted", "done", "rejected", "expired", "cancelled", "released", "quarantined")


@dataclass(frozen=True, slots=True)
class Period:
    """From the first minute with activity to the end of the last; the busiest queues and the totals."""

    first_s: int = 0
    last_s: int = 0
    queues: tuple[str, ...] = ()
    totals: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_SUMS, 0))

    @property
    def is_empty(self) -> bool:
        return self.last_s == 0

    @property
    def seconds(self) -> int:
        return self.last_s - self.first_s

    def step_s(self, finest_s: int = 60, points_max: int = POINTS_MAX) -> int:
        """The finest step that keeps lines readable."""
        return next((s for s in STEPS_S if s >= finest_s and self.seconds <= s * points_max), STEPS_S[-1])

    def steps(self, step_s: int) -> list[int]:
        """The beginning of every step of the period."""
        return list(range(self.first_s // step_s * step_s, self.last_s, step_s))

    def shown(self, queue: str = "queue") -> Column:
        """The queue, if it is one of the busiest; null for all others."""
        return F.when(F.col(queue).isin(list(self.queues)), F.col(queue))


def survey(read: Reader) -> Period:
    """One pass over `throughput`: the period, its queues, and totals."""
    minute_s = F.unix_seconds("minute")
    rows = (
        read("throughput")
        .rollup("queue")
        .agg(
            F.grouping("queue").alias("is_all"),
            F.min(minute_s).alias("first_s"),
            F.max(minute_s).alias("last_s"),
            *[F.sum(name).alias(name) for name in _SUMS],
        )
        .orderBy(F.desc("is_all"), F.desc("accepted"), "queue")
        .limit(1 + QUEUES_SHOWN_MAX)
        .collect()
    )
    if not rows or rows[0]["first_s"] is None:
        return Period()
    queues = tuple(row["queue"] for row in rows[1:])
    totals = {name: int(rows[0][name] or 0) for name in _SUMS}
    return Period(int(rows[0]["first_s"]), int(rows[0]["last_s"]) + 60, queues, totals)


def step_of(column: str, step_s: int) -> Column:
    """The beginning of an instant's step."""
    seconds = F.unix_seconds(column)
    return (seconds - F.pmod(seconds, F.lit(step_s))).alias("step")


def hour_of_week(column: str) -> Column:
    """0 … 167 from Monday 00:00. 1 January 1970 was a Thursday."""
    return F.pmod(F.floor(F.unix_seconds(column) / _HOUR_S) + 72, F.lit(168)).cast("int").alias("hour_of_week")


def step_words(step_s: int) -> str:
    """As in `every 6 hours`, `per hour`."""
    return _STEP_WORDS[step_s]


def step_begin(at_s: int, step_s: int) -> str:
    """The beginning of a step, as precise as the step is long."""
    return words.day(at_s) if step_s >= _DAY_S else words.instant(at_s)
