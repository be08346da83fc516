"""Reads the blocks of one segment in order, each verified by its CRC, up to the end or the first bytes that are not a block.

A walk does not decide what a bad block means; it reports where and why it stopped. `recover.py` decides.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

from dragoman import limits
from dragoman.errors import JournalMisplaced, JournalTooNew
from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace, opened
from dragoman.journal.format import BLOCK_HEADER_SIZE, BLOCK_MAGIC, Block, block_is_whole, unpack_block_header

# Bytes per read: large enough for few system calls, small enough to be in the CPU cache when the CRC is computed.
READ_SIZE: Final = 1024 * 1024
_ZEROS: Final = bytes(BLOCK_HEADER_SIZE)


class Found(NamedTuple):
    """A whole block: the offset of its header, the header, the records."""

    offset: int
    header: fmt.BlockHeader
    records: bytes

    @property
    def end(self) -> int:
        return self.offset + BLOCK_HEADER_SIZE + self.header.size


class SegmentFile(NamedTuple):
    """A segment file in a directory, with its header; the header is None if it is damaged."""

    segment_no: int
    path: str
    size: int
    header: fmt.SegmentHeader | None

    @property
    def seed(self) -> int:
        """The initial CRC value of its blocks."""
        assert self.header is not None, "a segment without a header has no broker id"
        return fmt.block_seed(self.header.broker_id, self.segment_no)


class SegmentWalk:
    """Iterate over the whole blocks of a segment from `offset`. Afterwards `end` is the offset after the last whole
    block, and `fault` says what is there instead of a block (None: nothing, the segment ends)."""

    def __init__(self, disk: DiskFace, fd: int, seed: int, offset: int = fmt.SEGMENT_HEADER_SIZE) -> None:
        self._disk, self._fd, self._seed = disk, fd, seed
        self.end = offset
        self.fault: str | None = None

    def __iter__(self) -> Iterator[Found]:
        """One tight loop, because a quiet broker writes one block per message and recovery reads all of them."""
        read, fd, seed = self._disk.read, self._fd, self._seed
        data, view, base, held = b"", memoryview(b""), self.end, 0
        while True:
            at = self.end - base
            if held - at < BLOCK_HEADER_SIZE:
                data, base, at = read(fd, READ_SIZE, self.end), self.end, 0
                view, held = memoryview(data), len(data)
                if held < BLOCK_HEADER_SIZE:
                    self.fault = "the file ends inside a block header" if data.strip(b"\0") else None
                    return
            header = unpack_block_header(data, at)
            magic, crc, size = header[:3]
            if magic != BLOCK_MAGIC:
                self.fault = None if data[at : at + BLOCK_HEADER_SIZE] == _ZEROS else "no block header here"
                return
            if size > limits.BLOCK_SIZE_MAX:
                self.fault = f"a block of {size} bytes"
                return
            total = BLOCK_HEADER_SIZE + size
            if held - at < total:
                data, base, at = read(fd, max(total, READ_SIZE), self.end), self.end, 0
                view, held = memoryview(data), len(data)
                if held < total:
                    self.fault = "the file ends inside a block"
                    return
            if not block_is_whole(view, at, size, crc, seed):
                self.fault = "the block's CRC does not match"
                return
            found = Found(self.end, header, data[at + BLOCK_HEADER_SIZE : at + total])
            # `end` is advanced before the yield, so that a caller that stops here can continue from `end` later.
            self.end += total
            yield found


def next_whole_block(disk: DiskFace, fd: int, seed: int, offset: int, block_no_min: int = 0) -> Found | None:
    """The first whole block at or after `offset`, which is in damaged bytes; None when there is none. A block with a number below
    `block_no_min` is a copy of an older block inside a body, and is skipped."""
    hop = unpack_block_header_at(disk, fd, offset)
    if hop is not None:
        found = block_at(disk, fd, seed, offset + BLOCK_HEADER_SIZE + hop.size)
        if found is not None and found.header.block_no >= block_no_min:
            return found
    overlap = len(fmt.BLOCK_MAGIC_BYTES) - 1
    while data := disk.read(fd, READ_SIZE + overlap, offset):
        at = data.find(fmt.BLOCK_MAGIC_BYTES)
        while at >= 0:
            found = block_at(disk, fd, seed, offset + at)
            if found is not None and found.header.block_no >= block_no_min:
                return found
            at = data.find(fmt.BLOCK_MAGIC_BYTES, at + 1)
        offset += READ_SIZE
    return None


def unpack_block_header_at(disk: DiskFace, fd: int, offset: int) -> fmt.BlockHeader | None:
    """A plausible block header at `offset`, not verified by its CRC; else None."""
    data = disk.read(fd, BLOCK_HEADER_SIZE, offset)
    if len(data) < BLOCK_HEADER_SIZE:
        return None
    header = unpack_block_header(data, 0)
    return header if header.magic == BLOCK_MAGIC and header.size <= limits.BLOCK_SIZE_MAX else None


def block_at(disk: DiskFace, fd: int, seed: int, offset: int) -> Found | None:
    """The whole block whose header is at `offset`, or None."""
    header = unpack_block_header_at(disk, fd, offset)
    if header is None or offset + BLOCK_HEADER_SIZE + header.size > disk.size(fd):
        return None
    data = disk.read(fd, BLOCK_HEADER_SIZE + header.size, offset)
    if len(data) < BLOCK_HEADER_SIZE + header.size:
        return None
    if not block_is_whole(memoryview(data), 0, header.size, header.crc, seed):
        return None
    return Found(offset, header, data[BLOCK_HEADER_SIZE:])


class BlockOffsets:
    """Offsets of the whole blocks of a segment, including those after damaged bytes."""

    def __init__(self) -> None:
        self._offsets: array[int] = array("q")
        self.end, self._block_no = fmt.SEGMENT_HEADER_SIZE, 0  # `end`: how far the segment was read
        self.is_all = False  # the segment is complete: no block will be added

    def read_on(self, disk: DiskFace, fd: int, seed: int) -> None:
        at: int | None = self.end
        while at is not None:
            walk = SegmentWalk(disk, fd, seed, at)
            for found in walk:
                self._offsets.append(found.offset)
                self._block_no = found.header.block_no
            self.end = walk.end
            further = next_whole_block(disk, fd, seed, walk.end, self._block_no + 1)
            at = further.offset if further is not None else None

    def start_of(self, offset: int) -> int:
        """The offset of the last block that begins at or before `offset`; 0 when there is none."""
        at = bisect_right(self._offsets, offset)
        return self._offsets[at - 1] if at else 0


def walk_file(disk: DiskFace, file: SegmentFile) -> Iterator[Found]:
    """The whole blocks of one segment, up to its end or the first bytes that are not a block."""
    with opened(disk, file.path) as fd:
        yield from SegmentWalk(disk, fd, file.seed)


def record_position(file: SegmentFile, found: Found) -> int:
    return fmt.position_of(file.segment_no, found.offset + BLOCK_HEADER_SIZE)


def block_of(file: SegmentFile, found: Found) -> Block:
    header, position = found.header, record_position(file, found)
    return Block(position, header.first_lsn, header.facts, header.time_ns, found.records, header.flags, header.block_no)


def read_segment_file(disk: DiskFace, directory: str, segment_no: int) -> SegmentFile:
    """Read one segment's header. Raises `JournalTooNew` for a newer format, before anything else in the file is trusted."""
    path = f"{directory}/{fmt.segment_name(segment_no)}"
    with opened(disk, path) as fd:
        data, size = disk.read(fd, fmt.SEGMENT_HEADER_SIZE, 0), disk.size(fd)
    header = fmt.unpack_segment_header(data)
    version = fmt.segment_version(data)
    if version is not None and version > fmt.FORMAT_VERSION and not fmt.is_version_damaged(data):
        raise JournalTooNew(path, version, fmt.FORMAT_VERSION)
    if header is not None and header.segment_no != segment_no:
        raise JournalMisplaced(f"{path} was written as segment {header.segment_no}; it does not belong here")
    return SegmentFile(segment_no, path, size, header)


def list_segments(disk: DiskFace, directory: str) -> list[SegmentFile]:
    """Every segment of a directory in order, without any that is deleted during the listing."""
    files = []
    for name in disk.list_names(directory):
        if (segment_no := fmt.segment_no_of(name)) is None:
            continue
        try:
            files.append(read_segment_file(disk, directory, segment_no))
        except FileNotFoundError:
            continue
    return files
