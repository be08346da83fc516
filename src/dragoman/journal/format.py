"""Byte layout of a journal: segment header, block header, record head. docs/reference/journal.md draws it.

All integers are little-endian. A segment is one header followed by blocks; after the last block come zeros (preallocated) or
the end of the file. A block is the unit of write, of CRC and of truncation. The CRC of a block starts from a seed made of broker id and
segment number, so that neither a block of another file nor bytes inside a message's body can be mistaken for a block of this file.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Final, NamedTuple

from dragoman.crc import crc32, short_crc32

# Version 2 adds a CRC to each accepted record, and a checkpoint names the message of each record it refers to. Version 1 can be read.
FORMAT_VERSION: Final = 2

SEGMENT_MAGIC: Final = b"dragoman"
SEGMENT_SUFFIX: Final = ".seg"
INDEX_SUFFIX: Final = ".idx"
SEGMENT_HEADER_SIZE: Final = 128
# Magic and version have the same offset in every future version; everything else may move.
_SEGMENT_LEAD = struct.Struct("<8sI")
_SEGMENT = struct.Struct("<8sIIIIQQQQQq16s")
_SEGMENT_CRC_AT: Final = 12

# The segment starts with a checkpoint (which may be incomplete).
SEGMENT_CHECKPOINT: Final = 1
# The segment may contain blocks whose records were announced at another position (`origin` in the block header).
SEGMENT_MOVED: Final = 2
# Written by salvage: facts before this segment are lost, so its first numbers may jump.
SEGMENT_GAP: Final = 4
# Its first block numbers were already used at the end of the previous segment. The blocks there are ignored, whole or torn.
SEGMENT_TOOK_OVER: Final = 8

BLOCK_MAGIC: Final = 0x4B424744  # "DGBK" in the file
BLOCK_MAGIC_BYTES: Final = BLOCK_MAGIC.to_bytes(4, "little")
_BLOCK = struct.Struct("<IIIIIIQQQQqQ")
_BLOCK_REST = struct.Struct("<IIIIQQQQqQ")
_BLOCK_LEAD = struct.Struct("<II")
BLOCK_HEADER_SIZE: Final = 72
assert _BLOCK.size == BLOCK_HEADER_SIZE == _BLOCK_LEAD.size + _BLOCK_REST.size

BLOCK_CHECKPOINT: Final = 1
BLOCK_CHECKPOINT_BEGIN: Final = 2
BLOCK_CHECKPOINT_END: Final = 4
# Contains only the synced numbers; written when the journal is closed cleanly, and to confirm a checkpoint.
BLOCK_MARK: Final = 8
# Written by salvage in place of damaged bytes; the numbers of the next block may jump.
BLOCK_FILLER: Final = 16

POSITION_SHIFT: Final = 32
_OFFSET_MASK: Final = (1 << POSITION_SHIFT) - 1


class SegmentHeader(NamedTuple):
    """The fields in the first 128 bytes of a segment."""

    version: int
    flags: int
    segment_no: int
    first_lsn: int
    first_block_no: int
    synced_lsn: int
    synced_block_no: int
    created_ns: int
    broker_id: bytes


class BlockHeader(NamedTuple):
    """The fields in the 72 bytes before a block's records, in byte order."""

    magic: int
    crc: int
    size: int
    facts: int
    flags: int
    reserved: int
    block_no: int
    first_lsn: int
    synced_lsn: int
    synced_block_no: int
    time_ns: int
    origin: int


@dataclass(slots=True)
class Block:
    """One block as readers get it; `position` is that of its first record."""

    position: int
    first_lsn: int
    count: int
    time_ns: int
    records: bytes
    flags: int = 0
    block_no: int = 0

    @property
    def last_lsn(self) -> int:
        return self.first_lsn + self.count - 1

    @property
    def is_checkpoint(self) -> bool:
        return self.flags & BLOCK_CHECKPOINT != 0


def segment_name(segment_no: int) -> str:
    return f"{segment_no:010d}{SEGMENT_SUFFIX}"


def segment_no_of(name: str) -> int | None:
    """The number in a segment's file name; None for any other file name."""
    digits = name.removesuffix(SEGMENT_SUFFIX)
    return int(digits) if len(digits) == 10 and digits.isdecimal() and name.endswith(SEGMENT_SUFFIX) else None


