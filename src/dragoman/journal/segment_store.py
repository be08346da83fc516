"""The segments of a journal: their state, their order, and open files for reading single records."""

from __future__ import annotations

from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass
from errno import ENOENT
from typing import Final, Self

from dragoman import limits
from dragoman.errors import RecordDamaged
from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace, opened
from dragoman.journal.recovery.chain import Reach
from dragoman.journal.recovery.scan import BlockOffsets, SegmentFile, block_at, unpack_block_header_at, walk_file
from dragoman.journal.stream import PIECE_SIZE, RecordStream
from dragoman.journal.superblock import SegmentClaim, segment_identity
from dragoman.model.facts.layout import HEAD_SIZE
from dragoman.model.facts.records import ANY_RECORD, flaw_of, has_crc

# Most records are smaller than this, so one read usually fetches a whole record.
_READ_GUESS = 1024
# `body_most` for the whole body.
ALL_BYTES: Final = -1


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
    end: int = fmt.SEGMENT_HEADER_SIZE
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
    def with_header(cls, header: fmt.SegmentHeader, path: str, fd: int | None, allocated: int) -> Self:
        """A segment without blocks yet."""
        first, seed = (header.first_lsn, header.first_block_no), fmt.block_seed(header.broker_id, header.segment_no)
        last = (header.first_lsn - 1, header.created_ns)
        return cls(
            header.segment_no, path, *first, header.created_ns, seed, fd, fmt.SEGMENT_HEADER_SIZE, allocated, *last
        )

    def info(self) -> SegmentInfo:
        lsns, times = (self.first_lsn, self.last_lsn), (self.created_ns, self.last_time_ns)
        return SegmentInfo(self.segment_no, self.path, *lsns, self.end, self.sealed, *times, self.took_over)

    def claim(self, broker_id: bytes) -> SegmentClaim:
        """The superblock's entry for this segment."""
        identity = segment_identity(self.segment_no, self.first_lsn, self.first_block_no, self.created_ns, broker_id)
        return SegmentClaim(self.segment_no, identity, self.synced_end, self.first_lsn)


