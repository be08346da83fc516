"""Room on disk, had before it is needed.

The spare is a whole segment's room held back. It becomes the next segment at a roll. While no new spare can be made the
journal is full: the segment just begun is what is left for settling the work at hand, and nothing new is taken.
"""

from __future__ import annotations

import errno
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dragoman import limits
from dragoman.errors import JournalFailing, JournalFull, JournalUnavailable
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import SegmentHeader, block_seed, is_index_name, pack_segment_header, segment_name
from dragoman.journal.segments import Segment

SPARE_NAME: Final = "spare.tmp"
FULL_ERRNOS: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
# Zeros are written over the spare in pieces of this size, so that an append never waits long for the lock.
FILL_SIZE: Final = 1024 * 1024
_ZEROS: Final = bytes(FILL_SIZE)


@dataclass
class Spare:
    """An allocated file without a number yet; bytes below `filled` are written zeros."""

    path: str
    fd: int
    size: int
    filled: int = 0


class Room:
    """The spare of one journal directory. `error` is what stood in the way of having one."""

    def __init__(self, disk: DiskFace, directory: str, segment_size: int) -> None:
        self._disk, self._directory, self._segment_size = disk, directory, segment_size
        self.spare: Spare | None = None
        self.error: OSError | None = None

    def make(self) -> bool:
        """Have a spare, over whatever an earlier run left of one; True when there is one now. A nearly full disk may have room for a
        smaller one only."""
        if self.spare is not None:
            return True
        least = max(limits.SEGMENT_SIZE_MIN, self._segment_size // limits.SPARE_SHARE_MIN)
        return self._make_largest(least)

    def _make_largest(self, least: int) -> bool:
        """The largest spare there is room for, from a whole segment by halves down to `least` bytes."""
        size = self._segment_size
        while size > least:
            if self._make(size):
                return True
            size //= 2
        return self._make(least)

    def _make(self, size: int) -> bool:
        """Indexes go before the journal does without room: they can be made again."""
        return self._try_make(size) or (self._drop_indexes() and self._try_make(size))

    def _drop_indexes(self) -> bool:
        """Delete them when the disk is full; False when that frees nothing."""
        if self.error is None or self.error.errno not in FULL_ERRNOS:
            return False
        try:
            names = [name for name in self._disk.list_names(self._directory) if is_index_name(name)]
            for name in names:
                self._disk.unlink(f"{self._directory}/{name}")
        except OSError:
            return False
        return bool(names)

    def _try_make(self, size: int) -> bool:
        path = f"{self._directory}/{SPARE_NAME}"
        try:
            fd = self._disk.open(path, create=True)
        except OSError as error:
            self.error = error
            return False
        try:
            self._disk.allocate(fd, 0, size)
        except OSError as error:
            self.error = error
            self._remove(path, fd)
            return False
        self.spare, self.error = Spare(path, fd, size), None
        return True

    def wants_work(self, zero_fill: bool) -> bool:
        """True while there is no spare, or one that is not yet written over with zeros although it should be."""
        spare = self.spare
        return spare is None or (zero_fill and spare.filled < spare.size)

    def take(self, *, smaller: bool = False) -> Spare:
        """The spare, to become a segment. `smaller`: if need be one of less than a segment's size, so that a broker starts
        and settles even on a full disk."""
        if not self.make() and smaller:
            self._make_largest(limits.SEGMENT_SIZE_MIN // 4)
        return self._taken()

    def take_behind(self, live: Segment, least: int) -> Spare:
        """For a checkpoint on a full disk: a segment of at least so many bytes, if need be out of the room behind the end of the live
        segment, which is sealed then."""
        if not self.make() and not self._make_largest(least):
            assert live.fd is not None
            with suppress(OSError):
                self._disk.truncate(live.fd, live.end)
                live.allocated = live.end
            if not self._make_largest(least):
                # Less than facts behind it would like: what it lets go makes room for them.
                self._make(least - limits.CHECKPOINT_ROOM_SIZE + limits.CHECKPOINT_ROOM_SIZE_MIN)
        return self._taken()

    def is_enough_for(self, needed: int) -> bool:
        """Whether a checkpoint may be written: a small one fits into the spare, a larger one must leave room for two more. On a full disk it
        may always be tried."""
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
        """Whether no spare can be had because the disk is full."""
        return self.error is not None and self.error.errno in FULL_ERRNOS

    def give_up(self, error: OSError) -> bool:
        """Delete the spare so that something dearer finds room; False when there was none."""
        spare, self.spare = self.spare, None
        if spare is None:
            return False
        self.error = error
        self._remove(spare.path, spare.fd)
        return True

    def abandon(self, spare: Spare, segment_no: int) -> None:
        """A spare on its way to becoming a segment failed; leave no trace of it that can be helped."""
        self._remove(spare.path, spare.fd)
        with suppress(OSError):
            self._disk.unlink(f"{self._directory}/{segment_name(segment_no)}")

    def fill_step(self, spare: Spare) -> bool:
        """Write the next piece of zeros; False when the spare is full of them or has become a segment meanwhile."""
        if self.spare is not spare or spare.filled >= spare.size:
            return False
        size = min(FILL_SIZE, spare.size - spare.filled)
        self._disk.write(spare.fd, [_ZEROS[:size]], spare.filled)
        spare.filled += size
        return True

    def extend(self, segment: Segment, total: int) -> None:
        """Allocate for a block that hangs over the segment's end; if need be the spare's room is given up for it."""
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
        """A sealed and synced segment gives back its unused room and its file."""
        assert segment.fd is not None
        with suppress(OSError):  # then the room comes back when the segment is dropped
            if segment.allocated > segment.end:
                self._disk.truncate(segment.fd, segment.end)
        self._disk.close(segment.fd)
        segment.fd = None

    def unavailable(self, needed: int) -> JournalUnavailable:
        """What to raise about `error`."""
        if self.error is None or self.error.errno in FULL_ERRNOS:
            return JournalFull(self._directory, needed, self._disk.free_space(self._directory))
        return JournalFailing(self._directory, str(self.error))

    def _remove(self, path: str, fd: int) -> None:
        with suppress(OSError):
            self._disk.close(fd)
        with suppress(OSError):
            self._disk.unlink(path)


def begin_segment(disk: DiskFace, spare: Spare, header: SegmentHeader) -> None:
    """Write the header into the spare; it is no segment before `publish`."""
    disk.write(spare.fd, [pack_segment_header(header)], 0)


def publish(disk: DiskFace, directory: str, spare: Spare, header: SegmentHeader) -> Segment:
    """Give the spare its segment name. The rename is what makes it part of the journal, at once and whole."""
    path = f"{directory}/{segment_name(header.segment_no)}"
    disk.rename(spare.path, path)
    return Segment(
        header.segment_no,
        path,
        header.first_lsn,
        header.first_block_no,
        header.created_ns,
        block_seed(header.broker_id, header.segment_no),
        spare.fd,
        allocated=spare.size,
        last_lsn=header.first_lsn - 1,
        last_time_ns=header.created_ns,
    )
