"""Renders sections as one self-contained HTML file: no script, network, font or separate image.

Every text is escaped here and nowhere else; only `render` returns markup. The page's Content-Security-Policy forbids loading anything, so
that even an unescaped name could fetch nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from dragoman.version import VERSION
from dragoman_spark.report.section import Cell, Grid, Headline, Section
from dragoman_spark.report.style import sheet

SHORT_MAX: Final = 32  # characters of a cell that stay on one line; longer ones are broken


def page(headline: Headline, sections: Sequence[Section], drawings: dict[str, str]) -> str:
    """The whole file. `drawings` are the `<svg>` elements by the names of their sections."""
    parts = [
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>dragoman: {escape(headline.period)}</title>",
        f"<style>{sheet()}</style>\n</head>\n<body>\n<main>",
        _head(headline),
        _alarms(sections),
        _contents(sections),
        *[_section(section, drawings.get(section.name, "")) for section in sections],
        f"<footer>Made by dragoman {escape(VERSION)} from its tables. Times are UTC.</footer>",
        "</main>\n</body>\n</html>\n",
    ]
    return "\n".join(part for part in parts if part)


def _head(headline: Headline) -> str:
    tiles = "".join(
        f'<li class="{tile.tone}"><b>{escape(tile.value)}</b><span>{escape(tile.label)}</span><small>{escape(tile.note)}</small></li>'
        for tile in headline.tiles
    )
    return (
        f'<header>\n<h1><b>dragoman</b> report</h1>\n<p class="period">{escape(headline.period)}</p>\n'
        + (f'<ul class="tiles">{tiles}</ul>\n' if tiles else "")
        + f'<p class="verdict {headline.tone}">{escape(headline.verdict)}</p>\n</header>'
    )


def _alarms(sections: Sequence[Section]) -> str:
    alarms = [f'<li><a href="#{s.name}">{escape(s.label)}</a>: {escape(s.alarm)}</li>' for s in sections if s.alarm]
    return f'<ul class="alarms">{"".join(alarms)}</ul>' if alarms else ""


def _contents(sections: Sequence[Section]) -> str:
    links = "".join(f'<a href="#{section.name}">{escape(section.label)}</a>' for section in sections)
    return f'<nav aria-label="Contents">{links}</nav>'


def _section(section: Section, drawing: str) -> str:
    parts = [
        f'<section id="{section.name}" aria-labelledby="{section.name}-title">',
        f'<p class="label">{escape(section.label)}</p>',
        f'<h2 id="{section.name}-title">{escape(section.title)}</h2>',
        f'<p class="reading">{escape(section.reading)}</p>' if section.reading else "",
        f'<figure role="img" aria-label="{escape(section.title)}">{drawing}</figure>' if drawing else "",
        *[_grid(grid) for grid in section.grids if grid.rows],
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _grid(grid: Grid) -> str:
    is_number = [head.startswith("#") for head in grid.heads]
    heads = "".join(
        f'<th scope="col"{" class=n" if number else ""}>{escape(head.removeprefix("#").strip())}</th>'
        for head, number in zip(grid.heads, is_number, strict=True)
    )
    rows = "".join(
        "<tr>" + "".join(_cell(cell, number) for cell, number in zip(row, is_number, strict=True)) + "</tr>\n"
        for row in grid.rows
    )
    caption = f"<caption>{escape(grid.caption)}</caption>" if grid.is_open else ""
    table = f'<div class="scroll"><table>{caption}<thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table></div>'
    return table if grid.is_open else f"<details><summary>{escape(grid.caption)}</summary>{table}</details>"


def _cell(cell: str | Cell, is_number: bool) -> str:
    shown = cell if isinstance(cell, Cell) else Cell(cell)
    place = "n" if is_number else "s" if len(shown.text) <= SHORT_MAX else "t"
    kinds = [kind for kind in (place, shown.tone) if kind != "plain"]
    return f'<td class="{" ".join(kinds)}">{escape(shown.text)}</td>'