def is_index_name(name: str) -> bool:
    """Whether a file of this name is the index of a segment."""
    return name.endswith(INDEX_SUFFIX) and name.removesuffix(INDEX_SUFFIX).isdecimal()


def index_path(segment_path: str) -> str:
    """The path of a segment's index: the same directory and number, another suffix."""
    return segment_path.removesuffix(SEGMENT_SUFFIX) + INDEX_SUFFIX


def position_of(segment_no: int, offset: int) -> int:
    assert 0 <= offset <= _OFFSET_MASK, "a segment ends below 4 GiB"
    return segment_no << POSITION_SHIFT | offset


def split_position(position: int) -> tuple[int, int]:
    return position >> POSITION_SHIFT, position & _OFFSET_MASK


def block_seed(broker_id: bytes, segment_no: int) -> int:
    """The initial CRC value of every block in a segment."""
    return crc32(broker_id + segment_no.to_bytes(8, "little"))


def pack_segment_header(header: SegmentHeader) -> bytes:
    version, flags, *rest = header
    blank = _SEGMENT.pack(SEGMENT_MAGIC, version, 0, flags, 0, *rest).ljust(SEGMENT_HEADER_SIZE, b"\0")
    crc = crc32(blank)
    return blank[:_SEGMENT_CRC_AT] + crc.to_bytes(4, "little") + blank[_SEGMENT_CRC_AT + 4 :]


def segment_version(data: bytes) -> int | None:
    """The format version in the file's first bytes; None when the magic does not match."""
    if len(data) < _SEGMENT_LEAD.size:
        return None
    magic, version = _SEGMENT_LEAD.unpack_from(data)
    return int(version) if magic == SEGMENT_MAGIC else None


def is_version_damaged(data: bytes) -> bool:
    """Whether these bytes are a valid header of a known version except for the version field."""
    known = [version.to_bytes(4, "little") for version in range(1, FORMAT_VERSION + 1)]
    return any(unpack_segment_header(data[:8] + version + data[12:]) is not None for version in known)


def unpack_segment_header(data: bytes) -> SegmentHeader | None:
    """The header, or None when the bytes are too short, not a segment header, or damaged."""
    if len(data) < SEGMENT_HEADER_SIZE:
        return None
    head = data[:SEGMENT_HEADER_SIZE]
    blank = head[:_SEGMENT_CRC_AT] + b"\0\0\0\0" + head[_SEGMENT_CRC_AT + 4 :]
    magic, version, crc, flags, _reserved, *rest = _SEGMENT.unpack_from(head)
    if magic != SEGMENT_MAGIC or crc != crc32(blank):
        return None
    return SegmentHeader._make((version, flags, *rest))


def pack_block_header(
    seed: int,
    parts: list[bytes],
    size: int,
    count: int,
    flags: int,
    block_no: int,
    first_lsn: int,
    synced_lsn: int,
    synced_block_no: int,
    time_ns: int,
    origin: int,
) -> bytes:
    """The 72 bytes that go before `parts`, whose total size is `size`; the records are not copied."""
    rest = _BLOCK_REST.pack(size, count, flags, 0, block_no, first_lsn, synced_lsn, synced_block_no, time_ns, origin)
    crc = short_crc32(rest, seed)
    for part in parts:
        crc = crc32(part, crc)
    return _BLOCK_LEAD.pack(BLOCK_MAGIC, crc) + rest


def repack_block_header(header: BlockHeader) -> bytes:
    """The same bytes the header was read from."""
    return _BLOCK.pack(*header)


def unpack_block_header(data: bytes | memoryview, offset: int) -> BlockHeader:
    # Like `_make`, without its check of the number of fields.
    return tuple.__new__(BlockHeader, _BLOCK.unpack_from(data, offset))


def block_is_whole(data: memoryview, offset: int, size: int, crc: int, seed: int) -> bool:
    """Whether the block of `size` record bytes at `offset` of `data` matches the CRC in its header."""
    return crc32(data[offset + _BLOCK_LEAD.size : offset + BLOCK_HEADER_SIZE + size], seed) == crc
