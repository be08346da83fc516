"""facts → disk: blocks of records in segment files, committed, recovered, kept within bounds.

The journal sees records only as bytes: `u32 size`, `u8 kind`, the rest opaque. See docs/reference/journal.md.
For operators there are `backup`, `verify` and `salvage`, each a module of its own.

What the room offers is loaded when it is first asked for: a trace needs neither the writer nor recovery, and is to answer at once.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dragoman.journal.contract import FactLog
    from dragoman.journal.disk import Disk, DiskFace
    from dragoman.journal.format import BLOCK_HEADER_SIZE, FORMAT_VERSION, KIND_CARRIED, KIND_CHECKPOINT, Block
    from dragoman.journal.journal import Journal
    from dragoman.journal.reader import JournalReader
    from dragoman.journal.segments import SegmentInfo
    from dragoman.journal.settings import DURABILITIES, Durability, JournalSettings

__all__ = [
    "BLOCK_HEADER_SIZE",
    "DURABILITIES",
    "FORMAT_VERSION",
    "KIND_CARRIED",
    "KIND_CHECKPOINT",
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
    "FactLog": "contract",
    "Disk": "disk",
    "DiskFace": "disk",
    "BLOCK_HEADER_SIZE": "format",
    "FORMAT_VERSION": "format",
    "KIND_CARRIED": "format",
    "KIND_CHECKPOINT": "format",
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
