"""The spare segment: disk space allocated before it is needed.

The spare has the size of a whole segment and becomes the next segment at a roll. While no new spare can be created the
journal is full: the current segment is reserved for settling open work, and new work is refused.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dragoman import limits
from dragoman.errors import JournalFailing, JournalFull, JournalUnavailable
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import SegmentHeader, is_index_name, segment_name
from dragoman.journal.segment_store import Segment

SPARE_NAME: Final = "spare.tmp"
FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# The spare is zero-filled in pieces of this size, so that an append never waits long for the lock.
FILL_SIZE: Final = 1024 * 1024
_ZEROS: Final = bytes(FILL_SIZE)


@dataclass
class Spare:
    """An allocated file that has no segment number yet; the bytes below `filled` are written zeros."""

    path: str
    fd: int
    size: int
    filled: int = 0


class SpareSegment:
    """The spare of one journal directory. `error` is why there is none."""

    def __init__(self, disk: DiskFace, directory: str, segment_size: int) -> None:
        self._disk, self._directory, self._segment_size = disk, directory, segment_size
        self.spare: Spare | None = None
        self.error: OSError | None = None

    def make(self) -> bool:
        """Create a spare, smaller than a segment on a nearly full disk, overwriting one that an earlier run left. True when there is one now."""
        if self.spare is not None:
            return True
        least = max(limits.SEGMENT_SIZE_MIN, self._segment_size // limits.SPARE_SHARE_MIN)
        return self._make_largest(least)

    def _make_largest(self, least: int) -> bool:
        """Create the largest spare that fits: a whole segment, then half of that and so on down to `least` bytes."""
        size = self._segment_size
        while size > least:
            if self._make(size):
                return True
            size //= 2
        return self._make(least)

    def _make(self, size: int) -> bool:
        """Create a spare of this size; if the disk is full, delete the indexes first, which can be rebuilt."""
        return self._try_make(size) or (self.is_full and self._drop_indexes() and self._try_make(size))

    def _drop_indexes(self) -> bool:
        """Delete all indexes; False when that frees nothing."""
        try:
            names = [name for name in self._disk.list_names(self._directory) if is_index_name(name)]
            for name in names:
                self._disk.unlink(f"{self._directory}/{name}")
        except OSError:
            return False
        return bool(names)

    def _try_make(self, size: int) -> bool:
        path = f"{self._directory}/{SPARE_NAME}"
        fd: int | None = None
        try:
            fd = self._disk.open(path, create=True)
            self._disk.allocate(fd, 0, size)
        except OSError as error:
            self.error = error
            if fd is not None:
                self._remove(path, fd)
            return False
        self.spare, self.error = Spare(path, fd, size), None
        return True

    def wants_work(self, zero_fill: bool) -> bool:
        """Whether there is no spare, or it should be filled with zeros and is not yet."""
        spare = self.spare
        return spare is None or (zero_fill and spare.filled < spare.size)

    def take(self, *, smaller: bool = False) -> Spare:
        """Return the spare, which then becomes a segment. `smaller`: accept a smaller one, so that a broker starts and settles work on a full disk."""
        if not self.make() and smaller:
            self._make_largest(limits.SEGMENT_SIZE_MIN // 4)
        return self._taken()

    def take_for_checkpoint(self, live: Segment, least: int) -> Spare:
        """A spare of at least `least` bytes for a checkpoint on a full disk, if necessary from the unused end of the live segment, which gets sealed."""
        if not self.make() and not self._make_largest(least):
            assert live.fd is not None
            with suppress(OSError):
                self._disk.truncate(live.fd, live.end)
                live.allocated = live.end
            if not self._make_largest(least):
                # Leaves less space for facts after the checkpoint; deleting the segments before the checkpoint makes space for them.
                self._make(least - limits.CHECKPOINT_ROOM_SIZE + limits.CHECKPOINT_ROOM_SIZE_MIN)
        return self._taken()

    def is_enough_for(self, needed: int) -> bool:
        """Whether a checkpoint may be written: a small one fits into the spare; after a larger one there must be space for two more segments. On a
        full disk it may always be tried."""
        if self.is_full or needed <= self._segment_size // 2:
            return True
        return self.error is None and self._disk.free_space(self._directory) >= needed + 2 * self._segment_size

    def _taken(self) -> Spare:
        if self.spare is None:
            raise self.unavailable(self._segment_size)
        spare, self.spare = self.spare, None
        return spare

    @property
    def is_full(self) -> bool:
        """Whether there is no spare because the disk is full."""
        return self.error is not None and self.error.errno in FULL_ERRNOS

    def give_up(self, error: OSError) -> bool:
        """Delete the spare so that something more important can use its space; False when there was none."""
        spare, self.spare = self.spare, None
        if spare is None:
            return False
        self.error = error
        self._remove(spare.path, spare.fd)
        return True

    def abandon(self, spare: Spare, segment_no: int) -> None:
        """Remove the files of a spare that could not be made into a segment, as far as possible."""
        self._remove(spare.path, spare.fd)
        with suppress(OSError):
            self._disk.unlink(f"{self._directory}/{segment_name(segment_no)}")

    def publish(self, spare: Spare, header: SegmentHeader) -> Segment:
        """Rename the spare, which begins with the header, to its segment name. The rename makes it part of the journal atomically."""
        path = f"{self._directory}/{segment_name(header.segment_no)}"
        self._disk.rename(spare.path, path)
        return Segment.with_header(header, path, spare.fd, spare.size)

    def fill_step(self, spare: Spare) -> bool:
        """Write the next piece of zeros; False when the spare is filled or has become a segment."""
        if self.spare is not spare or spare.filled >= spare.size:
            return False
        size = min(FILL_SIZE, spare.size - spare.filled)
        self._disk.write(spare.fd, [_ZEROS[:size]], spare.filled)
        spare.filled += size
        return True

    def extend(self, segment: Segment, total: int) -> None:
        """Allocate space for a block that exceeds the segment's size; deletes the spare if the disk is full."""
        assert segment.fd is not None
        while True:
            try:
                self._disk.allocate(segment.fd, segment.allocated, segment.end + total - segment.allocated)
            except OSError as error:
                if error.errno not in FULL_ERRNOS or not self.give_up(error):
                    self.error = error
                    raise self.unavailable(total) from error
            else:
                segment.allocated = segment.end + total
                return

    def give_back(self, segment: Segment) -> None:
        """Truncate a sealed and synced segment to its used size and close it."""
        assert segment.fd is not None
        with suppress(OSError):  # then the space is freed when the segment is deleted
            if segment.allocated > segment.end:
                self._disk.truncate(segment.fd, segment.end)
        self._disk.close(segment.fd)
        segment.fd = None

    def unavailable(self, needed: int) -> JournalUnavailable:
        """The exception to raise for `error`."""
        if self.error is None or self.error.errno in FULL_ERRNOS:
            return JournalFull(self._directory, needed, self._disk.free_space(self._directory))
        return JournalFailing(self._directory, str(self.error))

    def _remove(self, path: str, fd: int) -> None:
        with suppress(OSError):
            self._disk.close(fd)
        with suppress(OSError):
            self._disk.unlink(path)
