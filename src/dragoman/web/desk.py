"""What every page works with, and what a page is."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.web.link import Link
from dragoman.web.sampling import Sampler

Context = dict[str, Any]
Query = Mapping[str, str]

PAGE_SIZE: Final = 50
NOT_FOUND: Final = "NOT_FOUND"  # how the broker says that there is no such thing


@dataclass(frozen=True, slots=True)
class Desk:
    """One for the process."""

    data: Path
    link: Link
    sampler: Sampler

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    async def lake(self) -> str:
        """Where the lake is; empty: there is none."""
        found = (await self.link.ask("status"))["lake"]
        return str(found["root"]) if found else ""

    @property
    def now_ns(self) -> int:
        """The broker's clock, by which ages are told."""
        return self.sampler.now_ns


@dataclass(frozen=True, slots=True)
class Page:
    """`make` gathers what the template shows; `key` is the rest of the path, for pages of one thing. `make_once` adds what stands outside
    the live part and would be too much work at each beat."""

    template: str
    title: str
    section: str
    make: Callable[[Desk, Query, str], Awaitable[Context]]
    every_beats: int = 1
    make_once: Callable[[Desk, Query], Awaitable[Context]] | None = None


def offset_of(query: Query) -> int:
    text = query.get("offset", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def turning(offset: int, total: int) -> Context:
    """The links to the neighbours of one part of a list."""
    return {
        "offset": offset,
        "total": total,
        "before": max(offset - PAGE_SIZE, 0) if offset else None,
        "after": offset + PAGE_SIZE if offset + PAGE_SIZE < total else None,
        "page_size": PAGE_SIZE,
    }
