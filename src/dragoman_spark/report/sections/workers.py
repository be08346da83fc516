"""Workers: the busiest and the idlest connections, and how connections begin and end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import Period, step_of, step_words
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "workers"
LABEL: Final = "Workers"
SHOWN_EACH: Final = 8  # busiest, and as many idlest
# A very short connection is not representative: the bars show those that lasted at least this share of the longest.
CONNECTED_SHARE_MIN: Final = 0.05
BARS_MAX: Final = 60

_STILL_HERE: Final = "still connected"


def section(read: Reader, period: Period) -> Section:
    workers = read("workers")
    step_s = period.step_s(points_max=BARS_MAX)
    fates = _fates(workers, step_s)
    if not fates:
        return Section(NAME, LABEL, "No worker was connected in this period.")
    connected_ms, busy_ms, deaths = (_sum(fates, name) for name in ("connected_ms", "busy_ms", "deaths"))
    longest_ms = max(row["longest_ms"] or 0.0 for row in fates)
    busiest, idlest = _extremes(workers.where(F.col("connected_ms") >= longest_ms * CONNECTED_SHARE_MIN))
    joins = Counter[int]()
    for row in fates:
        joins[int(row["step"])] += row["workers"]
    title = f"Workers had work in hand {words.share(busy_ms, connected_ms)} of the time"
    if deaths:
        title += f"; {words.several(int(deaths), 'message')} {words.verb(int(deaths), 'was', 'were')} in the hands of a worker that died"
    return Section(
        NAME,
        LABEL,
        title,
        "Bars are the share of its connected time that a worker had at least one message in hand: near 100 % it is short of "
        f"slots or hands, near 0 % it is spare. Right: new connections per {step_words(step_s)}; a steady fleet draws few.",
        _figure(busiest, idlest, joins, period, step_s),
        (_endings(fates), _numbers([*busiest, *idlest])),
    )


def _fates(workers: DataFrame, step_s: int) -> list[Row]:
    """How connections ended, one row per kind of end and step of joining."""
    fate = F.when(F.col("left_at").isNull(), F.lit(_STILL_HERE)).otherwise(F.coalesce("left_because", F.lit("unknown")))
    sums = [F.sum(name).alias(name) for name in ("connected_ms", "busy_ms", "attempts", "failed", "deaths")]
    ends = workers.groupBy(fate.alias("fate"), step_of("joined_at", step_s))
    return ends.agg(F.count("*").alias("workers"), F.max("connected_ms").alias("longest_ms"), *sums).collect()


def _sum(rows: Iterable[Row], name: str) -> float:
    return sum(row[name] or 0 for row in rows)


def _extremes(workers: DataFrame) -> tuple[list[Row], list[Row]]:
    """The busiest and the idlest, busier ones first, without overlap."""
    columns = (
        "worker_no", "worker", "worker_dialect", "connected_ms", "utilisation", "attempts", "done", "failed", "work_ms_mean", "held_mean",
    )  # fmt: skip
    by_use = workers.where(F.col("utilisation").isNotNull()).select(*columns)
    busiest = by_use.orderBy(F.desc("utilisation"), "worker_no").limit(SHOWN_EACH)
    idlest = by_use.orderBy("utilisation", F.desc("worker_no")).limit(SHOWN_EACH)
    rows = busiest.unionAll(idlest).distinct().collect()
    rows.sort(key=lambda row: (-row["utilisation"], row["worker_no"]))
    return rows[:SHOWN_EACH], rows[SHOWN_EACH:]


def _figure(busiest: list[Row], idlest: list[Row], joins: Counter[int], period: Period, step_s: int) -> Figure:
    figure = look.new_figure(1.2 + 0.2 * max(len(busiest) + len(idlest), 7))
    left, right = figure.subplots(1, 2, width_ratios=(1.25, 1))
    _bars(left, busiest, idlest)
    steps = sorted({*period.steps(step_s), *joins})
    right.bar(steps, [joins[s] for s in steps], width=step_s * 0.86, align="edge", color=look.BLUE, linewidth=0)
    right.set_title("New connections")
    right.set_ylabel(f"per {step_words(step_s)}")
    look.count_axis(right, is_whole=True)
    look.time_axis(right, steps[0], steps[-1] + step_s, ticks_max=4)
    return figure


def _bars(axes: Axes, busiest: list[Row], idlest: list[Row]) -> None:
    rows = [*busiest, *idlest]
    places = [n + (0.8 if n >= len(busiest) else 0.0) for n in range(len(rows))]
    use = [100 * float(row["utilisation"] or 0) for row in rows]
    axes.barh(places, [100] * len(rows), height=0.7, color=look.LINE, alpha=0.6)
    colours = [look.TEAL] * len(busiest) + [look.SAND] * len(idlest)
    axes.barh(places, use, height=0.7, color=colours)
    for place, row in zip(places, rows, strict=True):
        axes.annotate(
            words.share(row["utilisation"]),
            (100, place),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=8,
        )
    axes.set_title("Busiest (above) and idlest" if idlest else "Busy share")
    axes.set_yticks(places, [f"{words.name(row['worker'])}  ({row['worker_dialect']})" for row in rows], color=look.INK)
    axes.set_xticks([0, 50, 100], ["0 %", "50 %", "100 %"])
    axes.set_xlim(0, 118)
    axes.set_xlabel("share of connected time with a message in hand")
    axes.invert_yaxis()
    look.bare(axes)


def _endings(fates: list[Row]) -> Grid:
    by_fate: dict[str, list[Row]] = {}
    for row in fates:
        by_fate.setdefault(row["fate"], []).append(row)
    rows = []
    for fate, some in sorted(by_fate.items(), key=lambda item: (-_sum(item[1], "workers"), item[0])):
        connections, connected_ms = _sum(some, "workers"), _sum(some, "connected_ms")
        rows.append((
            fate.replace("_", " "),
            words.count(connections),
            words.duration(connected_ms / connections),
            words.share(_sum(some, "busy_ms"), connected_ms),
            *[words.count(_sum(some, name)) for name in ("attempts", "failed", "deaths")],
        ))  # fmt: skip
    heads = ("how it ended", "# connections", "# mean stay", "# busy", "# attempts", "# failed", "# held at death")
    return Grid("What became of the connections", heads, tuple(rows), is_open=True)


def _numbers(rows: list[Row]) -> Grid:
    cells = tuple(
        (
            words.name(row["worker"]),
            _number(row["worker_no"]),
            row["worker_dialect"] or words.NOTHING,
            words.duration(row["connected_ms"]),
            words.share(row["utilisation"]),
            words.decimal(row["held_mean"]),
            words.count(row["attempts"]),
            words.count(row["done"]),
            words.count(row["failed"]),
            words.duration(row["work_ms_mean"]),
        )
        for row in rows
    )
    heads = (
        "worker",
        "number",
        "dialect",
        "# connected",
        "# busy",
        "# in hand",
        "# attempts",
        "# done",
        "# failed",
        "# mean held",
    )
    return Grid("These workers in numbers", heads, cells)


def _number(worker_no: int) -> str:
    """In the format of `dragoman explain worker:w1.17`: boot and count."""
    return f"w{worker_no >> 40}.{worker_no & (1 << 40) - 1}"
