"""Keeps the superblock of a running journal up to date and deletes segments that it no longer names."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import suppress
from dataclasses import replace

from dragoman import limits
from dragoman.journal.segment_store import Segment, SegmentStore
from dragoman.journal.superblock import SegmentClaim, SuperblockCopies
from dragoman.journal.writing.writer import Writer


class SuperblockWriter:
    """Writes after a roll, and at most once per second when more was synced. `drop` and `forget_lost` belong to the thread that appends, everything
    else to the thread that runs upkeep."""

    def __init__(
        self, copies: SuperblockCopies, writer: Writer, store: SegmentStore, lost: list[SegmentClaim], time_ns: int
    ) -> None:
        self._copies, self._writer, self._store = copies, writer, store
        self._lost = lost  # missing segments that may have contained open messages
        self._leaving: list[Segment] = []  # removed from the journal, files not deleted yet
        self._written_ns, self._rolls_claimed = time_ns, 0

    @property
    def trouble(self) -> str | None:
        """Why the superblock cannot be written now; the journal works without it."""
        return self._copies.trouble

    def wants_work(self, now_ns: int) -> bool:
        """Whether there is something to write or delete. Cheap enough for every tick. After a failure, at most once per second."""
        if self._leaving and self.trouble is None:
            return True
        return self._wants_write(now_ns) or (bool(self._leaving) and self._is_due(now_ns))

    def _is_due(self, now_ns: int) -> bool:
        return not 0 <= now_ns - self._written_ns < limits.SYNC_INTERVAL_NS

    def _wants_write(self, now_ns: int) -> bool:
        writer, newest = self._writer, self._copies.newest
        if writer.rolls_synced != self._rolls_claimed and self.trouble is None:
            return True
        return self._is_due(now_ns) and (newest is None or writer.synced_block_no != newest.synced_block_no)

    def write_due(self, now_ns: int) -> None:
        if self._wants_write(now_ns):
            self._written_ns = now_ns
            self.write()

    def write(self, *, is_clean: bool = False) -> bool:
        """False when the disk fails."""
        rolls = self._writer.rolls_synced
        superblock = self._writer.superblock(is_clean=is_clean)
        lost = tuple(claim for claim in self._lost if claim.segment_no < self._writer.live_no)
        if not self._copies.write(replace(superblock, segments=lost + superblock.segments)):
            return False
        self._rolls_claimed = rolls
        return True

    def drop(self, segment_nos: Collection[int]) -> int:
        """Remove these segments from the journal. Return the bytes that `delete_dropped` will free."""
        segments = [self._writer.remove(segment_no) for segment_no in segment_nos]
        self._leaving.extend(segments)
        return sum(segment.end for segment in segments)

    def delete_dropped(self, now_ns: int) -> None:
        """Delete dropped segments once no superblock names them. If none can be written, both copies are removed first."""
        leaving = list(self._leaving)
        if not leaving:
            return
        if not self.write():
            self._written_ns = now_ns
            if not self._copies.remove():
                return
        for segment in leaving:
            with suppress(OSError):  # a start ignores what was not deleted
                self._store.delete(segment)
        del self._leaving[: len(leaving)]

    def forget_lost(self, live_segments: Collection[int]) -> None:
        """Stop claiming missing segments that no open message needs."""
        self._lost = [claim for claim in self._lost if claim.segment_no in live_segments]
