"""The journal of one broker: appends facts in blocks, commits them, and reads them back.

Order of use: `open` verifies what is on disk, cuts a torn tail and begins a new segment. `replay` yields the newest complete checkpoint
and all blocks after it. Then every tick with facts calls `append`, in `disk` also `commit`, which runs in a thread; `next_position` follows each
`append` or `roll`. `upkeep` runs in a thread and does what is not tied to a tick: syncs in `os` durability, the spare segment, and recovery
from a full or failing disk.

In `memory` durability nothing is written and nothing can be read back.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Self

from mypy_extensions import mypyc_attr

from dragoman import limits
from dragoman.errors import JournalFailing, JournalMisplaced, JournalUnavailable
from dragoman.journal import format as fmt
from dragoman.journal import retention
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.format import BLOCK_HEADER_SIZE, Block, position_of, split_position
from dragoman.journal.reader import JournalReader
from dragoman.journal.recovery.chain import block_limit
from dragoman.journal.recovery.recover import Recovered, give_back_tail, recover
from dragoman.journal.recovery.scan import SegmentFile, block_of, read_segment_file, walk_file
from dragoman.journal.recovery.superblock_checks import superblock_findings
from dragoman.journal.scrub import Scrub
from dragoman.journal.segment_store import ALL_BYTES, SegmentInfo, SegmentStore, open_store
from dragoman.journal.settings import JournalSettings
from dragoman.journal.stream import DiskLoad
from dragoman.journal.superblock import SuperblockCopies
from dragoman.journal.writing.superblock_writer import SuperblockWriter
from dragoman.journal.writing.writer import Writer
from dragoman.model.facts.record_load import RecordInMemory, RecordLoad
from dragoman.model.facts.records import ANY_RECORD


@mypyc_attr(allow_interpreted_subclasses=True)
class Journal:
    """Created by `Journal.open`. `append` and `roll` never run at the same time: `append` runs on the loop's thread, or for a large block on another
    one, which the loop waits for before it appends or rolls. `read_record` and `drop` run on the loop's thread; `commit`, `sync` and `upkeep` may run
    beside all of them."""

    def __init__(
        self, settings: JournalSettings, disk: DiskFace, broker_id: bytes, found: Recovered, time_ns: int
    ) -> None:
        self.settings, self.broker_id = settings, broker_id
        self._disk, self._found, self._moves = disk, found, found.moves
        self._store: SegmentStore = open_store(disk, found.files, found.reach)
        self._store.read_whole_size = settings.read_whole_size
        for segment in self._store.segments.values():
            segment.synced_end = found.synced_ends.get(segment.segment_no, 0)
        self._memory_lsn = 0
        self.unsynced_size_soon = limits.UNSYNCED_SIZE_SOON  # unsynced bytes at which durability `os` syncs
        self._upkeep_ns = time_ns
        self._writer: Writer | None = None
        self.scrub = Scrub(disk, self._store, settings.scrub_rate, settings.scrub_interval_s * 1_000_000_000)
        self.findings = found.findings
        self._superblock: SuperblockWriter | None = None
        if settings.durability != "memory":
            self._writer = Writer(settings, disk, self._store, broker_id, found, time_ns)
            if found.has_checkpoint:
                self._writer.checkpoint_no = found.files[found.start].segment_no
            self._writer.written_size = sum(reach.end for reach in found.reach.values())
            self._first_no, self._replay_end = self._writer.live_no, self._writer.next_block_no

    @classmethod
    def open(
        cls,
        settings: JournalSettings,
        disk: DiskFace | None = None,
        *,
        now_ns: int = 0,
        new_broker_id: bytes | None = None,
    ) -> Self:
        """Open the journal in the directory. `new_broker_id` (or a random one) is used for a journal whose segments name no broker yet."""
        disk = disk if disk is not None else Disk()
        fresh_id = new_broker_id if new_broker_id is not None else uuid.uuid4().bytes
        if settings.durability == "memory":
            _refuse_kept_facts(disk, settings.directory)
            return cls(settings, disk, fresh_id, Recovered(), now_ns)
        disk.make_directory(settings.directory)
        copies = SuperblockCopies(disk, settings.directory)
        found = recover(disk, settings.directory, copies.newest)
        found.findings += superblock_findings(copies, found.files)
        give_back_tail(disk, found)
        journal = cls(settings, disk, found.broker_id or fresh_id, found, max(now_ns, found.time_ns))
        journal._tidy()
        assert journal._writer is not None, "only `memory` has none"
        journal._superblock = SuperblockWriter(copies, journal._writer, journal._store, found.lost, now_ns)
        journal._superblock.write()
        return journal

    @property
    def next_lsn(self) -> int:
        return self._writer.next_lsn if self._writer is not None else self._memory_lsn + 1

    @property
    def synced_lsn(self) -> int:
        return self._writer.synced_lsn if self._writer is not None else self._memory_lsn

    @property
    def unsynced_size(self) -> int:
        """Bytes appended and not yet synced; the runtime pauses clients above `limits.uncommitted_max` of the settings."""
        return self._writer.unsynced.size if self._writer is not None else 0

    @property
    def trouble(self) -> JournalUnavailable | None:
        """Why new work must be refused now, as the error to report; None when the disk works."""
        writer = self._writer
        if writer is None:
            return None
        if writer.failing is not None:
            return JournalFailing(self.settings.directory, writer.failing)
        return writer.spares.unavailable(self.settings.segment_size) if writer.spares.error is not None else None

    @property
    def accepts_new_work(self) -> bool:
        """False while the disk is full or failing: only facts that settle work should be appended then."""
        return self._writer is None or (self._writer.failing is None and self._writer.spares.error is None)

    def replay(self) -> Iterator[Block]:
        """The blocks of the newest complete checkpoint, then all blocks of facts after its beginning, in the order that `open` verified."""
        if self._writer is None:
            return
        files = [*self._found.files, read_segment_file(self._disk, self.settings.directory, self._first_no)]
        if self._found.has_checkpoint:
            yield from self._checkpoint(files)
        next_lsn, may_jump = 1, False
        for index in range(self._found.start, len(files)):
            header = files[index].header
            assert header is not None, "recovery leaves no segment without a header"
            if may_jump or header.flags & fmt.SEGMENT_GAP:
                next_lsn = max(next_lsn, header.first_lsn)
            limit = min(block_limit(files, index), self._replay_end)
            for block in self._blocks_below(files[index], limit):
                if block.flags == 0:
                    yield block
                next_lsn, may_jump = block.first_lsn + block.count, block.flags & fmt.BLOCK_FILLER != 0
        assert next_lsn in (1, self._found.next_lsn), "recovery proved these blocks"

    def _checkpoint(self, files: list[SegmentFile]) -> Iterator[Block]:
        """The blocks of the checkpoint to start with. Blocks of facts between them come later, from `replay`."""
        start = self._found.start
        for block in self._blocks_below(files[start], min(block_limit(files, start), self._replay_end)):
            if block.flags & fmt.BLOCK_CHECKPOINT:
                yield block
            if block.flags & fmt.BLOCK_CHECKPOINT_END:
                return

    def _blocks_below(self, file: SegmentFile, limit: int) -> Iterator[Block]:
        """The blocks of one segment with numbers below `limit`."""
        for found in walk_file(self._disk, file):
            if found.header.block_no >= limit:
                return
            yield block_of(file, found)

    def next_position(self) -> int:
        """The position of the first record of the next block. Valid until the next `append` or `roll`. A caller that hands blocks to another
        thread may compute later positions: the block after one of n record bytes begins n + BLOCK_HEADER_SIZE bytes later."""
        if self._writer is None:
            return position_of(1, fmt.SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE)
        return self._writer.next_position()

    def append(
        self, parts: list[bytes], count: int, time_ns: int, *, settling: bool = False, position: int | None = None
    ) -> int:
        """Write one block of `count` facts, whose records are in `parts`. Return the lsn of the last fact. `settling`: the block adds no new work, so
        it may use the space reserved for a full disk. `position`: the one announced for its records, if older than the last `next_position`."""
        size = sum(map(len, parts))
        assert size <= limits.BLOCK_SIZE_MAX, "one tick gathers less than this"
        if self._writer is None:
            self._memory_lsn += count
            return self._memory_lsn
        return self._writer.append(parts, size, count, time_ns, settling, position)

    def commit(self) -> int:
        """Make everything appended as safe as the durability requires. Return the highest lsn that is. In `os` the write in `append` was
        enough. Raises `JournalUnavailable` on failure; the blocks stay in memory, so call it again later."""
        if self._writer is None or self.settings.durability == "os":
            return self.next_lsn - 1
        return self._writer.sync()

    def sync(self) -> int:
        """Sync regardless of the durability. Return the highest synced lsn."""
        return self._writer.sync() if self._writer is not None else self._memory_lsn

    def wants_upkeep(self, now_ns: int) -> bool:
        """Whether `upkeep` has something to do. Cheap enough for every tick."""
        writer = self._writer
        if writer is None:
            return False
        # If the clock was set back, upkeep is due too: an extra sync is better than none for an hour.
        is_due = not 0 <= now_ns - self._upkeep_ns < limits.SYNC_INTERVAL_NS
        if self._superblock is not None and self._superblock.wants_work(now_ns):
            return True
        if writer.spares.wants_work(self.settings.zero_fill and self.settings.durability == "disk"):
            return writer.spares.error is None or is_due
        if self.settings.durability == "os" and writer.unsynced.size >= self.unsynced_size_soon:
            return True
        idle = not writer.has_unsynced and writer.failing is None
        return is_due and not idle

    def upkeep(self, now_ns: int) -> None:
        """Sync what is due, create the spare segment, retry after a full or failing disk. May take long: run it in a thread, in `disk`
        durability not in the one that commits. Never raises `JournalUnavailable`; see `trouble`."""
        self._upkeep_ns = now_ns
        if self._writer is None:
            return
        assert self._superblock is not None, "made by `open`"
        self._superblock.delete_dropped(now_ns)
        with suppress(JournalUnavailable):
            self._writer.make_spare()
            if self.settings.durability == "os" or self._writer.failing is not None:
                self._writer.sync()
        self._superblock.write_due(now_ns)

    @property
    def superblock_trouble(self) -> str | None:
        """Why the superblock cannot be written now; the journal works without it."""
        return self._superblock.trouble if self._superblock is not None else None

    def forget_lost(self, live_segments: Collection[int]) -> None:
        """Stop reporting missing segments (found missing at start) that no open message needs."""
        if self._superblock is not None:
            self._superblock.forget_lost(live_segments)

    def wants_roll(self, size: int = 0) -> bool:
        """Whether a block of `size` record bytes would fill the segment. Call it before `next_position`."""
        return self._writer is not None and self._writer.wants_roll(size)

    def roll(self, checkpoint: list[bytes] | None = None, rest_size: int = 0) -> bool:
        """Seal the segment and begin the next one, with a checkpoint if one is given and fits. Return whether the checkpoint was written.
        `rest_size`: about so many more bytes of it follow through `add_checkpoint`. Does not sync: the next commit or upkeep syncs both segments."""
        return self._writer is not None and self._writer.roll(checkpoint, rest_size)

    def add_checkpoint(self, chunks: list[bytes], is_last: bool) -> bool:
        """Write the next part of the checkpoint that `roll` began. Facts may have been appended since; the segment does not end before the checkpoint
        is complete. False when a disk failure aborted it: it is ignored then. Do not call it between `next_position` and its `append`."""
        return self._writer is not None and self._writer.add_checkpoint(chunks, is_last)

    def confirm_checkpoint(self) -> bool:
        """Confirm a synced checkpoint now instead of with the next facts, so that the segments before it may be deleted. True when
        that wrote a block, which the next commit or upkeep syncs. Do not call it between `next_position` and its `append`."""
        return self._writer is not None and self._writer.confirm_checkpoint()

    def wants_checkpoint(self, estimated_size: int) -> bool:
        """Whether there is no checkpoint, or enough was written since the last one that a new one is cheap in comparison."""
        writer = self._writer
        if writer is None or not self.accepts_new_work:
            return False
        return not writer.has_checkpoint or writer.written_size >= limits.CHECKPOINT_AMORTISE * estimated_size

    @property
    def has_moved(self) -> bool:
        """Whether `position_now` differs from the given position for any."""
        return len(self._moves) > 0

    def position_now(self, position: int) -> int:
        """The current position of a record that was announced at `position`; it differs only after a failed sync."""
        return self._moves.translate(position) if len(self._moves) else position

    def read_record(self, position: int, message_no: int = ANY_RECORD) -> bytes:
        """The verified record of a message at `position` (as announced, or as given by replay). Raises `RecordDamaged` for every failure."""
        return self.look(position, message_no, ALL_BYTES)

    def look(self, position: int, message_no: int, body_most: int) -> bytes:
        """Like `read_record`, but with at most `body_most` bytes of a large record's body: the rest is verified but not returned."""
        if (record := self._unwritten_record(position)) is not None:
            return record
        return self._store.read_record(*split_position(self.position_now(position)), message_no, body_most)

    def begin_load(self, position: int, message_no: int, is_whole: bool) -> RecordLoad:
        """Like `read_record`, in steps. Loads the body or, with `is_whole`, the accepted record."""
        if (record := self._unwritten_record(position)) is not None:
            return RecordInMemory(record, is_whole)
        return DiskLoad(self._store, self.position_now, position, message_no, is_whole)

    def _unwritten_record(self, position: int) -> bytes | None:
        """The record announced at `position`, from memory, while the disk is failing: it may not be on disk. None if it is in no unsynced block."""
        assert self._writer is not None, "nothing lives on disk in durability memory"
        return self._writer.unsynced.record(position) if self._writer.failing is not None else None

    def record_size(self, position: int) -> int:
        """The size in the record's head, not verified, for an estimate; 0 where there is no record."""
        return self._store.record_size(*split_position(self.position_now(position)))

    def prepare_reads(self, segment_nos: Iterable[int]) -> None:
        """Find the block offsets of segments whose records may lack a CRC. Called at start, before the event loop runs."""
        segment_nos = set(segment_nos)
        for segment_no in sorted(segment_nos | self._moves.segments_now(segment_nos)):
            self._store.prepare(segment_no)

    def read(self, from_lsn: int) -> Iterator[Block]:
        """Blocks with facts from `from_lsn` on, as far as they are written."""
        return (
            JournalReader(self.settings.directory, self._disk).read(from_lsn) if self._writer is not None else iter(())
        )

    def segments(self) -> list[SegmentInfo]:
        return self._store.infos()

    def size(self) -> int:
        """Used bytes of all segments."""
        return self._store.size()

    @property
    def is_disk_full(self) -> bool:
        return self._writer is not None and self._writer.spares.is_full

    def size_bound(self) -> int:
        """Bytes that the segments may use now: `size_max`, or less so that the disk keeps `free_min` bytes free."""
        if self._writer is None:
            return self.settings.size_max
        try:
            free = self._disk.free_space(self.settings.directory)
        except OSError:
            return self.settings.size_max
        if self._writer.spares.spare is None:
            free -= self.settings.segment_size
        return min(self.settings.size_max, self.size() + free - self.settings.free_min)

    def droppable(
        self, live_segments: Collection[int], now_ns: int, copied_lsn: int | None = None, size_max: int | None = None
    ) -> list[int]:
        """Segments that should be deleted now because of size or age; see `retention.droppable`. `size_max`: from `size_bound`, else the setting."""
        return retention.droppable(
            self.segments(),
            self.checkpoint_no,
            {*live_segments, *self._moves.segments_now(live_segments)},
            size_max=self.settings.size_max if size_max is None else size_max,
            age_max_ns=self.settings.age_max_s * 1_000_000_000,
            now_ns=now_ns,
            copied_lsn=copied_lsn,
        )

    def worth_carrying(self, live_sizes: Mapping[int, int], size_max: int) -> list[int]:
        """Segments whose few live records should be carried forward, given live bytes by segment. None on a full disk: its last space is for settling."""
        if self.is_disk_full:
            return []
        return retention.worth_carrying(self.segments(), self.checkpoint_no, live_sizes, size_max=size_max)

    def drop(self, segment_nos: Iterable[int]) -> int:
        """Remove these segments from the journal. Return the bytes that the next `upkeep` frees."""
        assert self._superblock is not None, "nothing lives on disk in durability memory"
        return self._superblock.drop(list(segment_nos))

    def close(self) -> None:
        """Sync, close all files, and record in the superblock whether the stop was clean."""
        if self._writer is not None and self._superblock is not None:
            self._superblock.delete_dropped(self._upkeep_ns)
            self._superblock.write(is_clean=self._writer.close())

    def _tidy(self) -> None:
        """Delete segments without any valid block, once the start has synced everything valid."""
        files = self._found.files
        while files and (header := files[-1].header) and header.first_block_no > self._found.synced_block_no:
            self._store.drop(files.pop().segment_no)

    @property
    def checkpoint_no(self) -> int | None:
        """The segment of the newest synced and confirmed checkpoint: the next start begins there or later."""
        return self._writer.checkpoint_no if self._writer is not None else None


def _refuse_kept_facts(disk: DiskFace, directory: str) -> None:
    if not disk.exists(directory) or not any(
        fmt.segment_no_of(name) is not None for name in disk.list_names(directory)
    ):
        return
    raise JournalMisplaced(
        f"{directory} holds a journal, which durability `memory` would neither read nor keep up: "
        f"choose durability `os` or `disk`, or another data directory"
    )
