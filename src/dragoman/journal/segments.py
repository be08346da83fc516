"""Segments as the writer and the tools see them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from dragoman.journal.disk import DiskFace
from dragoman.journal.format import FORMAT_VERSION, SEGMENT_HEADER_SIZE, SegmentHeader
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

    def info(self) -> SegmentInfo:
        return SegmentInfo(
            self.segment_no,
            self.path,
            self.first_lsn,
            self.last_lsn,
            self.end,
            self.sealed,
            self.created_ns,
            self.last_time_ns,
            self.took_over,
        )

    def claim(self, broker_id: bytes) -> SegmentClaim:
        """The superblock's entry for this segment."""
        identity = segment_identity(self.segment_no, self.first_lsn, self.first_block_no, self.created_ns, broker_id)
        return SegmentClaim(self.segment_no, identity, self.synced_end, self.first_lsn)


def claims_of(segments: list[Segment], synced_block_no: int, broker_id: bytes) -> tuple[SegmentClaim, ...]:
    """The superblock's entries for the segments that contain synced blocks. Any other segment may still be deleted: a failed sync left it, or it
    is empty."""
    claims: list[SegmentClaim] = []
    limit = synced_block_no + 1
    for segment in reversed(segments):
        if segment.first_block_no < limit:
            claims.append(segment.claim(broker_id))
            limit = segment.first_block_no
    return tuple(reversed(claims))


def new_header(
    broker_id: bytes, segment_no: int, flags: int, first: tuple[int, int], synced: tuple[int, int], created_ns: int
) -> SegmentHeader:
    """`first` and `synced` are (lsn, block number)."""
    return SegmentHeader(FORMAT_VERSION, flags, segment_no, *first, *synced, created_ns, broker_id)


def leave(disk: DiskFace, suspects: list[Segment], synced_lsn: int, first_block_no: int) -> list[int]:
    """Close suspect segments, whose unsynced blocks were rewritten from `first_block_no` on. Return the numbers of those without any valid block."""
    for segment in suspects:
        segment.last_lsn = min(segment.last_lsn, synced_lsn)
        if segment.fd is not None:
            with suppress(OSError):
                disk.close(segment.fd)
            segment.fd = None
    return [segment.segment_no for segment in suspects if segment.first_block_no >= first_block_no]
