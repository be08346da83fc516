"""Funnel: how many messages were accepted, leased, begun, answered; and the other ways to end."""

from __future__ import annotations

from typing import Final

from matplotlib.figure import Figure
from pyspark.sql import functions as F

from dragoman_spark.report import look, words
from dragoman_spark.report.period import OTHERS, Period
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "funnel"
LABEL: Final = "Funnel"

_SUMS: Final = (
    "accepted", "leased", "delivered", "done", "rejected", "expired", "cancelled", "quarantined", "requeued", "retried", "retries",
)  # fmt: skip
_BARS: Final = (  # step, words, colour
    ("accepted", "accepted", look.BLUE),
    ("leased", "had by a worker", look.BLUE),
    ("delivered", "begun (where workers say it)", look.BLUE),
    ("done", "done", look.TEAL),
    ("rejected", "rejected", look.ROSE),
    ("expired", "expired", look.SAND),
    ("cancelled", "cancelled", look.GREY),
    ("open", "still open", look.COLOURS["sky"][0]),
    ("quarantined", "times quarantined", look.COLOURS["wine"][0]),
    ("retries", "retries (attempts beyond the first)", look.COLOURS["olive"][0]),
)

Steps = dict[str, int]


def section(read: Reader, period: Period, open_messages: int) -> Section:
    found: dict[str | None, Steps] = {}
    frame = read("funnel").groupBy(period.shown().alias("shown")).agg(*[F.sum(name).alias(name) for name in _SUMS])
    for row in frame.collect():
        found[row["shown"]] = {name: int(row[name] or 0) for name in _SUMS}
    steps = {name: sum(one[name] for one in found.values()) for name in _SUMS}
    if not any(steps.values()):
        return Section(NAME, LABEL, "No message was accepted or ended in this period.")
    steps["open"] = open_messages
    ended = _ended(steps)
    title = f"{words.share(steps['done'], ended)} of the messages that ended were answered"
    if steps["retried"]:
        title += f"; {words.share(steps['retried'], ended)} needed more than one attempt"
    return Section(
        NAME,
        LABEL,
        title,
        "Bars are messages, with their share of those accepted. The first four are the way to an answer; below are the other ends, "
        "what is still open, and what it took. A step is counted on the day it happens, so a message accepted before the period "
        "may end in it.",
        _figure(steps),
        (_by_queue(found, steps, period),),
    )


def _ended(steps: Steps) -> int:
    return steps["done"] + steps["rejected"] + steps["expired"] + steps["cancelled"]


def _figure(steps: Steps) -> Figure:
    figure = look.new_figure(3.4)
    axes = figure.subplots()
    most = max(steps[name] for name, _, _ in _BARS)
    places = [place + (0.45 if place > 3 else 0) for place in range(len(_BARS))]
    axes.barh(places, [steps[name] for name, _, _ in _BARS], height=0.72, color=[colour for _, _, colour in _BARS])
    for place, (name, _, _) in zip(places, _BARS, strict=True):
        text = words.count(steps[name])
        if steps["accepted"] and name != "accepted":
            text += f"  ·  {words.share(steps[name], steps['accepted'])}"
        axes.annotate(
            text, (steps[name], place), xytext=(5, 0), textcoords="offset points", va="center", color=look.INK
        )
    axes.set_yticks(places, [label for _, label, _ in _BARS], color=look.INK)
    axes.set_xticks([])
    axes.set_xlim(0, most * 1.22)
    axes.invert_yaxis()
    axes.set_xlabel("messages", loc="left")
    look.bare(axes)
    return figure


def _by_queue(found: dict[str | None, Steps], steps: Steps, period: Period) -> Grid:
    rows = [("all queues", *_cells(steps))]
    for queue in (*period.queues, None):
        if queue in found:
            rows.append((OTHERS if queue is None else words.name(queue), *_cells(found[queue])))
    heads = (
        "queue", "# accepted", "# done", "# of those ended", "# rejected", "# expired", "# cancelled", "# quarantined", "# retried",
    )  # fmt: skip
    return Grid("The busiest queues", heads, tuple(rows), is_open=True)


def _cells(steps: Steps) -> tuple[str, ...]:
    return (
        words.count(steps["accepted"]),
        words.count(steps["done"]),
        words.share(steps["done"], _ended(steps)),
        *[words.count(steps[name]) for name in ("rejected", "expired", "cancelled", "quarantined", "retried")],
    )
