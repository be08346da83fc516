"""Renders figures: SVG inside the page, PNG beside it.

The SVG keeps its text as text (small, accessible, in the page's font) and names its colours by the page's variables, so it
adapts to a dark screen. It has no external references: no document type, no namespaces, no metadata, no script.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

import matplotlib
from matplotlib.figure import Figure

from dragoman_spark.report.look import COLOURS, PAPER, STYLE

PNG_DOTS_PER_INCH: Final = 150

_METADATA: Final = dict.fromkeys(("Creator", "Date", "Format", "Type"))
_METADATA_ELEMENT: Final = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
# Only tags are rewritten: between them is foreign text, in which matplotlib has escaped every < and >.
_TAG: Final = re.compile(r"<[^>]*>")
# axes_1, patch_2 …: nothing refers to them, and each figure has them.
_DEAD_ID: Final = re.compile(r' id="[A-Za-z0-9.]+_\d+"')
_NAMESPACE: Final = re.compile(r' xmlns(?::\w+)?="[^"]*"')
_FONT: Final = re.compile(r"font: (?:(\d+|bold) )?([\d.]+)px [^;\"]*")
# A tenth of a point is finer than any screen.
_PATH: Final = re.compile(r'(?<= d=")[^"]*')
_LONG_NUMBER: Final = re.compile(r"(\d+\.\d)\d+")
_BETWEEN_TAGS: Final = re.compile(r">\s+<")


@contextmanager
def drawing() -> Iterator[None]:
    """Use the report's style for figures made and rendered in this block."""
    with matplotlib.rc_context({**STYLE, "svg.fonttype": "none"}), warnings.catch_warnings():
        # A queue's name may have characters that the PNG's font lacks; the page's font will have them.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        yield


def svg(figure: Figure, name: str) -> str:
    """The figure as an `<svg>` element. `name` keeps its ids distinct from those of other figures."""
    out = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": name}):
        figure.savefig(out, format="svg", metadata=_METADATA)
    # The layout is final now: the PNG need not compute it again.
    figure.set_layout_engine("none")
    text = out.getvalue()
    text = _METADATA_ELEMENT.sub("", text[text.index("<svg") :])
    return _BETWEEN_TAGS.sub("><", _TAG.sub(_plain_tag, text)).strip()


def png(figure: Figure) -> bytes:
    """The figure on a white background."""
    out = io.BytesIO()
    figure.savefig(out, format="png", dpi=PNG_DOTS_PER_INCH, facecolor=PAPER)
    return out.getvalue()


def _plain_tag(found: re.Match[str]) -> str:
    tag = found[0]
    if tag.startswith("<svg"):
        # The figure is drawn in points and scales with the page; the text around it describes it.
        box = re.search(r'viewBox="[^"]*"', tag)
        assert box is not None, "matplotlib's SVG has a viewBox"
        return f'<svg {box[0]} aria-hidden="true">'
    tag = _NAMESPACE.sub("", tag).replace("xlink:href", "href")
    tag = _DEAD_ID.sub("", tag)
    tag = _FONT.sub(_font_size, tag)
    tag = _PATH.sub(lambda path: _LONG_NUMBER.sub(r"\1", path[0]).replace("\n", ""), tag)
    for colour, (light, _) in COLOURS.items():
        tag = tag.replace(light, f"var(--{colour})")
    return tag


def _font_size(found: re.Match[str]) -> str:
    return f"font-size: {found[2]}px" + (f"; font-weight: {found[1]}" if found[1] else "")
