"""Segment files as the writer and the tools know them."""

from __future__ import annotations

from dataclasses import dataclass

from dragoman.journal.format import FORMAT_VERSION, SEGMENT_HEADER_SIZE, SegmentHeader


@dataclass(frozen=True, slots=True)
class SegmentInfo:
    """One segment for retention, tools and status. `size` counts used bytes, not preallocated ones."""

    segment_no: int
    path: str
    first_lsn: int
    last_lsn: int
    size: int
    sealed: bool
    created_ns: int
    last_time_ns: int
    took_over: bool = False  # it begins with blocks whose first copy is at the end of the segment before


@dataclass
class Segment:
    """A segment that exists as a file; `fd` is None while it is not open."""

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
    # A sync or write failed here: nothing is ever written to it or synced again.
    suspect: bool = False
    took_over: bool = False

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


def new_header(
    broker_id: bytes, segment_no: int, flags: int, first: tuple[int, int], synced: tuple[int, int], created_ns: int
) -> SegmentHeader:
    """`first` and `synced` are (lsn, block number)."""
    return SegmentHeader(FORMAT_VERSION, flags, segment_no, *first, *synced, created_ns, broker_id)
