"""Append-only log of facts: blocks of records in segment files, with commit, recovery and retention.

The journal treats records as bytes: `u32 size`, `u8 kind`, the rest opaque. See docs/reference/journal.md.
The operator tools are in `tools`: `backup`, `verify` and `salvage`, among others.

The names in `__all__` are imported on first use: a trace needs neither the writer nor recovery and must start fast.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.journal.disk import Disk, DiskFace
    from dragoman.journal.format import BLOCK_HEADER_SIZE, FORMAT_VERSION, Block
    from dragoman.journal.journal import FactLog, Journal
    from dragoman.journal.reader import JournalReader
    from dragoman.journal.segments import SegmentInfo
    from dragoman.journal.settings import DURABILITIES, Durability, JournalSettings

__all__ = [
    "BLOCK_HEADER_SIZE",
    "DURABILITIES",
    "FORMAT_VERSION",
    "Block",
    "Disk",
    "DiskFace",
    "Durability",
    "FactLog",
    "Journal",
    "JournalReader",
    "JournalSettings",
    "SegmentInfo",
]

_HOMES: Final = {
    "FactLog": "journal",
    "Disk": "disk",
    "DiskFace": "disk",
    "BLOCK_HEADER_SIZE": "format",
    "FORMAT_VERSION": "format",
    "Block": "format",
    "Journal": "journal",
    "JournalReader": "reader",
    "SegmentInfo": "segments",
    "DURABILITIES": "settings",
    "Durability": "settings",
    "JournalSettings": "settings",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{_HOMES[name]}"), name)
