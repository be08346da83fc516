"""What all pages share: access to the broker and its data, and the definition of a page."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dragoman.web.link import Link
from dragoman.web.samples.sampling import Sampler

Context = dict[str, Any]
Query = Mapping[str, str]

PAGE_SIZE: Final = 50
NOT_FOUND: Final = "NOT_FOUND"  # the broker's refusal code for an unknown object


@dataclass(frozen=True, slots=True)
class Desk:
    """The data directory, broker link and sampler that all pages use; one per process."""

    data: Path
    link: Link
    sampler: Sampler

    @property
    def journal(self) -> Path:
        return self.data / "journal"

    async def lake(self) -> str:
        """The lake's root directory; empty if there is no lake."""
        found = (await self.link.ask("status"))["lake"]
        return str(found["root"]) if found else ""

    @property
    def now_ns(self) -> int:
        """The broker's clock, used to compute ages."""
        return self.sampler.now_ns


@dataclass(frozen=True, slots=True)
class Page:
    """One kind of page. `make` collects the template's context; `key` is the rest of the path, for pages about one object. `make_once` adds
    the parts outside the live block that cost too much to repeat on every beat."""

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
    """Links to the previous and next part of a paged list."""
    return {
        "offset": offset,
        "total": total,
        "before": max(offset - PAGE_SIZE, 0) if offset else None,
        "after": offset + PAGE_SIZE if offset + PAGE_SIZE < total else None,
        "page_size": PAGE_SIZE,
    }
