"""The superblock: a record of what the journal must contain at least.

Blocks and segment headers say what was synced before them. If the end of a journal is missing, that information is missing too. The superblock
is in the same directory as the segments and names the highest synced block, every segment with synced blocks, and whether the last stop was clean.

Invariants: it claims only what is already on disk, so a power cut cannot make a claim false. There are two copies, overwritten
alternately and in place, each with a CRC and a sequence number: a torn write leaves the other copy intact. A segment is deleted only after a
copy that does not name it is on disk. docs/reference/journal.md draws the bytes.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dragoman.crc import crc32
from dragoman.errors import JournalTooNew
from dragoman.journal.disk import DiskFace, opened

SUPERBLOCK_NAMES: Final = ("superblock.0", "superblock.1")
SUPERBLOCK_VERSION: Final = 1
_MAGIC: Final = b"dragosup"
# magic, version, crc, flags, segments, sequence, synced lsn, synced block number, time, broker id
_HEAD = struct.Struct("<8sIIIIQQQq16s8x")
_SEGMENT = struct.Struct("<IIIIQ")
_CRC_AT: Final = 12
_IDENTITY = struct.Struct("<QQQq16s")

_CLEAN: Final = 1
_LOST: Final = 1
# The file size of a copy is a power of two, at least this and at least twice the content, so that it can be rewritten on a full disk.
_SIZE_MIN: Final = 4096
# At most this much of a superblock is read: 64 MiB name 2.8 million segments.
_SIZE_MAX: Final = 64 * 1024 * 1024


class SegmentClaim(NamedTuple):
    """A segment that must exist. `identity` distinguishes it from another file with the same number; the file has at least `end` bytes (0: unknown).
    `is_lost`: an earlier start reported it as missing, and messages in it may still be open."""

    segment_no: int
    identity: int
    end: int
    first_lsn: int
    is_lost: bool = False


@dataclass(frozen=True, slots=True)
class Superblock:
    broker_id: bytes
    synced_lsn: int = 0
    synced_block_no: int = 0
    is_clean: bool = False
    time_ns: int = 0
    segments: tuple[SegmentClaim, ...] = field(default=())
    sequence: int = 0


def segment_identity(segment_no: int, first_lsn: int, first_block_no: int, created_ns: int, broker_id: bytes) -> int:
    """CRC over the fields of a segment's header that are the same in every version of the format."""
    return crc32(_IDENTITY.pack(segment_no, first_lsn, first_block_no, created_ns, broker_id))


def pack_superblock(superblock: Superblock) -> bytes:
    head = _HEAD.pack(
        _MAGIC,
        SUPERBLOCK_VERSION,
        0,
        _CLEAN if superblock.is_clean else 0,
        len(superblock.segments),
        superblock.sequence,
        superblock.synced_lsn,
        superblock.synced_block_no,
        superblock.time_ns,
        superblock.broker_id,
    )
    claims = [
        _SEGMENT.pack(claim.segment_no, claim.identity, claim.end, _LOST if claim.is_lost else 0, claim.first_lsn)
        for claim in superblock.segments
    ]
    data = head + b"".join(claims)
    return data[:_CRC_AT] + crc32(data).to_bytes(4, "little") + data[_CRC_AT + 4 :]


def unpack_superblock(data: bytes, path: str) -> Superblock | None:
    """None when the bytes are too short, not a superblock, or damaged. Raises `JournalTooNew` for a whole one of a later version."""
    if len(data) < _HEAD.size:
        return None
    magic, version, crc, flags, count, sequence, lsn, block_no, time_ns, broker_id = _HEAD.unpack_from(data)
    size = _HEAD.size + count * _SEGMENT.size
    if magic != _MAGIC or size > len(data):
        return None
    if crc32(data[:_CRC_AT] + bytes(4) + data[_CRC_AT + 4 : size]) != crc:
        return None
    if version > SUPERBLOCK_VERSION:
        raise JournalTooNew(path, version, SUPERBLOCK_VERSION)
    segments = tuple(
        SegmentClaim(segment_no, identity, end, first_lsn, bool(marks & _LOST))
        for segment_no, identity, end, marks, first_lsn in _SEGMENT.iter_unpack(data[_HEAD.size : size])
    )
    return Superblock(broker_id, lsn, block_no, bool(flags & _CLEAN), time_ns, segments, sequence)


class SuperblockCopies:
    """Both copies in one directory. `newest` is the valid copy with the higher sequence number; `trouble` is why the last write failed."""

    def __init__(self, disk: DiskFace, directory: str) -> None:
        self._disk, self._directory = disk, directory
        self.newest: Superblock | None = None
        self.damaged: list[str] = []  # paths of copies that exist and are not whole
        self.trouble: str | None = None
        self._next_slot = 0
        for slot, name in enumerate(SUPERBLOCK_NAMES):
            path = f"{directory}/{name}"
            if not disk.exists(path):
                continue
            found = self._read(path)
            if found is None:
                self.damaged.append(path)
            elif self.newest is None or found.sequence > self.newest.sequence:
                self.newest, self._next_slot = found, 1 - slot

    @property
    def is_rebuilt(self) -> bool:
        """Whether copies exist but none of them is whole."""
        return self.newest is None and bool(self.damaged)

    def _read(self, path: str) -> Superblock | None:
        try:
            with opened(self._disk, path) as fd:
                return unpack_superblock(self._disk.read(fd, min(self._disk.size(fd), _SIZE_MAX), 0), path)
        except OSError:
            return None

    def write(self, superblock: Superblock) -> bool:
        """Overwrite the older copy. False when the disk fails; the newer copy stays valid then."""
        superblock = replace(superblock, sequence=self.newest.sequence + 1 if self.newest is not None else 1)
        path = f"{self._directory}/{SUPERBLOCK_NAMES[self._next_slot]}"
        try:
            self._write_copy(path, pack_superblock(superblock))
        except OSError as error:
            self.trouble = str(error)
            with suppress(OSError):  # a file whose sync failed is never trusted again
                self._disk.unlink(path)
            return False
        self.newest, self._next_slot, self.trouble = superblock, 1 - self._next_slot, None
        return True

    def _write_copy(self, path: str, content: bytes) -> None:
        is_new = not self._disk.exists(path)
        with opened(self._disk, path, write=True, create=is_new) as fd:
            size = _SIZE_MIN
            while size < 2 * len(content):
                size *= 2
            if self._disk.size(fd) < size:
                with suppress(OSError):  # the write may still fit
                    self._disk.allocate(fd, 0, size)
            self._disk.write(fd, [content], 0)
            self._disk.sync(fd)
        if is_new:
            self._disk.sync_directory(self._directory)

    def remove(self) -> bool:
        """Delete both copies, so that nothing is claimed. False when that fails too."""
        try:
            for name in SUPERBLOCK_NAMES:
                if self._disk.exists(f"{self._directory}/{name}"):
                    self._disk.unlink(f"{self._directory}/{name}")
            self._disk.sync_directory(self._directory)
        except OSError as error:
            self.trouble = str(error)
            return False
        self.newest = None
        return True
