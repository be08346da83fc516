"""Template rendering with autoescape. A page's stream sends only the template's `live` block."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from dragoman.version import VERSION
from dragoman.web.display import words
from dragoman.web.samples import charts

TEMPLATES: Final = Path(__file__).parent / "templates"
LIVE: Final = "live"


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
            finalize=words.printable,
        )
        self._environment.filters.update(words.FILTERS)
        self._environment.globals.update(words.FUNCTIONS)
        self._environment.globals.update(spark=charts.spark, chart=charts.chart, version=VERSION)

    def page(self, template: str, context: dict[str, Any]) -> str:
        return self._environment.get_template(template).render(context)

    def live(self, template: str, context: dict[str, Any]) -> str:
        found = self._environment.get_template(template)
        return "".join(found.blocks[LIVE](found.new_context(context)))
