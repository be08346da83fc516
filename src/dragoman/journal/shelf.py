"""All segments of a journal in order, and open files to read single records from."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from errno import ENOENT

from dragoman import limits
from dragoman.errors import RecordDamaged
from dragoman.journal.chain import Reach
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import (
    BLOCK_HEADER_SIZE,
    RECORD_HEAD_SIZE,
    SEGMENT_HEADER_SIZE,
    SEGMENT_MOVED,
    SEGMENT_TOOK_OVER,
    block_seed,
    index_path,
    segment_name,
)
from dragoman.journal.scan import BlockOffsets, SegmentFile, SegmentWalk, block_at, unpack_block_header_at
from dragoman.journal.segments import Segment, SegmentInfo
from dragoman.model.records import flaw_of, has_crc

# Most records are smaller than this, so that one read fetches them whole.
_READ_GUESS = 1024
# A record up to this size is read whatever the size of its file.
_READ_UNASKED = 65536


class Shelf:
    """Segments by number. Reading files are opened when first needed and closed when too many are open."""

    def __init__(self, disk: DiskFace) -> None:
        self._disk = disk
        self.segments: dict[int, Segment] = {}
        self._readers: OrderedDict[int, int] = OrderedDict()
        # For records that have no CRC of their own: where the blocks of their segments begin, and the last block read.
        self._blocks: dict[int, BlockOffsets] = {}
        self._block = b""
        self._block_no = 0
        self._block_offset = 0

    def add(self, segment: Segment) -> None:
        self.segments[segment.segment_no] = segment

    def infos(self) -> list[SegmentInfo]:
        return [segment.info() for segment in list(self.segments.values())]  # the writing thread may add one meanwhile

    def size(self) -> int:
        return sum(segment.end for segment in list(self.segments.values()))

    def drop(self, segment_no: int) -> None:
        """Forget the segment and delete its files."""
        self.delete(self.take_off(segment_no))

    def take_off(self, segment_no: int) -> Segment:
        """Forget the segment; its files are still there."""
        segment = self.segments.pop(segment_no)
        self._blocks.pop(segment_no, None)
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

    def read_record(self, segment_no: int, offset: int, message_no: int) -> bytes:
        """The record at `offset`, proved to be that of a message (or ANY_RECORD) by its own CRC, or by its block's where it has none.
        Whatever is wrong, the disk's own failure included, is a `RecordDamaged`."""
        try:
            fd = self._readers.get(segment_no)
            if fd is None:
                fd = self._open(segment_no)
            data = self._disk.read(fd, _READ_GUESS, offset)
            size = int.from_bytes(data[:4], "little")
            data = (
                data[:size] if RECORD_HEAD_SIZE <= size <= len(data) else self._read_long(segment_no, fd, offset, data)
            )
            flaw = flaw_of(data, message_no, False)
            if flaw and not has_crc(data):
                data = self._read_in_block(segment_no, offset)
                flaw = flaw_of(data, message_no, True)
        except OSError as error:
            raise RecordDamaged(self._path(segment_no), offset, error.strerror or type(error).__name__) from error
        if flaw:
            raise RecordDamaged(self._path(segment_no), offset, flaw)
        return data

    def record_size(self, segment_no: int, offset: int) -> int:
        """What the head at `offset` says, not proved, and never more than the segment holds; 0 where nothing can be read."""
        segment = self.segments.get(segment_no)
        if segment is None:
            return 0
        try:
            head = self._disk.read(self._open_reader(segment_no), 4, offset)
        except OSError:
            return 0
        return min(int.from_bytes(head, "little"), segment.end)

    def prepare(self, segment_no: int) -> None:
        """Know the blocks of a segment before a record in it is asked for: finding them takes a walk over the file."""
        if segment_no in self.segments:
            with suppress(OSError):
                self._blocks_of(segment_no, 0)

    def _read_long(self, segment_no: int, fd: int, offset: int, data: bytes) -> bytes:
        """The bytes of a record, of which `data` is the beginning. Its size is not proved yet: no room is made for more than the file has."""
        size = int.from_bytes(data[:4], "little")
        if size < RECORD_HEAD_SIZE:
            raise RecordDamaged(self._path(segment_no), offset, "no record begins here")
        if size <= _READ_UNASKED or offset + size <= self._disk.size(fd):
            data += self._disk.read(fd, size - len(data), offset + len(data))
        if len(data) < size:
            raise RecordDamaged(self._path(segment_no), offset, "the file ends inside the record")
        return data

    def _read_in_block(self, segment_no: int, offset: int) -> bytes:
        """A record out of its block, which is proved first. The last block stays at hand: records are asked for in their order."""
        if self._block_no != segment_no or not 0 <= offset - self._block_offset < len(self._block):
            self._block_no = 0
            start = self._blocks_of(segment_no, offset).start_of(offset)
            found = block_at(self._disk, self._open_reader(segment_no), self.segments[segment_no].seed, start)
            if found is None or not 0 <= offset - found.offset - BLOCK_HEADER_SIZE < len(found.records):
                raise RecordDamaged(self._path(segment_no), offset, "the CRC of its block does not match")
            self._block_no, self._block_offset = segment_no, found.offset + BLOCK_HEADER_SIZE
            self._block = found.records
        at = offset - self._block_offset
        size = int.from_bytes(self._block[at : at + 4], "little")
        if not RECORD_HEAD_SIZE <= size <= len(self._block) - at:
            raise RecordDamaged(self._path(segment_no), offset, "no record begins here")
        return self._block[at : at + size]

    def _blocks_of(self, segment_no: int, offset: int) -> BlockOffsets:
        blocks, segment = self._blocks.get(segment_no), self.segments[segment_no]
        if blocks is None or not (blocks.is_all or blocks.reaches(offset)):
            blocks = self._blocks.setdefault(segment_no, BlockOffsets())
            blocks.is_all = segment.sealed
            blocks.read_on(self._disk, self._open_reader(segment_no), segment.seed)
        return blocks

    def _open_reader(self, segment_no: int) -> int:
        fd = self._readers.get(segment_no)
        return fd if fd is not None else self._open(segment_no)

    def _path(self, segment_no: int) -> str:
        segment = self.segments.get(segment_no)
        return segment.path if segment is not None else segment_name(segment_no)

    def _open(self, segment_no: int) -> int:
        segment = self.segments.get(segment_no)
        if segment is None:
            raise FileNotFoundError(ENOENT, "the segment is missing")
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
    """Whether it says so, or (one of version 1) its first block is the second copy of one."""
    if file.header is None or file.header.flags & SEGMENT_TOOK_OVER:
        return file.header is not None
    if not file.header.flags & SEGMENT_MOVED:
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