class SegmentStore:
    """Segments by number. Files are opened for reading on first use; the one opened first is closed when too many are open."""

    def __init__(self, disk: DiskFace) -> None:
        self._disk = disk
        self.segments: dict[int, Segment] = {}
        self._readers: OrderedDict[int, int] = OrderedDict()
        self.open_max = limits.OPEN_SEGMENTS_MAX
        # For records without a CRC of their own: the block offsets of their segments, and the last block read.
        self._blocks: dict[int, BlockOffsets] = {}
        self._block = b""
        self._block_no = 0
        self._block_offset = 0
        # A larger record is read only after checking that its file is long enough, and in pieces where the caller needs only a part.
        self.read_whole_size = limits.READ_WHOLE_SIZE
        self._buffer: memoryview | None = None  # reused for the pieces

    def infos(self) -> list[SegmentInfo]:
        return [segment.info() for segment in list(self.segments.values())]  # the writing thread may add one

    def size(self) -> int:
        return sum(segment.end for segment in list(self.segments.values()))

    def drop(self, segment_no: int) -> None:
        """Remove the segment from the store and delete its files."""
        self.delete(self.remove(segment_no))

    def remove(self, segment_no: int) -> Segment:
        """Remove the segment from the store; its files stay."""
        segment = self.segments.pop(segment_no)
        self._blocks.pop(segment_no, None)
        self._close(segment)
        return segment

    def delete(self, segment: Segment) -> None:
        """Delete the segment's file, and its index if it has one."""
        self._disk.unlink(segment.path)
        with suppress(FileNotFoundError):
            self._disk.unlink(fmt.index_path(segment.path))

    def close(self) -> None:
        for segment in self.segments.values():
            self._close(segment)

    def read_record(self, segment_no: int, offset: int, message_no: int, body_most: int = ALL_BYTES) -> bytes:
        """The record at `offset`, verified to be that of the message (or ANY_RECORD) by its own CRC, or by its block's CRC if it has none. A large
        record comes with at most `body_most` bytes of its body. Every failure, including disk errors, is raised as `RecordDamaged`."""
        try:
            fd = self._readers.get(segment_no)
            if fd is None:
                fd = self._open(segment_no)
            data = self._disk.read(fd, _READ_GUESS, offset)
            size = int.from_bytes(data[:4], "little")
            if HEAD_SIZE <= size <= len(data):
                data = data[:size]
            elif body_most >= 0 and (stream := self._stream(segment_no, offset, message_no, data)) is not None:
                stream.keep_body(body_most)
                stream.step(stream.size)
                return stream.head + stream.taken()
            else:
                data = self._read_long(segment_no, fd, offset, data, message_no)
            flaw = flaw_of(data, message_no, False)
            if flaw and self._may_lack_crc(segment_no, data, message_no):
                data = self._read_in_block(segment_no, offset)
                flaw = flaw_of(data, message_no, True)
        except OSError as error:
            raise self.unreadable(segment_no, offset, error) from error
        if flaw:
            raise self.damaged(segment_no, offset, flaw)
        return data

    def stream(self, segment_no: int, offset: int, message_no: int) -> RecordStream | None:
        """A large record to be read in pieces; None for a small one and for one without a CRC of its own."""
        data = self._disk.read(self._open_reader(segment_no), _READ_GUESS, offset)
        return self._stream(segment_no, offset, message_no, data)

    def _stream(self, segment_no: int, offset: int, message_no: int, data: bytes) -> RecordStream | None:
        size = int.from_bytes(data[:4], "little")
        if size <= self.read_whole_size or len(data) < HEAD_SIZE or not has_crc(data):
            return None
        if offset + size > self._disk.size(self._open_reader(segment_no)):
            raise self.damaged(segment_no, offset, "the file ends inside the record")
        return RecordStream(self, segment_no, offset, message_no, size)

    def piece(self, segment_no: int, offset: int, size: int) -> memoryview:
        """Up to PIECE_SIZE bytes of a segment, valid until the next call (the buffer is reused)."""
        if self._buffer is None:
            self._buffer = memoryview(bytearray(PIECE_SIZE))
        piece = self._buffer[:size]
        return piece[: self._disk.read_into(self._open_reader(segment_no), piece, offset)]

    def damaged(self, segment_no: int, offset: int, reason: str) -> RecordDamaged:
        return RecordDamaged(self._path(segment_no), offset, reason)

    def unreadable(self, segment_no: int, offset: int, error: OSError) -> RecordDamaged:
        return self.damaged(segment_no, offset, error.strerror or type(error).__name__)

    def record_size(self, segment_no: int, offset: int) -> int:
        """The size in the record's head, not verified, and at most the segment's size; 0 if it cannot be read."""
        segment = self.segments.get(segment_no)
        if segment is None:
            return 0
        try:
            head = self._disk.read(self._open_reader(segment_no), 4, offset)
        except OSError:
            return 0
        return min(int.from_bytes(head, "little"), segment.end)

    def prepare(self, segment_no: int) -> None:
        """Find the block offsets of a segment whose records may lack a CRC ahead of the first read, because that walks the whole file."""
        segment = self.segments.get(segment_no)
        if segment is not None and (segment.may_lack_crc or segment.took_over):
            with suppress(OSError):
                self._blocks_of(segment_no, 0)

    def _may_lack_crc(self, segment_no: int, data: bytes, message_no: int) -> bool:
        """Whether a record without a CRC may be valid, as one of version 1 is. Then its block's CRC verifies it, and finding the block walks
        the segment. In segments where every message has a CRC this is False, so that one damaged byte does not cost that walk."""
        if has_crc(data):
            return False
        segment = self.segments[segment_no]
        return message_no == ANY_RECORD or segment.may_lack_crc or segment.took_over

    def _read_long(self, segment_no: int, fd: int, offset: int, data: bytes, message_no: int) -> bytes:
        """The whole record that begins with `data`. Its size is not verified yet, so no more memory is allocated than the file has bytes."""
        size = int.from_bytes(data[:4], "little")
        if size < HEAD_SIZE:
            raise RecordDamaged(self._path(segment_no), offset, "no record begins here")
        if size > self.read_whole_size and len(data) == _READ_GUESS and not has_crc(data):
            if not self._may_lack_crc(segment_no, data, message_no):
                raise self.damaged(segment_no, offset, flaw_of(data, message_no, False))
        if size <= self.read_whole_size or offset + size <= self._disk.size(fd):
            data += self._disk.read(fd, size - len(data), offset + len(data))
        if len(data) < size:
            raise RecordDamaged(self._path(segment_no), offset, "the file ends inside the record")
        return data

    def _read_in_block(self, segment_no: int, offset: int) -> bytes:
        """A record from its block, whose CRC is verified first. The last block is cached, because records are mostly read in order."""
        if self._block_no != segment_no or not 0 <= offset - self._block_offset < len(self._block):
            self._block_no = 0
            start = self._blocks_of(segment_no, offset).start_of(offset)
            found = block_at(self._disk, self._open_reader(segment_no), self.segments[segment_no].seed, start)
            if found is None or not 0 <= offset - found.offset - fmt.BLOCK_HEADER_SIZE < len(found.records):
                raise RecordDamaged(self._path(segment_no), offset, "the CRC of its block does not match")
            self._block_no, self._block_offset = segment_no, found.offset + fmt.BLOCK_HEADER_SIZE
            self._block = found.records
        at = offset - self._block_offset
        size = int.from_bytes(self._block[at : at + 4], "little")
        if not HEAD_SIZE <= size <= len(self._block) - at:
            raise RecordDamaged(self._path(segment_no), offset, "no record begins here")
        return self._block[at : at + size]

    def _blocks_of(self, segment_no: int, offset: int) -> BlockOffsets:
        blocks, segment = self._blocks.get(segment_no), self.segments[segment_no]
        if blocks is None or not (blocks.is_all or offset < blocks.end):
            blocks = self._blocks.setdefault(segment_no, BlockOffsets())
            blocks.is_all = segment.sealed
            blocks.read_on(self._disk, self._open_reader(segment_no), segment.seed)
        return blocks

    def _open_reader(self, segment_no: int) -> int:
        fd = self._readers.get(segment_no)
        return fd if fd is not None else self._open(segment_no)

    def _path(self, segment_no: int) -> str:
        segment = self.segments.get(segment_no)
        return segment.path if segment is not None else fmt.segment_name(segment_no)

    def _open(self, segment_no: int) -> int:
        segment = self.segments.get(segment_no)
        if segment is None:
            raise FileNotFoundError(ENOENT, "the segment is missing")
        if len(self._readers) >= self.open_max:
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


