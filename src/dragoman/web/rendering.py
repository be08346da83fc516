"""Template rendering with autoescape. A page's stream sends only the template's `live` block.

Charts are small lines as server-rendered SVG, coloured by the style sheet; no script needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from dragoman.version import VERSION
from dragoman.web import formatting

TEMPLATES: Final = Path(__file__).parent / "templates"
LIVE: Final = "live"
WIDTH: Final = 600
PAD: Final = 2
STEP: Final = 3  # minimum units of width between two points: more points would not be visible and cost bytes
DASH: Final = 5  # units of width of a point without neighbours

Value = float | None


class Renderer:
    """The templates, loaded once."""

    def __init__(self) -> None:
        self._environment = Environment(
            loader=FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
            finalize=formatting.printable,
        )
        self._environment.filters.update(formatting.FILTERS)
        self._environment.globals.update(formatting.FUNCTIONS)
        self._environment.globals.update(spark=spark, chart=chart, version=VERSION)

    def page(self, template: str, context: dict[str, Any]) -> str:
        return self._environment.get_template(template).render(context)

    def live(self, template: str, context: dict[str, Any]) -> str:
        found = self._environment.get_template(template)
        return "".join(found.blocks[LIVE](found.new_context(context)))


def spark(values: Sequence[Value], label: str, height: int = 28, width: int = 120) -> Markup:
    """A line with its area, for a table cell."""
    top = formatting.highest(values) or 1.0
    line, area = paths(values, top, width, height)
    return Markup(
        '<svg class="spark" viewBox="0 0 {w} {h}" width="{w}" height="{h}" role="img" aria-label="{label}"'
        ' preserveAspectRatio="none"><path class="area" d="{area}"/><path class="line" d="{line}"/></svg>'
    ).format(w=width, h=height, label=label, area=area, line=line)


def chart(series: Sequence[tuple[str, Sequence[Value]]], label: str, height: int = 120) -> Markup:
    """Several lines on one scale from zero; each name is a class of the style sheet."""
    top = formatting.highest(value for _, values in series for value in values) or 1.0
    grid = Markup('<path class="grid" d="M0 {y}H{w}"/>')
    parts = [grid.format(y=height * part // 4, w=WIDTH) for part in (1, 2, 3)]
    for number, (name, values) in enumerate(series):
        line, area = paths(values, top, WIDTH, height)
        if number == 0:
            parts.append(Markup('<path class="area {}" d="{}"/>').format(name, area))
        parts.append(Markup('<path class="line {}" d="{}"/>').format(name, line))
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-label="{label}" preserveAspectRatio="none">{parts}</svg>'
    ).format(w=WIDTH, h=height, label=label, parts=Markup("").join(parts))


def paths(values: Sequence[Value], top: float, width: int, height: int) -> tuple[str, str]:
    """SVG paths of the line and of the area under it. None interrupts both."""
    values = thinned(values, width // STEP)
    if not values:
        return "", ""
    step = width / max(len(values) - 1, 1)
    runs: list[list[tuple[float, float]]] = [[]]
    for at, value in enumerate(values):
        if value is None:
            runs.append([])
        else:
            runs[-1].append((at * step, height - PAD - (height - 2 * PAD) * value / top))
    drawn = [run if len(run) > 1 else dash(*run[0], width) for run in runs if run]
    line = "".join(stroke(run) for run in drawn)
    area = "".join(f"{stroke(run)}V{height}H{run[0][0]:.1f}Z" for run in drawn)
    return line, area


def thinned(values: Sequence[Value], most: int) -> Sequence[Value]:
    """Reduce to at most `most` values; each group keeps its maximum, because peaks matter most."""
    group = -(-len(values) // most)
    if group <= 1:
        return values
    parts = [[value for value in values[at : at + group] if value is not None] for at in range(0, len(values), group)]
    return [max(part, default=None) for part in parts]


def dash(x: float, y: float, width: int) -> list[tuple[float, float]]:
    """A short dash that makes a single point visible, also at the right border, where the newest point is."""
    begin = min(x, width - DASH)
    return [(begin, y), (begin + DASH, y)]


def stroke(run: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in run)
