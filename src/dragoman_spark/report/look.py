"""The style of figures: colours that the colour-blind can distinguish, quiet axes, readable units.

Figures are drawn in the colours of light paper. The page knows every colour in COLOURS by its name and has a counterpart for
dark screens (see render); so no other colour may be drawn but those of HEAT, which are the same on both.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from dragoman_spark.report import words

# Light, dark. The seven hues are Paul Tol's `muted` scheme.
COLOURS: Final = {
    "ink": ("#1c2230", "#e8eaf0"),
    "soft": ("#5a6374", "#a3abbb"),
    "line": ("#dfe2e8", "#343b49"),
    "paper": ("#fffffe", "#161a22"),
    "blue": ("#2f5d9b", "#7ea9e1"),
    "teal": ("#44aa99", "#53c2af"),
    "sand": ("#d9b84f", "#e3c766"),
    "rose": ("#cc6677", "#e08494"),
    "sky": ("#82c4e6", "#8fcdec"),
    "green": ("#117733", "#4caf6c"),
    "wine": ("#882255", "#c75d93"),
    "olive": ("#999933", "#b5b54d"),
    "grey": ("#b4bac5", "#5f6879"),
    "bad": ("#b3321b", "#ff8a70"),
}
INK, SOFT, LINE, PAPER = (COLOURS[name][0] for name in ("ink", "soft", "line", "paper"))
BLUE, TEAL, SAND, ROSE, GREY, BAD = (COLOURS[name][0] for name in ("blue", "teal", "sand", "rose", "grey", "bad"))
SERIES: Final = tuple(COLOURS[name][0] for name in ("blue", "teal", "sand", "rose", "sky", "green", "wine", "olive"))
HEAT: Final = LinearSegmentedColormap.from_list(
    "heat", ["#eef4f3", "#b9dcd5", "#6bb3b0", "#2f7f95", "#2f4f93", "#46206f"]
).with_extremes(bad=LINE)

WIDTH_IN: Final = 8.2
STYLE: Final[Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "text.color": INK,
    "text.parse_math": False,  # a queue may be named $x$
    "axes.facecolor": "none",
    "axes.edgecolor": LINE,
    "axes.labelcolor": SOFT,
    "axes.labelsize": 8,
    "axes.titlesize": 9,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlecolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.axisbelow": True,
    "axes.unicode_minus": True,
    "grid.color": LINE,
    "grid.linewidth": 0.6,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
    "ytick.major.size": 0,
    "xtick.major.size": 3,
    "xtick.major.width": 0.6,
    "legend.frameon": False,
    "legend.fontsize": 8,
    "legend.handlelength": 1.1,
    "legend.handleheight": 1.0,
    "legend.columnspacing": 1.4,
    "lines.solid_capstyle": "butt",
    "figure.facecolor": "none",
}

_DURATION_TICKS_MS: Final = (
    0.001, 0.01, 0.1, 1, 10, 100, 1000, 10_000, 60_000, 600_000, 3_600_000, 21_600_000, 86_400_000, 604_800_000, 2_592_000_000,
)  # fmt: skip
LEAST_MS: Final = 0.0005  # shorter durations, and 0, are drawn here: a logarithm has no zero
_LONGEST_TICK_S: Final = 365 * 86_400
_TIME_TICKS: Final = (  # seconds between two, and their format
    (60, "%H:%M"), (300, "%H:%M"), (900, "%H:%M"), (3600, "%H:%M"), (10_800, "%a %H:%M"), (21_600, "%a %H:%M"),
    (43_200, "%a %H:%M"), (86_400, "%d %b"), (172_800, "%d %b"), (345_600, "%d %b"), (604_800, "%d %b"), (1_209_600, "%d %b"),
    (2_419_200, "%d %b %Y"), (7_862_400, "%d %b %Y"),
)  # fmt: skip


def new_figure(height_in: float) -> Figure:
    return Figure(figsize=(WIDTH_IN, height_in), layout="constrained")


def series_colours(names: Sequence[str], known: Sequence[str]) -> list[str]:
    """A colour for each name: known names keep their colour from other figures, others get the remaining ones."""
    kept = {name: SERIES[known.index(name)] for name in names if name in known}
    left = iter([colour for colour in SERIES if colour not in kept.values()])
    return [kept[name] if name in kept else next(left) for name in names]


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, tz=UTC)


def time_axis(axes: Axes, first_s: float, last_s: float, ticks_max: int = 9) -> None:
    """Ticks at whole hours or days, as many as fit; UTC. The x axis is in seconds since 1970."""
    every_s, form = next(
        (tick for tick in _TIME_TICKS if (last_s - first_s) / tick[0] <= ticks_max), (_LONGEST_TICK_S, "%b %Y")
    )
    begin = -(-first_s // every_s) * every_s
    axes.set_xlim(first_s, last_s)
    axes.xaxis.set_major_locator(
        FixedLocator([begin + n * every_s for n in range(int((last_s - begin) // every_s) + 1)])
    )
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: _said(x, form)))
    axes.set_xlabel("time (UTC)")


def duration_axis(axes: Axes, low_ms: float, high_ms: float) -> None:
    """A logarithmic y axis in readable units."""
    low_ms = max(low_ms, LEAST_MS)
    high_ms = max(high_ms, low_ms * 8)
    axes.set_yscale("log")
    axes.set_ylim(low_ms / 1.6, high_ms * 1.6)
    axes.yaxis.set_major_locator(FixedLocator(duration_ticks(low_ms / 1.6, high_ms * 1.6)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda ms, _: words.duration(ms)))
    axes.grid(axis="y")


def duration_ticks(low_ms: float, high_ms: float) -> list[float]:
    """Round durations within a range: few if it is wide, more if it is narrow, its ends if there are none."""
    ticks = [tick for tick in _DURATION_TICKS_MS if low_ms <= tick <= high_ms]
    if len(ticks) < 4:
        ticks = sorted(tick for first in _DURATION_TICKS_MS for tick in (first, first * 3) if low_ms <= tick <= high_ms)
    return ticks[:: 1 + len(ticks) // 7] if len(ticks) > 1 else [low_ms, high_ms]


def count_axis(axes: Axes, *, is_whole: bool = False) -> None:
    """A y axis from 0 in counts."""
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(6, integer=is_whole))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda n, _: words.short_count(n)))
    axes.grid(axis="y")


def bare(axes: Axes) -> None:
    """No lines but the marks themselves: for bars and cells with their numbers."""
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def end_labels(axes: Axes, labels: Sequence[tuple[float, str, str]], gap: float = 0.1) -> None:
    """Labels at the right end of lines (y, text, colour), moved apart where they would overlap."""
    to_axes = axes.transData + axes.transAxes.inverted()
    end = axes.get_xlim()[1]
    lowest_first = sorted((float(to_axes.transform((end, y))[1]), text, colour) for y, text, colour in labels)
    heights = [height for height, _, _ in lowest_first]
    for n in range(1, len(heights)):
        heights[n] = max(heights[n], heights[n - 1] + gap)
    # Labels moved above the top are moved back down.
    ceiling = 1.0
    for n in reversed(range(len(heights))):
        heights[n] = min(heights[n], ceiling)
        ceiling = heights[n] - gap
    for height, (_, text, colour) in zip(heights, lowest_first, strict=True):
        axes.annotate(
            text, (1, height), xycoords="axes fraction", xytext=(5, 0), textcoords="offset points", color=colour, va="center", fontsize=8,
        )  # fmt: skip


def _said(seconds: float, form: str) -> str:
    text = at(seconds).strftime(form)
    return text.removeprefix("0") if form.startswith("%d") else text
