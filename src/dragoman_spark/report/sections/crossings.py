"""Crossings: client dialects against the dialects of the workers that settled their messages."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.colors import LogNorm
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman.lake.schema import DIALECTS
from dragoman_spark.report import look, words
from dragoman_spark.report.period import Period
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "crossings"
LABEL: Final = "Crossings"
NOBODY: Final = "no worker"

_INTERNAL: Final = DIALECTS[0]  # the broker itself, as client of its schedules' messages
_SPOKEN: Final = tuple(word for number, word in sorted(DIALECTS.items()) if number)
_DARK_FROM: Final = 0.55  # of the colour scale: above this a cell's text is white

Pair = tuple[str, str]


def section(read: Reader, period: Period) -> Section:
    frame = read("crossings").groupBy("client_dialect", "worker_dialect")
    names = ("messages", "done", "wait_ms", "work_ms", "total_ms")
    pairs: dict[Pair, Row] = {
        (row["client_dialect"] or _INTERNAL, row["worker_dialect"] or NOBODY): row
        for row in frame.agg(*[F.sum(name).alias(name) for name in names]).collect()
        if row["messages"]
    }
    if not pairs:
        return Section(NAME, LABEL, "No message has ended yet, so no dialect has met another.")
    settled = sum(row["messages"] for (_, worker), row in pairs.items() if worker != NOBODY)
    crossed = sum(row["messages"] for (client, worker), row in pairs.items() if worker not in (client, NOBODY))
    return Section(
        NAME,
        LABEL,
        f"{words.share(crossed, settled)} of the messages that workers settled crossed from one dialect to another"
        if settled
        else "No message was settled by a worker",
        "A row is what the client spoke, a column what the worker spoke that settled the message. Each cell has the number of messages "
        "and their mean time from accepted (or due) to the end; the darker, the more messages (logarithmic). Outlined: no crossing.",
        _figure(pairs),
        (_numbers(pairs),),
    )


def _figure(pairs: dict[Pair, Row]) -> Figure:
    clients = _sides({client for client, _ in pairs}, _INTERNAL)
    workers = _sides({worker for _, worker in pairs}, NOBODY)
    figure = look.new_figure(0.9 + 0.55 * len(clients))
    axes = figure.subplots()
    counts = np.array([[_messages(pairs, c, w) for w in workers] for c in clients], dtype=float)
    # From a third of the minimum on, so that the minimum is visible, too.
    norm = LogNorm(counts[counts > 0].min() / 3, max(float(counts.max()), 10.0), clip=True)
    axes.pcolormesh(np.where(counts > 0, counts, np.nan), cmap=look.HEAT, norm=norm, edgecolors=look.PAPER, linewidth=2)
    for y, client in enumerate(clients):
        for x, worker in enumerate(workers):
            row = pairs.get((client, worker))
            if row is None:
                axes.text(x + 0.5, y + 0.5, "·", ha="center", va="center", color=look.SOFT)
                continue
            colour = "#ffffff" if norm(row["messages"]) > _DARK_FROM else "#1b2340"
            mean = words.duration(row["total_ms"] / row["messages"])
            axes.text(
                x + 0.5,
                y + 0.36,
                words.count(row["messages"]) if row["messages"] < 10_000_000 else words.short_count(row["messages"]),
                ha="center",
                va="center",
                color=colour,
                weight="bold",
            )
            axes.text(x + 0.5, y + 0.70, mean, ha="center", va="center", color=colour, fontsize=7.5)
            if client == worker:
                axes.add_patch(_outline(x, y, colour))
    axes.invert_yaxis()
    look.bare(axes)
    axes.set_xticks([x + 0.5 for x in range(len(workers))], workers, color=look.INK)
    axes.set_yticks([y + 0.5 for y in range(len(clients))], clients, color=look.INK)
    axes.xaxis.tick_top()
    axes.xaxis.set_label_position("top")
    axes.set_xlabel("worker's dialect")
    axes.set_ylabel("client's dialect")
    return figure


def _sides(found: set[str], extra: str) -> list[str]:
    """The dialects in their own order, then unknown ones of a later version, then `extra` if it occurs."""
    strangers = sorted(found - set(_SPOKEN) - {extra})
    return [*_SPOKEN, *strangers, *([extra] if extra in found else [])]


def _messages(pairs: dict[Pair, Row], client: str, worker: str) -> int:
    row = pairs.get((client, worker))
    return 0 if row is None else int(row["messages"])


def _outline(x: int, y: int, colour: str) -> Rectangle:
    return Rectangle((x + 0.06, y + 0.07), 0.88, 0.86, fill=False, edgecolor=colour, linewidth=1.0, alpha=0.8)


def _numbers(pairs: dict[Pair, Row]) -> Grid:
    rows = []
    for (client, worker), row in sorted(pairs.items(), key=lambda item: -item[1]["messages"]):
        messages = row["messages"]
        means = [words.duration((row[name] or 0) / messages) for name in ("wait_ms", "work_ms", "total_ms")]
        rows.append((client, worker, words.count(messages), words.share(row["done"], messages), *means))
    heads = ("client", "worker", "# messages", "# done", "# mean wait", "# mean work", "# mean total")
    return Grid("Every pair in numbers", heads, tuple(rows))
