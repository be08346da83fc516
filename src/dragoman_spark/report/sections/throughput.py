"""Throughput: accepted messages by queue, and messages that did not end with an answer."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import OTHERS, Period, step_begin, step_of, step_words
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "throughput"
LABEL: Final = "Throughput"

_TROUBLE: Final = (  # column, words, colour
    ("released", "attempts released", look.COLOURS["olive"][0]),
    ("rejected", "rejected", look.ROSE),
    ("expired", "expired", look.SAND),
    ("cancelled", "cancelled", look.GREY),
    ("quarantined", "quarantined", look.COLOURS["wine"][0]),
)
_SUMS: Final = ("accepted", "done", *[name for name, _, _ in _TROUBLE])

ByStep = dict[tuple[int, str | None], Row]


def section(read: Reader, period: Period) -> Section:
    if period.is_empty:
        return Section(NAME, LABEL, "Nothing came and nothing went.")
    step_s = period.step_s()
    frame = read("throughput").groupBy(step_of("minute", step_s), period.shown().alias("shown"))
    rows = {(int(row["step"]), row["shown"]): row for row in frame.agg(*[F.sum(n).alias(n) for n in _SUMS]).collect()}
    minute = F.unix_seconds("minute").alias("minute_s")
    per_minute = read("throughput").groupBy(minute).agg(F.sum("accepted").alias("accepted"))
    peak = per_minute.orderBy(F.desc("accepted"), "minute_s").first()
    assert peak is not None, "a period has a minute"
    mean = period.totals["accepted"] / (period.seconds / 60)
    title = f"{words.decimal(mean)} messages a minute on average, {words.count(peak['accepted'])} in the busiest minute"
    return Section(
        NAME,
        LABEL,
        title,
        f"Above: messages accepted per minute, by queue, as the mean of every {step_words(step_s)}. Below: what did not end in an "
        "answer, and attempts that had to be repeated, on the same scale of time but not of height. The busiest minute was "
        f"{words.instant(peak['minute_s'])} UTC.",
        _figure(rows, period, step_s),
        (_numbers(rows, period, step_s),),
    )


def _figure(rows: ByStep, period: Period, step_s: int) -> Figure:
    figure = look.new_figure(4.4)
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(3, 1.5))
    steps = period.steps(step_s)
    has_others = any(queue is None for _, queue in rows)
    queues: list[str | None] = [*period.queues, *([None] if has_others else [])]
    colours = [*look.SERIES[: len(period.queues)], look.GREY]
    series = [[_of(rows, step, queue, "accepted") for step in steps] for queue in queues]
    labels = [OTHERS if queue is None else words.name(queue) for queue in queues]
    _stack(upper, steps, step_s, series, labels, colours)
    upper.set_title("Accepted")
    trouble = [(name, label, colour) for name, label, colour in _TROUBLE if period.totals[name]]
    series = [[sum(_of(rows, step, queue, name) for queue in queues) for step in steps] for name, _, _ in trouble]
    if trouble:
        _stack(lower, steps, step_s, series, [label for _, label, _ in trouble], [colour for _, _, colour in trouble])
    else:
        lower.set_yticks([])
        lower.text(
            0.5, 0.5, "nothing of the kind", transform=lower.transAxes, ha="center", va="center", color=look.SOFT
        )
    lower.set_title("Without an answer, or tried again")
    look.time_axis(lower, steps[0], steps[-1] + step_s)
    return figure


def _stack(
    axes: Axes, steps: list[int], step_s: int, series: list[list[float]], labels: list[str], colours: list[str]
) -> None:
    """Stacked areas in messages per minute; each value holds for the width of its step."""
    edges = [*steps, steps[-1] + step_s]
    rates = [[value * 60 / step_s for value in (*line, line[-1])] for line in series]
    areas = axes.stackplot(edges, *rates, colors=colours[: len(rates)], step="post", linewidth=0)
    axes.set_ylabel("messages / minute")
    look.count_axis(axes)
    axes.legend(areas[::-1], labels[::-1], loc="upper left", bbox_to_anchor=(1.0, 1.05))


def _of(rows: ByStep, step: int, queue: str | None, name: str) -> float:
    row = rows.get((step, queue))
    return 0.0 if row is None else float(row[name] or 0)


def _numbers(rows: ByStep, period: Period, step_s: int) -> Grid:
    queues = {queue for _, queue in rows}
    cells = []
    for step in period.steps(step_s):
        sums = [sum(_of(rows, step, queue, name) for queue in queues) for name in _SUMS]
        if any(sums):
            cells.append(
                (step_begin(step, step_s), words.decimal(sums[0] * 60 / step_s), *[words.count(n) for n in sums])
            )
    heads = ("from (UTC)", "# accepted / min", *[f"# {name}" for name in _SUMS])
    return Grid(f"Every {step_words(step_s)} in numbers", heads, tuple(cells))
