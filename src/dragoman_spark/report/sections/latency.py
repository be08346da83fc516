"""Latency: percentiles of the wait and the total time of messages, over time and for the busiest queues."""

from __future__ import annotations

import math
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import OTHERS, Period, step_begin, step_of, step_words
from dragoman_spark.report.section import Grid, Reader, Section
from dragoman_spark.report.timings import PERCENTS, SHARES, Timings

NAME: Final = "latency"
LABEL: Final = "Latency"
# The histograms are by the hour. A period of a few hours would be a few points: it is computed from the messages themselves.
FINE_BELOW_S: Final = 6 * 3600

_COLOURS: Final = {"wait": look.COLOURS["wine"][0], "total": look.BLUE}
_WORDS: Final = {"wait": "Wait: accepted (or due) → first lease", "total": "Total: accepted (or due) → end"}

BySteps = dict[tuple[int, str], Row]  # by the step's beginning and the measure


def section(read: Reader, period: Period, times: Timings) -> Section:
    total = times.of_all.get("total")
    if period.is_empty or total is None:
        return Section(NAME, LABEL, "No message has ended yet, so there is nothing to time.")
    step_s, by_step = times.step_s, times.by_step
    if period.seconds <= FINE_BELOW_S:
        step_s = period.step_s()
        by_step = {(int(row["step"]), row["measure"]): row for row in _fine(read("messages"), step_s).collect()}
    return Section(
        NAME,
        LABEL,
        f"Half of all messages ended within {words.duration(total['p50_ms'])}, 99 of 100 within {words.duration(total['p99_ms'])}",
        f"There is a step every {step_words(step_s)}. The line is the median; the dark band reaches to the 95th percentile, the "
        "pale one to the 99th: nearly everybody's experience lies under its upper edge. The scale is logarithmic.",
        _figure(by_step, period, step_s),
        (_by_queue(times, period), _numbers(by_step, period, step_s)),
    )


def _fine(messages: DataFrame, step_s: int) -> DataFrame:
    """The same columns for steps below an hour."""
    measures = F.array(*[F.struct(F.lit(m).alias("measure"), F.col(f"{m}_ms").alias("ms")) for m in ("wait", "total")])
    return (
        messages.select(step_of("closed_at", step_s), F.inline(measures))
        .where(F.col("ms").isNotNull())
        .groupBy("step", "measure")
        .agg(
            F.count("*").alias("messages"),
            *[F.percentile_approx("ms", p, 1000).alias(n) for p, n in zip(SHARES, PERCENTS, strict=True)],
        )
    )


def _figure(by_step: BySteps, period: Period, step_s: int) -> Figure:
    figure = look.new_figure(4.6)
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, measure in ((upper, "wait"), (lower, "total")):
        _bands(axes, measure, by_step, period.steps(step_s), step_s)
    look.time_axis(lower, period.steps(step_s)[0], period.steps(step_s)[-1] + step_s)
    upper.set_xlabel("")
    return figure


def _bands(axes: Axes, measure: str, by_step: BySteps, steps: list[int], step_s: int) -> None:
    colour = _COLOURS[measure]
    axes.set_title(_WORDS[measure])
    axes.set_ylabel("duration")
    rows = [by_step.get((step, measure)) for step in steps]
    lines = [[math.nan if row is None else max(float(row[name]), look.LEAST_MS) for row in rows] for name in PERCENTS]
    # The last step has a width, too.
    p50, p95, p99 = ([*line, line[-1]] for line in lines)
    edges = [*steps, steps[-1] + step_s]
    axes.fill_between(edges, p50, p95, step="post", color=colour, alpha=0.30, linewidth=0)
    axes.fill_between(edges, p95, p99, step="post", color=colour, alpha=0.13, linewidth=0)
    axes.step(edges, p50, where="post", color=colour, linewidth=1.6)
    axes.step(edges, p95, where="post", color=colour, linewidth=0.7)
    known = [value for line in (p50, p95, p99) for value in line if not math.isnan(value)]
    axes.set_xlim(edges[0], edges[-1])
    look.duration_axis(axes, min(known, default=1.0), max(known, default=10.0))
    last = next((row for row in reversed(rows) if row is not None), None)
    if last is not None:
        texts = [
            (max(float(last[name]), look.LEAST_MS), name[:3], colour if name == "p50_ms" else look.SOFT)
            for name in PERCENTS
        ]
        look.end_labels(axes, texts, gap=0.11)


def _by_queue(times: Timings, period: Period) -> Grid:
    rows: list[tuple[str, ...]] = [("all queues", *_seven(times.of_all.get("wait"), times.of_all.get("total")))]
    for queue in (*period.queues, None):
        wait, total = times.by_queue.get((queue, "wait")), times.by_queue.get((queue, "total"))
        if total is not None:
            rows.append((OTHERS if queue is None else words.name(queue), *_seven(wait, total)))
    heads = ("queue", "# messages", "# wait p50", "# p95", "# p99", "# total p50", "# p95", "# p99")
    return Grid("Percentiles of the busiest queues over the whole period", heads, tuple(rows), is_open=True)


def _seven(wait: Row | None, total: Row | None) -> tuple[str, ...]:
    times = [words.duration(row[name] if row is not None else None) for row in (wait, total) for name in PERCENTS]
    return (words.count(total["messages"] if total is not None else None), *times)


def _numbers(by_step: BySteps, period: Period, step_s: int) -> Grid:
    rows = []
    for step in period.steps(step_s):
        wait, total = by_step.get((step, "wait")), by_step.get((step, "total"))
        if total is not None:
            rows.append((step_begin(step, step_s), *_seven(wait, total)))
    heads = ("from (UTC)", "# messages", "# wait p50", "# p95", "# p99", "# total p50", "# p95", "# p99")
    return Grid(f"Every {step_words(step_s)} in numbers", heads, tuple(rows))
