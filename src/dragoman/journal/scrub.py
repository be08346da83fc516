"""Proving kept segments again and again, slowly: damage at rest is found before somebody needs the bytes.

A step proves some blocks of sealed segments by their CRC; a pass proves all there are. Damage found is reported once: as a range of bytes that
hold no whole block. What it means for messages is the caller's affair. `step` runs in a thread; the rest belongs to the loop.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dragoman.journal.disk import DiskFace
from dragoman.journal.format import BLOCK_FILLER, SEGMENT_HEADER_SIZE, unpack_segment_header
from dragoman.journal.scan import SegmentWalk, next_whole_block
from dragoman.journal.segments import Segment
from dragoman.journal.shelf import Shelf

STEP_NS = 1_000_000_000  # how often a step is due during a pass
NO_LIMIT = 1 << 64


class DamagedRange(NamedTuple):
    """Bytes of a segment that hold no whole block, though they should."""

    segment_no: int
    path: str
    begin: int
    end: int
    reason: str


class Scrub:
    """`rate`: bytes a second during a pass; 0: never. `interval_ns`: from the beginning of a pass to that of the next."""

    def __init__(self, disk: DiskFace, shelf: Shelf, rate: int, interval_ns: int) -> None:
        self._disk, self._shelf, self.rate, self.interval_ns = disk, shelf, rate, interval_ns
        self._next_step_ns = 0
        self._pass_began_ns = 0
        # Where the pass is: the segment, and the last block of it that was proved.
        self._segment_no, self._offset, self._block_no = 0, 0, 0
        self._is_filler = False
        self._known: set[tuple[int, int]] = set()
        self.found: deque[DamagedRange] = deque()  # not yet taken by the loop
        self.proved_ns = 0  # when the last whole pass ended; 0: none has

    @property
    def damaged_blocks(self) -> int:
        """Damaged ranges of segments that are still kept."""
        return sum(segment_no in self._shelf.segments for segment_no, _ in list(self._known))

    def wants_step(self, now_ns: int) -> bool:
        # A clock that was set back makes it due, too.
        return self.rate > 0 and not self._next_step_ns - self.interval_ns - STEP_NS < now_ns < self._next_step_ns

    def step(self, now_ns: int) -> None:
        """Prove about a second's share of bytes, or a larger block whole."""
        if self._segment_no == 0:
            self._pass_began_ns = now_ns
        self._next_step_ns = now_ns + STEP_NS
        left = self.rate
        while left > 0:
            segment = self._segment()
            if segment is None:
                self._segment_no = self._offset = 0
                self.proved_ns = now_ns
                self._next_step_ns = max(self._pass_began_ns + self.interval_ns, now_ns + STEP_NS)
                return
            left -= self._prove(segment, left)

    def _segment(self) -> Segment | None:
        """The segment to go on with."""
        kept = sorted(s.segment_no for s in list(self._shelf.segments.values()) if s.sealed)
        for segment_no in kept:
            if segment_no > self._segment_no or (segment_no == self._segment_no and self._offset > 0):
                segment = self._shelf.segments.get(segment_no)
                if segment is not None:
                    if segment_no != self._segment_no:
                        self._segment_no, self._offset = segment_no, SEGMENT_HEADER_SIZE
                        self._block_no, self._is_filler = segment.first_block_no - 1, False
                    return segment
        return None

    def _prove(self, segment: Segment, most: int) -> int:
        """Go on in one segment; the bytes that were read."""
        begin = self._offset
        try:
            fd = self._disk.open(segment.path, write=False)
        except OSError as error:
            if segment.segment_no in self._shelf.segments:  # else it was dropped meanwhile
                self._report(segment, 0, segment.end, error.strerror or "it cannot be opened")
            self._offset = 0
            return SEGMENT_HEADER_SIZE
        try:
            if begin == SEGMENT_HEADER_SIZE:
                self._prove_header(segment, fd)
            self._walk(segment, fd, most)
        except OSError as error:
            self._report(segment, self._offset, segment.end, error.strerror or "it cannot be read")
            self._offset = 0
        finally:
            self._disk.close(fd)
        return max(self._offset - begin, SEGMENT_HEADER_SIZE) if self._offset else max(segment.end - begin, 1)

    def _prove_header(self, segment: Segment, fd: int) -> None:
        header = unpack_segment_header(self._disk.read(fd, SEGMENT_HEADER_SIZE, 0))
        if header is None or header.segment_no != segment.segment_no:
            self._report(segment, 0, SEGMENT_HEADER_SIZE, "the segment header is damaged")

    def _walk(self, segment: Segment, fd: int, most: int) -> None:
        """Prove blocks until `most` bytes are read or the segment ends: then `_offset` is 0."""
        begin, limit, is_followed = self._offset, *self._limit(segment)
        walk = SegmentWalk(self._disk, fd, segment.seed, begin)
        for found in walk:
            if found.header.block_no >= limit:  # what a failed sync left: it counts for nothing
                self._offset = 0
                return
            self._offset, self._block_no = walk.end, found.header.block_no
            self._is_filler = found.header.flags & BLOCK_FILLER != 0
            if walk.end - begin >= most:
                return
        if self._block_no + 1 >= limit or (self._is_filler and walk.fault is None):
            self._offset = 0
            return
        further = next_whole_block(self._disk, fd, segment.seed, walk.end, self._block_no + 1)
        if further is not None and further.header.block_no >= limit:
            further = None
        if further is not None or walk.fault is not None or is_followed:
            end = further.offset if further is not None else max(segment.end, walk.end + 1)
            self._report(segment, walk.end, end, walk.fault or "zeros where a block should be")
        self._offset = further.offset if further is not None else 0

    def _limit(self, segment: Segment) -> tuple[int, bool]:
        """The block number at which the blocks of a segment stop counting, and whether the next one must be that number."""
        later = [s for s in list(self._shelf.segments.values()) if s.segment_no > segment.segment_no]
        limit = min((s.first_block_no for s in later), default=NO_LIMIT)
        return limit, any(s.segment_no == segment.segment_no + 1 for s in later)

    def _report(self, segment: Segment, begin: int, end: int, reason: str) -> None:
        key = (segment.segment_no, begin)
        if key not in self._known:
            self._known.add(key)
            self.found.append(DamagedRange(segment.segment_no, segment.path, begin, end, reason))
