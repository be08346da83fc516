"""Access to the broker and its data for all pages, and the definition of a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.web.link import Link
from dragoman.web.samples.sampling import Sampler

Context = dict[str, Any]  # the variables of a template
Query = Mapping[str, str]

PAGE_SIZE: Final = 50
NOT_FOUND: Final = "NOT_FOUND"  # the broker's refusal code for an unknown object


@dataclass(frozen=True, slots=True)
class Dashboard:
    """The data directory, broker link and sampler that all pages use; one per process."""

    data: Path
    link: Link
    sampler: Sampler

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    @property
    def now_ns(self) -> int:
        """The broker's clock, used to compute ages."""
        return self.sampler.now_ns

    async def lake(self) -> str:
        """The lake's root directory; empty if there is no lake."""
        found = (await self.link.ask("status"))["lake"]
        return str(found["root"]) if found else ""


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page. `make` collects the variables of its template; `key` is the rest of the path, for pages about one object. `make_once`
    adds those outside the live block that cost too much to repeat on every beat."""

    template: str
    title: str
    section: str
    make: Callable[[Dashboard, Query, str], Awaitable[Context]]
    every_beats: int = 1
    make_once: Callable[[Dashboard, Query], Awaitable[Context]] | None = None

    async def context(self, dashboard: Dashboard, query: Query, key: str) -> Context:
        await dashboard.sampler.fresh()
        made = await self.make(dashboard, query, key)
        return {"title": self.title, "section": self.section, "now_ns": dashboard.now_ns, **made}


def number_of(query: Query, name: str, digits_max: int = 9) -> int:
    """A number in a page's address; 0 if it is missing or invalid."""
    text = query.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) <= digits_max else 0


async def one_part(dashboard: Dashboard, query: Query, op: str, **arguments: Any) -> Context:
    """The broker's response with one part of a long list, and `paging`, for the links to the parts before and after it."""
    offset = number_of(query, "offset")
    found = await dashboard.link.ask(op, offset=offset, limit=PAGE_SIZE, **arguments)
    return {**found, "paging": paging(offset, found["total"])}


def paging(offset: int, total: int) -> Context:
    return {
        "offset": offset,
        "total": total,
        "before": max(offset - PAGE_SIZE, 0) if offset else None,
        "after": offset + PAGE_SIZE if offset + PAGE_SIZE < total else None,
        "page_size": PAGE_SIZE,
    }
