"""Anomalies: hours of a queue that differ far from comparable hours."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import OTHERS, Period
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "anomalies"
LABEL: Final = "Anomalies"
DRAWN_MAX: Final = 400  # the strongest
SHOWN_MAX: Final = 20

_METRICS: Final = {  # words, colour, marker
    "accepted": ("accepted messages", look.BLUE, "o"),
    "failed": ("failed messages", look.ROSE, "s"),
    "wait_ms": ("mean wait", look.COLOURS["wine"][0], "D"),
}
_UNKNOWN: Final = ("", look.GREY, "X")


def section(read: Reader, period: Period) -> Section:
    hour_s = F.unix_seconds("hour").alias("hour_s")
    strongest = read("anomalies").orderBy(F.desc(F.abs("score")), "hour", "queue", "metric")
    columns = ("queue", "metric", "value", "expected", "score", "season")
    rows = strongest.select(hour_s, *columns).limit(DRAWN_MAX).collect()
    if not rows:
        return Section(NAME, LABEL, "Nothing was out of the ordinary: every hour looked like others of its kind.")
    found = f"more than {DRAWN_MAX} hours" if len(rows) == DRAWN_MAX else words.several(len(rows), "hour")
    top = rows[0]
    return Section(
        NAME,
        LABEL,
        f"{found[0].upper()}{found[1:]} out of the ordinary; the strongest: {_told(top)}",
        "A mark is one hour of one queue that lies at least 4 robust deviations from the median of the same hour of the week (or of "
        "the day, where there are few weeks). The larger, the stronger. Filled: more than usual; hollow: less.",
        _figure(rows, period),
        (_numbers(rows[:SHOWN_MAX]),),
    )


def _told(row: Row) -> str:
    what = _METRICS.get(row["metric"], (row["metric"],))[0]
    value, expected = _amount(row["metric"], row["value"]), _amount(row["metric"], row["expected"])
    return (
        f"{what} of {words.name(row['queue'])} on {words.instant(row['hour_s'])} UTC, {value} where {expected} is usual"
    )


def _amount(metric: str, value: float | None) -> str:
    return words.duration(value) if metric == "wait_ms" else words.count(value)


def _figure(rows: list[Row], period: Period) -> Figure:
    queues = [queue for queue in period.queues if any(row["queue"] == queue for row in rows)]
    has_others = any(row["queue"] not in queues for row in rows)
    lines = [*[words.name(queue) for queue in queues], *([OTHERS] if has_others else [])]
    figure = look.new_figure(1.2 + 0.28 * len(lines))
    axes = figure.subplots()
    for metric in dict.fromkeys(row["metric"] for row in rows):
        label, colour, marker = _METRICS.get(metric, _UNKNOWN)
        for is_more in (True, False):
            some = [row for row in rows if row["metric"] == metric and (row["score"] > 0) == is_more]
            places = [queues.index(row["queue"]) if row["queue"] in queues else len(queues) for row in some]
            sizes = [14 + 5 * min(abs(row["score"]), 24) for row in some]
            axes.scatter(
                [row["hour_s"] for row in some], places, s=sizes, marker=marker, linewidths=1.1,
                facecolors=colour if is_more else "none", edgecolors=colour, alpha=0.85,
            )  # fmt: skip
        axes.scatter([], [], s=30, marker=marker, color=colour, label=label or metric)
    axes.set_yticks(range(len(lines)), lines, color=look.INK)
    axes.set_ylim(len(lines) - 0.5, -0.5)
    axes.grid(axis="y")
    look.bare(axes)
    first_s = min([period.first_s or rows[0]["hour_s"], *[row["hour_s"] for row in rows]])
    last_s = max([period.last_s, *[row["hour_s"] + 3600 for row in rows]])
    look.time_axis(axes, first_s, last_s)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return figure


def _numbers(rows: list[Row]) -> Grid:
    cells = tuple(
        (
            words.instant(row["hour_s"]),
            words.name(row["queue"]),
            _METRICS.get(row["metric"], (row["metric"],))[0],
            _amount(row["metric"], row["value"]),
            _amount(row["metric"], row["expected"]),
            f"{row['score']:+,.1f}",
            str(row["season"]).replace("_", " "),
        )
        for row in rows
    )
    heads = ("hour (UTC)", "queue", "what", "# was", "# usual", "# deviations", "compared by")
    return Grid(f"The {len(cells)} strongest" if len(cells) > 1 else "In numbers", heads, cells, is_open=True)
