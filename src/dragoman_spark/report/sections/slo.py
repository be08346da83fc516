"""Objectives: burn rates of the error budget over the last hour, 6 hours and 3 days."""

from __future__ import annotations

from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import Period
from dragoman_spark.report.section import Cell, Grid, Reader, Section

NAME: Final = "slo"
LABEL: Final = "Objectives"
WINDOWS: Final = ("1h", "6h", "3d")
SHOWN_MAX: Final = 12  # objectives drawn, the worst first; the table has ROWS_MAX
ROWS_MAX: Final = 300
AXIS_MAX: Final = 10.0  # a higher burn rate is drawn at this length, with its number

Objective = tuple[str, str]  # its name and its queue
Found = dict[Objective, dict[str, Row]]  # by window


def section(read: Reader, period: Period) -> Section:
    rows = read("slo").orderBy(F.desc_nulls_last("burn_rate"), "objective", "queue", "window").limit(ROWS_MAX).collect()
    if not rows:
        return Section(NAME, LABEL, "No objectives are set: a file given with --objectives names them.")
    found: Found = {}
    for row in rows:
        found.setdefault((row["objective"], row["queue"]), {})[row["window"]] = row
    burning = [objective for objective, windows in found.items() if any(_is_burning(row) for row in windows.values())]
    if burning:
        verb = words.verb(len(burning), "burns its", "burn their")
        title = f"{len(burning)} of {words.several(len(found), 'objective')} {verb} error budget too fast"
    else:
        title = (
            f"All objectives hold: none of {len(found)} burns its budget too fast"
            if len(found) > 1
            else "The objective holds"
        )
    return Section(
        NAME,
        LABEL,
        title,
        "A burn rate of 1 uses the error budget up exactly when its time is over; above 1 (red) it is gone before. A short window "
        "shows what is happening now, a long one what it amounts to. Windows end at the latest fact of the lake.",
        _figure(found),
        (_numbers(found),),
        f"{', '.join(_named(objective) for objective in burning[:3])}: error budget burns too fast" if burning else "",
    )


def _is_burning(row: Row) -> bool:
    return row["burn_rate"] is not None and row["burn_rate"] > 1


def _named(objective: Objective) -> str:
    name, queue = objective
    return words.name(name) if queue == "*" else f"{words.name(name)} ({words.name(queue)})"


def _figure(found: Found) -> Figure:
    shown = list(found.items())[:SHOWN_MAX]
    figure = look.new_figure(0.9 + 0.52 * len(shown))
    axes = figure.subplots()
    highest = max((row["burn_rate"] or 0.0 for _, windows in shown for row in windows.values()), default=0.0)
    end = min(max(highest * 1.1, 1.6), AXIS_MAX)
    for place, (_, windows) in enumerate(shown):
        for n, window in enumerate(WINDOWS):
            _bar(axes, place + (n - 1) * 0.27, window, windows.get(window), end)
    axes.axvline(1, color=look.INK, linewidth=0.8, zorder=3, linestyle=(0, (3, 2)))
    axes.set_yticks(range(len(shown)), [_named(objective) for objective, _ in shown], color=look.INK)
    axes.set_xlim(0, end * 1.25)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlabel("burn rate (1: the budget lasts exactly as long as it has to)")
    look.bare(axes)
    axes.grid(axis="x")
    return figure


def _bar(axes: Axes, y: float, window: str, row: Row | None, end: float) -> None:
    is_burning = row is not None and _is_burning(row)
    rate = None if row is None else row["burn_rate"]
    length = min(rate or 0.0, end)
    if rate is not None:
        axes.barh(y, length, height=0.22, color=look.BAD if is_burning else look.TEAL)
    text = f"{window}: {'no messages' if rate is None else words.decimal(rate)}{', over budget' if is_burning else ''}"
    axes.annotate(
        text, (max(length, 1.0), y), xytext=(4, 0), textcoords="offset points", va="center", fontsize=7.5,
        color=look.BAD if is_burning else look.SOFT,
    )  # fmt: skip


def _numbers(found: Found) -> Grid:
    rows: list[tuple[str | Cell, ...]] = []
    for objective, windows in found.items():
        for window in (*WINDOWS, *sorted(set(windows) - set(WINDOWS))):
            if window in windows:
                rows.append(_cells(objective, windows[window]))
    heads = ("objective", "promise", "window", "# messages", "# good", "# target", "# burn rate", "")
    return Grid("Objectives and windows", heads, tuple(rows), is_open=True)


def _cells(objective: Objective, row: Row) -> tuple[str | Cell, ...]:
    promise = "is done" if row["threshold_ms"] is None else f"{row['measure']} ≤ {words.duration(row['threshold_ms'])}"
    state = Cell("no messages") if row["is_met"] is None or not row["messages"] else Cell("met", "good")
    if state.text == "met" and not row["is_met"]:
        state = Cell("missed", "bad")
    return (
        _named(objective),
        promise,
        row["window"],
        words.count(row["messages"]),
        words.share(row["share"]),
        words.share(row["target"]),
        Cell(words.decimal(row["burn_rate"]), "bad" if _is_burning(row) else "plain"),
        state,
    )
