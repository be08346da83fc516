"""facts → disk: blocks of records in segment files, committed, recovered, kept within bounds.

The journal sees records only as bytes: `u32 size`, `u8 kind`, the rest opaque. See docs/reference/journal.md.
For operators there are `backup`, `verify` and `salvage`, each a module of its own.
"""

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
