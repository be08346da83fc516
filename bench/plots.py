"""The bench's plots: eMQP at every load, and each dialect beside its yardstick. Without matplotlib there are none."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.dialogues import PROXY
from bench.rounds import Figures, Plan

Measured = list[tuple[Plan, Figures]]


def draw_emqp(path: Path, figures: Figures, plan: Plan) -> bool:
    """Draw throughput, processor time and latency per contender; False where matplotlib is missing."""
    points = plan.dialogue.points
    panels = [
        ("round trips per second", "trips_per_s", [p for p in points if p.in_flight > 1]),
        ("broker CPU, µs per round trip", "broker_cpu_us", [p for p in points if p.in_flight > 1]),
        ("p50 latency, µs", "p50_us", [p for p in points if p.in_flight == 1]),
    ]

    def fill(axes: list[Any]) -> None:
        for axis, (title, field_name, shown) in zip(axes, panels, strict=True):
            groups = {p.name: [figures.middle(p, name, field_name) or 0.0 for name in plan.names] for p in shown}
            draw_groups(axis, title, list(plan.names), groups)

    return draw(path, len(panels), fill)


def draw_dialects(path: Path, measured: Measured) -> bool:
    """Draw each dialect at the load of its bar: through the proxy and through `os`."""
    panels = [("round trips per second", "trips_per_s"), ("broker CPU, µs per round trip", "broker_cpu_us")]
    labels = [f"{plan.dialogue.name}\n{plan.dialogue.bar_point.name}" for plan, _ in measured]

    def fill(axes: list[Any]) -> None:
        for axis, (title, field_name) in zip(axes, panels, strict=True):
            groups = {
                name: [figures.middle(plan.dialogue.bar_point, name, field_name) or 0.0 for plan, figures in measured]
                for name in (PROXY, "os")
            }
            draw_groups(axis, title, labels, groups)

    return draw(path, len(panels), fill)


def draw_groups(axis: Any, title: str, labels: list[str], groups: dict[str, list[float]]) -> None:
    """Bars side by side: one place per label, one bar per group."""
    width = 0.8 / max(1, len(groups))
    for place, (name, heights) in enumerate(groups.items()):
        bars = axis.bar([index + place * width for index in range(len(labels))], heights, width, label=name)
        texts = [f"{height:,.0f}" if height >= 10 else f"{height:.1f}" for height in heights]
        axis.bar_label(bars, labels=texts, fontsize=7)
    axis.set_title(title)
    middle = (len(groups) - 1) * width / 2
    axis.set_xticks([index + middle for index in range(len(labels))], labels, fontsize=8)
    axis.legend(fontsize=8)
    axis.spines[["top", "right"]].set_visible(False)


def draw(path: Path, panels: int, fill: Callable[[list[Any]], None]) -> bool:
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, panels, figsize=(5 * panels + 2, 4.5))
    fill(list(axes))
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    return True
