"""Background verification of stored segments, so that damage at rest is found before the bytes are needed.

A step verifies some blocks of sealed segments by CRC; a pass covers all of them. Damage is reported once, as a range of bytes without a
whole block. The caller works out which messages are affected. `step` runs in a thread; everything else runs in the event loop.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

from dragoman.journal.disk import DiskFace
from dragoman.journal.format import BLOCK_FILLER, SEGMENT_HEADER_SIZE, unpack_segment_header
from dragoman.journal.recovery.scan import SegmentWalk, next_whole_block
from dragoman.journal.segment_store import Segment, SegmentStore

STEP_NS = 1_000_000_000  # interval between steps during a pass
NO_LIMIT = 1 << 64


class DamagedRange(NamedTuple):
    """Bytes of a segment that should contain whole blocks and do not."""

    segment_no: int
    path: str
    begin: int
    end: int
    reason: str


class Scrub:
    """`rate`: bytes per second during a pass; 0: never. `interval_ns`: from the start of one pass to the start of the next."""

    def __init__(self, disk: DiskFace, store: SegmentStore, rate: int, interval_ns: int) -> None:
        self._disk, self._store, self.rate, self.interval_ns = disk, store, rate, interval_ns
        self._next_step_ns = 0
        self._pass_began_ns = 0
        # Position of the pass: the segment and the last verified block in it.
        self._segment_no, self._offset, self._block_no = 0, 0, 0
        self._is_filler = False
        self._known: set[tuple[int, int]] = set()
        self.found: deque[DamagedRange] = deque()  # not yet consumed by the event loop
        self.proved_ns = 0  # when the last complete pass ended; 0: none has

    @property
    def damaged_blocks(self) -> int:
        """Damaged ranges of segments that are still kept."""
        return sum(segment_no in self._store.segments for segment_no, _ in list(self._known))

    def wants_step(self, now_ns: int) -> bool:
        # If the clock was set back, a step is due, too.
        return self.rate > 0 and not self._next_step_ns - self.interval_ns - STEP_NS < now_ns < self._next_step_ns

    def step(self, now_ns: int) -> None:
        """Verify about one second's share of bytes; a larger block is verified whole."""
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
        """The segment to continue with; None at the end of a pass."""
        kept = sorted(s.segment_no for s in list(self._store.segments.values()) if s.sealed)
        for segment_no in kept:
            if segment_no > self._segment_no or (segment_no == self._segment_no and self._offset > 0):
                segment = self._store.segments.get(segment_no)
                if segment is not None:
                    if segment_no != self._segment_no:
                        self._segment_no, self._offset = segment_no, SEGMENT_HEADER_SIZE
                        self._block_no, self._is_filler = segment.first_block_no - 1, False
                    return segment
        return None

    def _prove(self, segment: Segment, most: int) -> int:
        """Continue in one segment. Return the number of bytes read."""
        begin = self._offset
        try:
            fd = self._disk.open(segment.path, write=False)
        except OSError as error:
            if segment.segment_no in self._store.segments:  # else it was dropped in the meantime
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
        """Verify blocks until `most` bytes are read or the segment ends; at its end `_offset` becomes 0."""
        begin, limit, is_followed = self._offset, *self._limit(segment)
        walk = SegmentWalk(self._disk, fd, segment.seed, begin)
        for found in walk:
            if found.header.block_no >= limit:  # left by a failed sync; ignored
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
        """The block number from which on blocks of the segment are ignored, and whether the next segment follows directly."""
        later = [s for s in list(self._store.segments.values()) if s.segment_no > segment.segment_no]
        limit = min((s.first_block_no for s in later), default=NO_LIMIT)
        return limit, any(s.segment_no == segment.segment_no + 1 for s in later)

    def _report(self, segment: Segment, begin: int, end: int, reason: str) -> None:
        key = (segment.segment_no, begin)
        if key not in self._known:
            self._known.add(key)
            self.found.append(DamagedRange(segment.segment_no, segment.path, begin, end, reason))