def open_store(
    disk: DiskFace, files: list[SegmentFile], reach: dict[int, Reach], newest_sealed: bool = True
) -> SegmentStore:
    """Build the store from what recovery found. Segments before the checkpoint were not walked: the header of the next segment tells
    where they end, and only a segment without a direct successor is walked now."""
    store = SegmentStore(disk)
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
        segment = Segment.with_header(header, file.path, None, file.size)
        segment.end, segment.last_lsn, segment.last_time_ns = max(end, fmt.BLOCK_HEADER_SIZE), last_lsn, last_time_ns
        segment.sealed = newest_sealed or follower is not None
        segment.took_over = _took_over(disk, file)
        segment.may_lack_crc = header.version < 2 or header.flags & fmt.SEGMENT_GAP != 0
        store.segments[segment.segment_no] = segment
    return store


def _took_over(disk: DiskFace, file: SegmentFile) -> bool:
    """Whether the header's flag says so or, in version 1, its first block is a second copy (has an `origin`)."""
    if file.header is None or file.header.flags & fmt.SEGMENT_TOOK_OVER:
        return file.header is not None
    if not file.header.flags & fmt.SEGMENT_MOVED:
        return False
    with opened(disk, file.path) as fd:
        first = unpack_block_header_at(disk, fd, fmt.SEGMENT_HEADER_SIZE)
    return first is not None and first.origin != 0


def _walk_to_end(disk: DiskFace, file: SegmentFile) -> tuple[int, int, int]:
    assert file.header is not None
    last_lsn, last_time_ns = file.header.first_lsn - 1, file.header.created_ns
    end = fmt.SEGMENT_HEADER_SIZE
    for found in walk_file(disk, file):
        end, last_lsn, last_time_ns = found.end, found.header.first_lsn + found.header.facts - 1, found.header.time_ns
    return end, last_lsn, last_time_ns
