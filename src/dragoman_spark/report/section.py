"""A section of the report: a finding in words, a figure, and its numbers. Plain values: `page` makes HTML of them.

Every text in here is unescaped; only the page deals with HTML.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from matplotlib.figure import Figure
from pyspark.sql import DataFrame

# Access to the tables: a name of dragoman_spark.tables → that table as its readers want it.
Reader = Callable[[str], DataFrame]
Tone = Literal["plain", "good", "bad"]


@dataclass(frozen=True, slots=True)
class Cell:
    """A table's cell with a tone."""

    text: str
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Grid:
    """A table of numbers. A head that begins with `#` marks a column of numbers, which is right-aligned."""

    caption: str
    heads: tuple[str, ...]
    rows: tuple[tuple[str | Cell, ...], ...]
    # Whether it is expanded at first; else it is collapsed.
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """One question and its answer."""

    name: str  # anchor in the page, and name of the PNG
    label: str  # two words for the table of contents
    title: str  # the finding, in words
    reading: str = ""  # how to read the figure
    figure: Figure | None = None
    grids: tuple[Grid, ...] = ()
    alarm: str = ""  # a problem that needs attention; empty: none


@dataclass(frozen=True, slots=True)
class Tile:
    """One number of the headline."""

    value: str
    label: str
    note: str = ""
    tone: Tone = "plain"


@dataclass(frozen=True, slots=True)
class Headline:
    """The top of the report: the period, the main numbers, and whether anything is lost."""

    period: str
    tiles: tuple[Tile, ...]
    verdict: str
    tone: Tone
