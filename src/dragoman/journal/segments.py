"""Segments as the writer and the tools see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from dragoman.journal.format import SEGMENT_HEADER_SIZE, SegmentHeader, block_seed
from dragoman.journal.superblock import SegmentClaim, segment_identity


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One segment, for retention, tools and status. `size` counts used bytes, not preallocated ones."""

    segment_no: int
    path: str
    first_lsn: int
    last_lsn: int
    size: int
    sealed: bool
    created_ns: int
    last_time_ns: int
    took_over: bool = False  # it begins with blocks whose first copy is at the end of the previous segment


@dataclass
class Segment:
    """A segment that exists as a file; `fd` is None while it is not open for writing."""

    segment_no: int
    path: str
    first_lsn: int
    first_block_no: int
    created_ns: int
    seed: int
    fd: int | None
    end: int = SEGMENT_HEADER_SIZE
    allocated: int = 0
    last_lsn: int = 0
    last_time_ns: int = 0
    sealed: bool = False
    # The segment is known to be synced up to this offset; 0 if unknown.
    synced_end: int = 0
    # A sync or write failed here: the segment is never written to or synced again.
    suspect: bool = False
    took_over: bool = False
    # It may contain messages of version 1, whose records have no CRC of their own.
    may_lack_crc: bool = False

    @classmethod
    def with_header(cls, header: SegmentHeader, path: str, fd: int | None, allocated: int) -> Self:
        """A segment without blocks yet."""
        first, seed = (header.first_lsn, header.first_block_no), block_seed(header.broker_id, header.segment_no)
        last = (header.first_lsn - 1, header.created_ns)
        return cls(header.segment_no, path, *first, header.created_ns, seed, fd, SEGMENT_HEADER_SIZE, allocated, *last)

    def info(self) -> SegmentInfo:
        lsns, times = (self.first_lsn, self.last_lsn), (self.created_ns, self.last_time_ns)
        return SegmentInfo(self.segment_no, self.path, *lsns, self.end, self.sealed, *times, self.took_over)

    def claim(self, broker_id: bytes) -> SegmentClaim:
        """The superblock's entry for this segment."""
        identity = segment_identity(self.segment_no, self.first_lsn, self.first_block_no, self.created_ns, broker_id)
        return SegmentClaim(self.segment_no, identity, self.synced_end, self.first_lsn)
