"""The superblock: what a journal must at least hold.

Blocks and segment headers say what was synced before them; when the end of a journal is missing, so is what would tell of it. The superblock lies
beside the segments and names the highest synced block, every segment that holds synced blocks, and whether the last stop was clean.

Invariants. It claims only what is on disk already, so a power cut never makes a claim untrue. There are two copies, written in turn and in
place, each with a CRC and a sequence number: a torn write leaves the other. A segment is deleted only after a copy that does not
name it is kept. docs/reference/journal.md draws the bytes.
"""

from __future__ import annotations

import struct
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from dragoman.crc import crc32
from dragoman.errors import JournalTooNew
from dragoman.journal.disk import DiskFace

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
# A copy is allocated in powers of two from here on, and twice what it needs: on a full disk it is written all the same.
_SIZE_MIN: Final = 4096
# One superblock is read at most: 64 MiB name 2.8 million segments.
_SIZE_MAX: Final = 64 * 1024 * 1024


class SegmentClaim(NamedTuple):
    """A segment that must be there. `identity` tells it from another file of its number; it is at least `end` bytes long (0: not known). `is_lost`:
    a start has reported it as missing, and what it held may still be open."""

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
    """What stays the same of a segment's header in every version of the format."""
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
    """None when the bytes are short, foreign or damaged; a whole one of a later version is refused."""
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
    """Both copies in one directory. `newest` is what they say; `trouble` is why the last write failed."""

    def __init__(self, disk: DiskFace, directory: str) -> None:
        self._disk, self._directory = disk, directory
        self.newest: Superblock | None = None
        self.damaged: list[str] = []  # paths of copies that are there and not whole
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
        """Whether copies are there and none of them is whole."""
        return self.newest is None and bool(self.damaged)

    def _read(self, path: str) -> Superblock | None:
        try:
            fd = self._disk.open(path, write=False)
        except OSError:
            return None
        try:
            return unpack_superblock(self._disk.read(fd, min(self._disk.size(fd), _SIZE_MAX), 0), path)
        except OSError:
            return None
        finally:
            self._disk.close(fd)

    def write(self, superblock: Superblock) -> bool:
        """Keep it in the older copy's stead; False when the disk does not let us: what was kept before still counts."""
        superblock = replace(superblock, sequence=self.newest.sequence + 1 if self.newest is not None else 1)
        path = f"{self._directory}/{SUPERBLOCK_NAMES[self._next_slot]}"
        try:
            self._write_copy(path, pack_superblock(superblock))
        except OSError as error:
            self.trouble = str(error)
            with suppress(OSError):  # a file that failed a sync is never trusted again
                self._disk.unlink(path)
            return False
        self.newest, self._next_slot, self.trouble = superblock, 1 - self._next_slot, None
        return True

    def _write_copy(self, path: str, content: bytes) -> None:
        is_new = not self._disk.exists(path)
        fd = self._disk.open(path, create=is_new)
        try:
            size = _SIZE_MIN
            while size < 2 * len(content):
                size *= 2
            if self._disk.size(fd) < size:
                with suppress(OSError):  # then there may still be room for what is written now
                    self._disk.allocate(fd, 0, size)
            self._disk.write(fd, [content], 0)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
        if is_new:
            self._disk.sync_directory(self._directory)

    def remove(self) -> bool:
        """Claim nothing any more; False when not even that can be had."""
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
