"""All segments of a journal in order, and open files to read single records from."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress

from dragoman import limits
from dragoman.errors import JournalDamaged
from dragoman.journal.chain import Reach
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import (
    BLOCK_HEADER_SIZE,
    RECORD_HEAD_SIZE,
    SEGMENT_HEADER_SIZE,
    SEGMENT_MOVED,
    block_seed,
    index_path,
)
from dragoman.journal.scan import SegmentFile, SegmentWalk, unpack_block_header_at
from dragoman.journal.segments import Segment, SegmentInfo

# Most records are smaller than this, so that one read fetches them whole.
_READ_GUESS = 1024


class Shelf:
    """Segments by number. Reading files are opened when first needed and closed when too many are open."""

    def __init__(self, disk: DiskFace) -> None:
        self._disk = disk
        self.segments: dict[int, Segment] = {}
        self._readers: OrderedDict[int, int] = OrderedDict()

    def add(self, segment: Segment) -> None:
        self.segments[segment.segment_no] = segment

    def infos(self) -> list[SegmentInfo]:
        return [segment.info() for segment in self.segments.values()]

    def size(self) -> int:
        return sum(segment.end for segment in self.segments.values())

    def drop(self, segment_no: int) -> None:
        """Forget the segment and delete its files."""
        self.delete(self.take_off(segment_no))

    def take_off(self, segment_no: int) -> Segment:
        """Forget the segment; its files are still there."""
        segment = self.segments.pop(segment_no)
        self._close(segment)
        return segment

    def delete(self, segment: Segment) -> None:
        """Delete the segment's file, and its index if it has one."""
        self._disk.unlink(segment.path)
        with suppress(FileNotFoundError):
            self._disk.unlink(index_path(segment.path))

    def close(self) -> None:
        for segment in self.segments.values():
            self._close(segment)

    def read_record(self, segment_no: int, offset: int) -> bytes:
        """The record at `offset`; its head must be sane, for a waiting body has no other proof of its own."""
        fd = self._readers.get(segment_no)
        if fd is None:
            fd = self._open(segment_no)
        data = self._disk.read(fd, _READ_GUESS, offset)
        size = int.from_bytes(data[:4], "little")
        if not RECORD_HEAD_SIZE <= size <= limits.BLOCK_SIZE_MAX or data[4] == 0:
            path = self.segments[segment_no].path
            raise JournalDamaged(path, offset, 0, "no record begins here")
        if size <= len(data):
            return data[:size]
        data += self._disk.read(fd, size - len(data), offset + len(data))
        if len(data) < size:
            raise JournalDamaged(self.segments[segment_no].path, offset, 0, "the file ends inside a record")
        return data

    def _open(self, segment_no: int) -> int:
        segment = self.segments.get(segment_no)
        assert segment is not None, f"segment {segment_no} was dropped while a place in it was live"
        if len(self._readers) >= limits.OPEN_SEGMENTS_MAX:
            _, oldest = self._readers.popitem(last=False)
            self._disk.close(oldest)
        fd = self._readers[segment_no] = self._disk.open(segment.path, write=False)
        return fd

    def _close(self, segment: Segment) -> None:
        if (reader := self._readers.pop(segment.segment_no, None)) is not None:
            self._disk.close(reader)
        if segment.fd is not None:
            self._disk.close(segment.fd)
            segment.fd = None


def shelve(disk: DiskFace, files: list[SegmentFile], reach: dict[int, Reach], newest_sealed: bool = True) -> Shelf:
    """Put what recovery found on a shelf. Segments before the checkpoint were not walked; their successors' headers tell
    where they end, and only one that has no direct successor is walked now."""
    shelf = Shelf(disk)
    for index, file in enumerate(files):
        header = file.header
        assert header is not None, "recovery refuses or cuts a segment without a header"
        known = reach.get(file.segment_no)
        follower = files[index + 1] if index + 1 < len(files) else None
        if known is not None:
            end, last_lsn, last_time_ns = known.end, known.last_lsn, known.last_time_ns
        elif follower is not None and follower.header is not None and follower.segment_no == file.segment_no + 1:
            end, last_lsn, last_time_ns = file.size, follower.header.first_lsn - 1, follower.header.created_ns
        else:
            end, last_lsn, last_time_ns = _walk_to_end(disk, file)
        segment = Segment(
            file.segment_no, file.path, header.first_lsn, header.first_block_no, header.created_ns,
            block_seed(header.broker_id, header.segment_no), None, end=max(end, BLOCK_HEADER_SIZE), allocated=file.size,
            last_lsn=last_lsn, last_time_ns=last_time_ns, sealed=newest_sealed or follower is not None,
            took_over=_took_over(disk, file),
        )  # fmt: skip
        shelf.add(segment)
    return shelf


def _took_over(disk: DiskFace, file: SegmentFile) -> bool:
    """Whether its first block is the second copy of one."""
    if file.header is None or not file.header.flags & SEGMENT_MOVED:
        return False
    fd = disk.open(file.path, write=False)
    try:
        first = unpack_block_header_at(disk, fd, SEGMENT_HEADER_SIZE)
    finally:
        disk.close(fd)
    return first is not None and first.origin != 0


def _walk_to_end(disk: DiskFace, file: SegmentFile) -> tuple[int, int, int]:
    assert file.header is not None
    last_lsn, last_time_ns = file.header.first_lsn - 1, file.header.created_ns
    fd = disk.open(file.path, write=False)
    try:
        walk = SegmentWalk(disk, fd, block_seed(file.header.broker_id, file.segment_no))
        for found in walk:
            last_lsn = found.header.first_lsn + found.header.facts - 1
            last_time_ns = found.header.time_ns
    finally:
        disk.close(fd)
    return walk.end, last_lsn, last_time_ns
