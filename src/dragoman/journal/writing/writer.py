"""The writer: one live segment, one spare, and the blocks that are appended but not yet synced.

Invariants: a position announced by `next_position` is kept, or the move is recorded on disk. A file is never synced again after a failed
sync: all uncommitted blocks are rewritten to a new segment, and they are committed only when that one is synced. An append that
raises has written nothing.

`append` and `roll` never run at the same time; `sync` and `make_spare` may run in others at the same time. `_lock` guards the state and is
held during a write, never during a sync; `_sync_lock` serialises syncs.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dragoman import limits
from dragoman.errors import JournalFailing, JournalUnavailable
from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import BLOCK_HEADER_SIZE, SegmentHeader, pack_block_header, position_of
from dragoman.journal.recovery.recover import Recovered
from dragoman.journal.segment_store import Segment, SegmentStore
from dragoman.journal.settings import JournalSettings
from dragoman.journal.superblock import SegmentClaim, Superblock
from dragoman.journal.writing.spare_segment import FULL_ERRNOS, SpareSegment
from dragoman.journal.writing.unsynced import UnsyncedBlock

# Small chunks share a block of about this size.
CHECKPOINT_BLOCK_SIZE: Final = 1024 * 1024


class Writer:
    def __init__(
        self,
        settings: JournalSettings,
        disk: DiskFace,
        store: SegmentStore,
        broker_id: bytes,
        found: Recovered,
        time_ns: int,
    ) -> None:
        self._settings, self._disk, self._store, self._broker_id = settings, disk, store, broker_id
        self._moves, self.unsynced = found.moves, found.unsynced
        self.next_lsn, self.next_block_no = found.next_lsn, found.next_block_no
        self._next_segment_no = found.next_segment_no
        self.synced_lsn, self.synced_block_no = found.synced_lsn, found.synced_block_no
        self.time_ns = time_ns
        self._gap_block_no = found.gap_block_no
        self.spares = SpareSegment(disk, settings.directory, settings.segment_size)
        self.failing: str | None = None
        # Bytes written since the newest checkpoint. A checkpoint must be synced, and then a later block that records this must be synced: only then
        # does a start trust it. `checkpoint_no` is the segment before which recovery needs nothing.
        self.written_size = 0
        self.checkpoint_no: int | None = None
        self._checkpoint_open: CheckpointUnderWay | None = None
        self._checkpoint_waiting: tuple[int, int] | None = None
        self._checkpoint_synced: tuple[int, int] | None = None
        self._promised: int | None = None
        self._dirty: list[Segment] = []
        self._directory_dirty = False
        # Suspect segments without any valid block once the segment that replaces them is synced.
        self._obsolete: list[int] = []
        self._relocations = 0
        self.rolls_synced = 0
        self._lock, self._sync_lock = threading.Lock(), threading.Lock()
        self._live = self._first_segment()

    @property
    def live_no(self) -> int:
        return self._live.segment_no

    @property
    def has_unsynced(self) -> bool:
        return (
            len(self.unsynced) > 0
            or len(self._dirty) > 1
            or self._directory_dirty
            or self._checkpoint_waiting is not None
            or (self._checkpoint_synced is not None and self.next_block_no > self._checkpoint_synced[1])
        )

    @property
    def has_checkpoint(self) -> bool:
        return any(c is not None for c in (self.checkpoint_no, self._checkpoint_synced, self._checkpoint_waiting))

    def next_position(self) -> int:
        self._promised = position = position_of(self._live.segment_no, self._live.end + BLOCK_HEADER_SIZE)
        return position

    def wants_roll(self, size: int) -> bool:
        live = self._live
        if self._checkpoint_open is not None:  # a checkpoint must not span segments
            return False
        if (
            live.suspect
            or live.end == fmt.SEGMENT_HEADER_SIZE
            or (self.spares.spare is None and self.spares.error is not None)
        ):
            return False
        return live.end + BLOCK_HEADER_SIZE + size >= min(self._settings.segment_size, live.allocated)

    def append(
        self, parts: list[bytes], size: int, count: int, time_ns: int, settling: bool, position: int | None
    ) -> int:
        """Write one block. Return the lsn of its last fact. After a failed write, `os` moves to a new segment at once, because it promises that
        the block is written; `disk` may keep the block in memory, because it promises only the sync."""
        if self.unsynced.size > limits.UNCOMMITTED_SIZE_MAX:
            if self.failing is not None:
                raise JournalFailing(self._settings.directory, self.failing)
            self.sync()
        with self._lock:
            if self.spares.error is not None and not settling and not self.spares.make():
                raise self.spares.unavailable(self._settings.segment_size)
            promised = position if position is not None else self._promised
            for _ in range(2):
                if self._live.suspect and self._settings.durability == "os":
                    self._relocate()
                actual = position_of(self._live.segment_no, self._live.end + BLOCK_HEADER_SIZE)
                promised = promised or actual
                assert promised == actual or self._relocations, "a position changes only over a failed sync"
                origin = promised if promised != actual else 0
                if self._live.suspect or self._write(parts, size, count, 0, time_ns, origin):
                    break
            else:
                raise JournalFailing(self._settings.directory, self.failing or "a write failed")
            self.unsynced.add(UnsyncedBlock(parts, size, count, time_ns, self.next_lsn, promised))
            if origin:
                self._moves.add(promised, size, actual)
            self._promised = None
            self._advance(size, count, time_ns)
            return self.next_lsn - 1

    def _write(self, parts: list[bytes], size: int, count: int, flags: int, time_ns: int, origin: int) -> bool:
        """Write a block at the end of the live segment; False when the disk failed and the segment is now suspect."""
        live, total = self._live, BLOCK_HEADER_SIZE + size
        numbers = (self.next_block_no, self.next_lsn, self.synced_lsn, self.synced_block_no)
        header = pack_block_header(live.seed, parts, size, count, flags, *numbers, time_ns, origin)
        if live.end + total > live.allocated:
            self.spares.extend(live, total)
        assert live.fd is not None
        try:
            self._disk.write(live.fd, [header, *parts], live.end)
        except OSError as error:
            if error.errno in FULL_ERRNOS:
                self.spares.error = error
                with suppress(OSError):  # a part of the block may be written; it would read as a torn tail
                    self._disk.truncate(live.fd, live.end)
                    live.allocated = live.end
                raise self.spares.unavailable(total) from error
            self._suspect(error)
            return False
        return True

    def _advance(self, size: int, count: int, time_ns: int) -> None:
        live = self._live
        live.end += BLOCK_HEADER_SIZE + size
        live.last_time_ns = self.time_ns = time_ns
        self.next_block_no += 1
        self.next_lsn += count
        live.last_lsn = self.next_lsn - 1
        self.written_size += BLOCK_HEADER_SIZE + size

    def sync(self) -> int:
        """Sync everything appended before the call. Return the highest synced lsn. Does not block appends while it waits."""
        with self._sync_lock:
            with self._lock:
                if self._live.suspect:
                    self._relocate()
                if not self.has_unsynced:
                    return self.synced_lsn
                dirty, sealed = [*self._dirty], [segment for segment in self._dirty if segment.sealed]
                upto, unsynced_count = (self.next_lsn - 1, self.next_block_no - 1), len(self.unsynced)
                directory_dirty, self._directory_dirty = self._directory_dirty, False
                checkpoint, relocations = self._checkpoint_waiting, self._relocations
            failure: OSError | None = None
            try:
                for segment in dirty:
                    assert segment.fd is not None
                    self._disk.sync(segment.fd)
                if directory_dirty:
                    self._disk.sync_directory(self._settings.directory)
            except OSError as error:
                failure = error
            with self._lock:
                # A write of an append may have failed at the same time and moved all unsynced blocks: then the result of this sync is void.
                if relocations == self._relocations:
                    if failure is None:
                        self._synced(upto, unsynced_count, sealed, checkpoint)
                    else:
                        self._suspect(failure)
                        self._relocate()
                return self.synced_lsn

    def _synced(
        self, upto: tuple[int, int], unsynced_count: int, sealed: list[Segment], checkpoint: tuple[int, int] | None
    ) -> None:
        self.synced_lsn, self.synced_block_no = upto
        self.unsynced.release(unsynced_count)
        for segment in sealed:
            self._dirty.remove(segment)
            self.spares.give_back(segment)
            segment.synced_end = segment.end
            self.rolls_synced += 1
        while self._obsolete:
            with suppress(OSError):  # if it cannot be deleted, recovery ignores it
                self._store.drop(self._obsolete.pop())
        if self._checkpoint_synced is not None and upto[1] >= self._checkpoint_synced[1]:
            self.checkpoint_no, self._checkpoint_synced = self._checkpoint_synced[0], None
        if checkpoint is not None:
            self._checkpoint_synced = (checkpoint[0], self.next_block_no)
            if self._checkpoint_waiting == checkpoint:
                self._checkpoint_waiting = None

    def _suspect(self, error: OSError) -> None:
        self.failing = str(error)
        for segment in self._dirty:
            segment.suspect = segment.sealed = True

    def _relocate(self) -> None:
        """Rewrite every uncommitted block to a new segment and abandon the suspect ones."""
        # `os` must survive kill -9 only: it is enough that the rename comes after the writes.
        is_disk = self._settings.durability == "disk"
        segment, next_block_no = self._write_again(synced=is_disk)
        for suspect in self._dirty:
            suspect.last_lsn = min(suspect.last_lsn, self.synced_lsn)
            if suspect.fd is not None:
                with suppress(OSError):
                    self._disk.close(suspect.fd)
                suspect.fd = None
            if suspect.first_block_no >= segment.first_block_no:
                self._obsolete.append(suspect.segment_no)
        self._live, self._dirty, self.next_block_no = segment, [segment], next_block_no
        if self._checkpoint_waiting is not None:
            self.written_size += self._checkpoint_waiting[1]
        self._checkpoint_open, self._checkpoint_waiting, self._directory_dirty = None, None, not is_disk
        self._relocations += 1
        self.failing = None
        if is_disk:
            self._synced((self.next_lsn - 1, next_block_no - 1), len(self.unsynced), [], None)
        self.spares.make()

    def _write_again(self, *, synced: bool) -> tuple[Segment, int]:
        """Begin a new segment with all unsynced blocks, numbered after the last synced one. Return it and the next block number."""
        flags = fmt.SEGMENT_MOVED if len(self.unsynced) else 0
        if self.next_block_no > self.synced_block_no + 1:
            flags |= fmt.SEGMENT_TOOK_OVER
        if self._gap_block_no > self.synced_block_no:  # it replaces the segment whose header allowed a salvage's gap
            flags, self._gap_block_no = flags | fmt.SEGMENT_GAP, self.synced_block_no + 1
        header = self._header(flags, (self.synced_lsn + 1, self.synced_block_no + 1))
        spare = self.spares.take(smaller=True)
        try:
            self._disk.write(spare.fd, [fmt.pack_segment_header(header)], 0)
            end, next_block_no, moves = self.unsynced.write_again(self._disk, spare.fd, header)
            if synced:
                self._disk.sync(spare.fd)
            segment = self.spares.publish(spare, header)
            if synced:
                self._disk.sync_directory(self._settings.directory)
        except OSError as error:
            self.spares.abandon(spare, header.segment_no)
            if error.errno in FULL_ERRNOS:
                self.spares.error = error
                raise self.spares.unavailable(spare.size + self.unsynced.size) from error
            self.failing = str(error)
            raise JournalFailing(self._settings.directory, str(error)) from error
        self._moves.update(moves)
        segment.end, segment.allocated = end, max(end, spare.size)
        segment.last_lsn, segment.last_time_ns = self.next_lsn - 1, self.time_ns
        segment.took_over = header.flags & fmt.SEGMENT_TOOK_OVER != 0
        self._store.segments[segment.segment_no] = segment
        return segment, next_block_no

    def _header(self, flags: int, first: tuple[int, int]) -> SegmentHeader:
        """The header of the next segment, whose first lsn and block number are `first`."""
        segment_no, self._next_segment_no = self._next_segment_no, self._next_segment_no + 1
        if self._relocations or len(self._moves):
            flags |= fmt.SEGMENT_MOVED
        numbers = (segment_no, *first, self.synced_lsn, self.synced_block_no)
        return SegmentHeader(fmt.FORMAT_VERSION, flags, *numbers, self.time_ns, self._broker_id)

    def _first_segment(self) -> Segment:
        """Begin the first segment of this run. A start never writes into an old segment: blocks that may be unsynced are rewritten here, and synced,
        before any position is announced."""
        segment, self.next_block_no = self._write_again(synced=True)
        self._dirty.append(segment)
        self._synced((self.next_lsn - 1, self.next_block_no - 1), len(self.unsynced), [], None)
        self.spares.make()
        return segment

    def roll(self, checkpoint: list[bytes] | None, rest_size: int = 0) -> bool:
        with self._lock:
            if self._live.suspect:
                self._relocate()
                return False
            chunks = checkpoint or []
            # The checkpoint and some facts after it.
            room = (
                sum(map(len, chunks)) + BLOCK_HEADER_SIZE * (1 + len(chunks)) + limits.CHECKPOINT_ROOM_SIZE + rest_size
            )
            if checkpoint is not None and not self.spares.is_enough_for(room):
                checkpoint = None
            # On a full disk a checkpoint is what allows settled segments to be deleted, so it may use the remaining space.
            takes_rest = checkpoint is not None and self.spares.is_full
            spare = self.spares.take_for_checkpoint(self._live, room) if takes_rest else self.spares.take()
            flags = fmt.SEGMENT_CHECKPOINT if checkpoint is not None else 0
            header = self._header(flags, (self.next_lsn, self.next_block_no))
            try:
                self._disk.write(spare.fd, [fmt.pack_segment_header(header)], 0)
                segment = self.spares.publish(spare, header)
            except OSError as error:
                self.spares.abandon(spare, header.segment_no)
                raise JournalFailing(self._settings.directory, str(error)) from error
            self._live.sealed, self._live = True, segment
            self._store.segments[segment.segment_no] = segment
            self._dirty.append(segment)
            self._directory_dirty, self._promised = True, None
            under_way = CheckpointUnderWay(self.time_ns, self.written_size)
            is_written = checkpoint is not None and self._write_checkpoint(under_way, checkpoint, rest_size == 0)
            self.spares.make()
            return is_written

    def add_checkpoint(self, chunks: list[bytes], is_last: bool) -> bool:
        with self._lock:
            self._promised, under_way = None, self._checkpoint_open
            return under_way is not None and self._write_checkpoint(under_way, chunks, is_last)

    def _write_checkpoint(self, under_way: CheckpointUnderWay, chunks: list[bytes], is_last: bool) -> bool:
        """Write blocks of a checkpoint. Without its last block a checkpoint is ignored, which is not damage. Its blocks carry the time at which it
        began, because a start reads them before the facts that were written between them."""
        self._checkpoint_open = None
        for flags, parts in checkpoint_blocks(chunks, is_first=under_way.size == 0, is_last=is_last):
            size = sum(map(len, parts))
            try:
                if self._live.suspect or not self._write(parts, size, 0, flags, under_way.time_ns, 0):
                    return False
            except JournalUnavailable:
                return False
            self._advance(size, 0, self.time_ns)
            under_way.size += BLOCK_HEADER_SIZE + size
        if is_last:
            self._checkpoint_waiting = (self._live.segment_no, under_way.written_before)
            self.written_size -= under_way.written_before + under_way.size
        else:
            self._checkpoint_open = under_way
        return True

    def confirm_checkpoint(self) -> bool:
        """If the newest checkpoint is synced and no block was written since, write a block that records this. True if so."""
        with self._lock:
            pending = self._checkpoint_synced
            if pending is None or pending[1] != self.next_block_no or self._live.suspect:
                return False
            if not self._write([], 0, 0, fmt.BLOCK_MARK, self.time_ns, 0):
                return False
            self._advance(0, 0, self.time_ns)
            self._promised = None
            return True

    def make_spare(self) -> None:
        """Create a spare if there is none and, in `disk`, fill it with zeros ahead of time. Runs in a thread of its own."""
        with self._lock:
            spare = self.spares.spare if self.spares.make() else None
        if spare is None or not self._settings.zero_fill or self._settings.durability != "disk":
            return
        try:
            while True:
                with self._lock:
                    if not self.spares.fill_step(spare):
                        return
                self._disk.sync(spare.fd)
        except OSError as error:
            # A file whose sync failed is never trusted again, not even with zeros.
            with self._lock:
                if self.spares.spare is spare:
                    self.spares.give_up(error)
                elif self._live.fd == spare.fd:
                    self._suspect(error)

    def remove(self, segment_no: int) -> Segment:
        """Remove this segment from the journal; its files stay."""
        with self._lock:
            self._moves.forget(segment_no)
            return self._store.remove(segment_no)

    def superblock(self, *, is_clean: bool = False) -> Superblock:
        """A superblock of what is on disk now. It names only segments with synced blocks, because any other may still be deleted."""
        with self._lock:
            claims: list[SegmentClaim] = []
            limit = self.synced_block_no + 1
            for segment in reversed(self._store.segments.values()):
                if segment.first_block_no < limit:
                    claims.append(segment.claim(self._broker_id))
                    limit = segment.first_block_no
            synced = (self.synced_lsn, self.synced_block_no)
            return Superblock(self._broker_id, *synced, is_clean, self.time_ns, tuple(reversed(claims)))

    def close(self) -> bool:
        """Sync, write a mark that records it, and truncate the live segment to its used size. Return whether everything is synced."""
        is_synced = False
        try:
            self.sync()
            if self.has_unsynced:  # in `os`, a failed sync moved all blocks to a segment that is not synced yet
                self.sync()
            was_synced = not self.has_unsynced
            if self._live.end > fmt.SEGMENT_HEADER_SIZE:
                with suppress(JournalUnavailable):  # a full disk: only the superblock records it
                    if self._write([], 0, 0, fmt.BLOCK_MARK, self.time_ns, 0):
                        self._advance(0, 0, self.time_ns)
            live = self._live
            assert live.fd is not None
            with suppress(OSError):
                self._disk.truncate(live.fd, live.end)
                self._disk.sync(live.fd)
                is_synced = was_synced and not live.suspect
            if is_synced:
                self.synced_lsn, self.synced_block_no = self.next_lsn - 1, self.next_block_no - 1
                live.synced_end = live.end
        finally:
            if self.spares.spare is not None:
                self.spares.give_up(OSError())
            self._store.close()
        return is_synced


@dataclass(slots=True)
class CheckpointUnderWay:
    """A checkpoint that was begun in the live segment and is not complete yet."""

    time_ns: int
    written_before: int  # bytes between the previous checkpoint and this one
    size: int = 0


def checkpoint_blocks(
    chunks: list[bytes], *, is_first: bool = True, is_last: bool = True
) -> list[tuple[int, list[bytes]]]:
    """Checkpoint chunks grouped into blocks, whose flags distinguish a complete checkpoint from an incomplete one: (flags, chunks of one block) in
    order. An empty checkpoint is one empty block: nothing is open."""
    groups: list[list[bytes]] = [[]]
    size = 0
    for chunk in chunks:
        if size and size + len(chunk) > CHECKPOINT_BLOCK_SIZE:
            groups.append([])
            size = 0
        groups[-1].append(chunk)
        size += len(chunk)
    flags = [fmt.BLOCK_CHECKPOINT] * len(groups)
    if is_first:
        flags[0] |= fmt.BLOCK_CHECKPOINT_BEGIN
    if is_last:
        flags[-1] |= fmt.BLOCK_CHECKPOINT_END
    return list(zip(flags, groups, strict=True))
