"""Capacity: the workers needed in the next 168 hours, stacked by queue."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import OTHERS, QUEUES_SHOWN_MAX, Period
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "capacity"
LABEL: Final = "Capacity"

_HOUR_S: Final = 3600

ByHour = dict[tuple[int, str | None], int]


def section(read: Reader, period: Period) -> Section:
    capacity = read("capacity").withColumn("hour_s", F.unix_seconds("hour"))
    peaks = _peaks(capacity)
    if not peaks:
        return Section(NAME, LABEL, "There is no forecast: it needs messages that workers have settled.")
    shown = F.when(F.col("queue").isin([row["queue"] for row in peaks]), F.col("queue")).alias("shown")
    by_hour: ByHour = {
        (int(row["hour_s"]), row["shown"]): int(row["workers"] or 0)
        for row in capacity.groupBy("hour_s", shown).agg(F.sum("workers_needed").alias("workers")).collect()
    }
    hours = sorted({hour for hour, _ in by_hour})
    totals = {hour: sum(n for (at, _), n in by_hour.items() if at == hour) for hour in hours}
    peak = max(hours, key=lambda hour: (totals[hour], -hour))
    weeks = min(row["weeks"] or 0 for row in peaks)
    trust = "" if weeks else " Some hours have no history of their own yet and are taken from others."
    return Section(
        NAME,
        LABEL,
        f"Next week needs up to {words.several(totals[peak], 'worker')} of one slot each, on {words.instant(peak)} UTC",
        "The fewest workers with one slot each that keep the mean wait within the objective, hour by hour (Erlang C on the arrivals "
        f"of the same hour in earlier weeks and the mean work of a message). A worker with 4 slots counts as 4.{trust}",
        _figure(by_hour, hours, [row["queue"] for row in peaks], period),
        (_by_queue(peaks),),
    )


def _peaks(capacity: DataFrame) -> list[Row]:
    """The queues that need the most workers, each with its peak hour."""
    need = F.struct("workers_needed", -F.col("hour_s"), "load_erlangs", "arrivals_per_s", "wait_ms")
    return (
        capacity.groupBy("queue")
        .agg(
            F.max(need).alias("peak"),
            F.sum("workers_needed").alias("worker_hours"),
            F.max("service_ms").alias("service_ms"),
            F.max("wait_objective_ms").alias("wait_objective_ms"),
            F.min("weeks").alias("weeks"),
            F.count("*").alias("hours"),
        )
        .orderBy(F.desc("peak.workers_needed"), F.desc("worker_hours"), "queue")
        .limit(QUEUES_SHOWN_MAX)
        .collect()
    )


def _figure(by_hour: ByHour, hours: list[int], queues: list[str], period: Period) -> Figure:
    figure = look.new_figure(3.0)
    axes = figure.subplots()
    names: list[str | None] = [*queues, *([None] if any(queue is None for _, queue in by_hour) else [])]
    edges = [*hours, hours[-1] + _HOUR_S]
    lines = [[by_hour.get((hour, queue), 0) for hour in (*hours, hours[-1])] for queue in names]
    colours = [*look.series_colours(queues, period.queues), look.GREY]
    areas = axes.stackplot(edges, *lines, colors=colours[: len(lines)], step="post", linewidth=0)
    labels = [OTHERS if queue is None else words.name(queue) for queue in names]
    axes.legend(areas[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.05))
    axes.set_ylabel("workers needed (one slot each)")
    look.count_axis(axes, is_whole=True)
    look.time_axis(axes, edges[0], edges[-1])
    return figure


def _by_queue(peaks: list[Row]) -> Grid:
    rows = tuple(
        (
            words.name(row["queue"]),
            words.count(row["peak"]["workers_needed"]),
            words.instant(-row["peak"][1]),
            words.decimal((row["worker_hours"] or 0) / row["hours"]),
            words.decimal(row["peak"]["arrivals_per_s"]),
            words.duration(row["service_ms"]),
            words.duration(row["peak"]["wait_ms"]),
            words.duration(row["wait_objective_ms"]),
            words.count(row["weeks"]),
        )
        for row in peaks
    )
    heads = (
        "queue", "# workers at peak", "peak (UTC)", "# workers on average", "# arrivals/s at peak", "# mean work", "# mean wait", "# wait wanted",
        "# weeks known",
    )  # fmt: skip
    return Grid("The queues that need most", heads, rows, is_open=True)
