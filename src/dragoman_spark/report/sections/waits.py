"""Waits in the week: the 95th percentile of waits by weekday and hour."""

from __future__ import annotations

import math
from typing import Final

from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from dragoman_spark.report import look, words
from dragoman_spark.report.section import Grid, Section
from dragoman_spark.report.timings import Timings

NAME: Final = "waits"
LABEL: Final = "Hours of the week"
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")

_LEAST_MS: Final = 0.001  # the histogram's first bucket: smaller values are not distinguished


def section(times: Timings) -> Section:
    p95_ms = {hour: float(row["p95_ms"]) for (hour, measure), row in times.by_hour_of_week.items() if measure == "wait"}
    if not p95_ms:
        return Section(NAME, LABEL, "No message has been leased yet, so nothing has waited and ended.")
    worst = max(p95_ms, key=lambda hour: (p95_ms[hour], -hour))
    best = min(p95_ms, key=lambda hour: (p95_ms[hour], hour))
    title = f"Waits are longest on {_hour(worst)}: 95 of 100 messages wait up to {words.duration(p95_ms[worst])}"
    if len(p95_ms) == 1:
        title = f"All waits fall into one hour of the week, {_hour(worst)}: 95 of 100 are up to {words.duration(p95_ms[worst])}"
    return Section(
        NAME,
        LABEL,
        title,
        "A cell is one hour of the week (UTC), over all weeks of the period; the darker, the longer 95 of 100 messages waited at "
        f"most. Grey: no messages. Waits are shortest on {_hour(best)}: {words.duration(p95_ms[best])}.",
        _figure(p95_ms),
        (_numbers(p95_ms),),
    )


def _hour(hour: int) -> str:
    return f"{DAYS[hour // 24]}s at {hour % 24:02}:00"


def _figure(p95_ms: dict[int, float]) -> Figure:
    figure = look.new_figure(2.9)
    axes = figure.subplots()
    cells = [[p95_ms.get(day * 24 + hour, math.nan) for hour in range(24)] for day in range(7)]
    # From below the minimum on, so that the minimum is visible, too.
    low_ms = max(min(p95_ms.values()) / 1.5, _LEAST_MS)
    high_ms = max(max(p95_ms.values()), low_ms * 2)
    mesh = axes.pcolormesh(
        cells, cmap=look.HEAT, norm=LogNorm(low_ms, high_ms, clip=True), edgecolors=look.PAPER, linewidth=1.5
    )
    axes.invert_yaxis()
    axes.set_aspect("equal")
    look.bare(axes)
    axes.set_yticks([day + 0.5 for day in range(7)], [day[:3] for day in DAYS])
    axes.set_xticks([hour + 0.5 for hour in range(0, 24, 3)], [f"{hour:02}" for hour in range(0, 24, 3)])
    axes.set_xlabel("hour of the day (UTC)")
    bar = figure.colorbar(mesh, ax=axes, shrink=0.8, aspect=14, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.yaxis.set_major_locator(FixedLocator(look.duration_ticks(low_ms, high_ms)))
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: words.duration(ms)))
    bar.ax.set_title("p95 wait", fontweight="normal", fontsize=8, color=look.SOFT, loc="left", pad=8)
    return figure


def _numbers(p95_ms: dict[int, float]) -> Grid:
    rows = tuple(
        (f"{hour:02}:00", *[words.duration(p95_ms.get(day * 24 + hour)) for day in range(7)]) for hour in range(24)
    )
    return Grid("The p95 wait of every hour of the week", ("hour (UTC)", *[f"# {day[:3]}" for day in DAYS]), rows)
