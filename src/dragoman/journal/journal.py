"""The journal of one broker: facts in, blocks on disk, and everything asked of them later.

Life: `open` proves what is there, cuts a torn tail and begins a new segment; `replay` hands out the newest complete checkpoint
and all blocks after it; then per tick `next_place`, `append`, `commit`. `upkeep`, in a thread, does what needs no tick:
syncs in `os`, the spare segment, coming back after a full or failing disk.

In `memory` nothing is written and nothing can be read back.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Self

from dragoman import limits
from dragoman.errors import JournalFailing, JournalMisplaced, JournalUnavailable
from dragoman.journal import retention
from dragoman.journal.chain import block_limit
from dragoman.journal.claims import superblock_findings
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.format import (
    BLOCK_CHECKPOINT,
    BLOCK_CHECKPOINT_END,
    BLOCK_FILLER,
    BLOCK_HEADER_SIZE,
    SEGMENT_GAP,
    SEGMENT_HEADER_SIZE,
    Block,
    block_seed,
    place_of,
    segment_no_of,
    split_place,
)
from dragoman.journal.reader import JournalReader
from dragoman.journal.recovery import Recovered, give_back_tail, recover
from dragoman.journal.scan import SegmentFile, SegmentWalk, read_segment_file
from dragoman.journal.scrub import Scrub
from dragoman.journal.segments import SegmentInfo
from dragoman.journal.settings import JournalSettings
from dragoman.journal.shelf import Shelf, shelve
from dragoman.journal.superblock import SuperblockCopies
from dragoman.journal.superblock_writer import SuperblockWriter
from dragoman.journal.writer import Writer
from dragoman.model.records import ANY_RECORD


class Journal:
    """Made by `Journal.open`. `append`, `roll`, `read_record` and `drop` belong to one thread; `commit`, `sync` and `upkeep` may run
    in others meanwhile."""

    def __init__(
        self, settings: JournalSettings, disk: DiskFace, broker_id: bytes, found: Recovered, time_ns: int
    ) -> None:
        self.settings, self.broker_id = settings, broker_id
        self._disk, self._found, self._moves = disk, found, found.moves
        self._shelf: Shelf = shelve(disk, found.files, found.reach)
        for segment in self._shelf.segments.values():
            segment.synced_end = found.synced_ends.get(segment.segment_no, 0)
        self._memory_lsn = 0
        self.unsynced_size_soon = limits.UNSYNCED_SIZE_SOON  # durability `os` syncs when so much is unsynced
        self._upkeep_ns = time_ns
        self._writer: Writer | None = None
        self.scrub = Scrub(disk, self._shelf, settings.scrub_rate, settings.scrub_interval_s * 1_000_000_000)
        self.findings = found.findings
        self._superblock: SuperblockWriter | None = None
        if settings.durability != "memory":
            self._writer = Writer(settings, disk, self._shelf, broker_id, found, time_ns)
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
        """Take over the directory. The broker id lives in the segment headers; `new_broker_id` (else a random one) is for a
        journal that has none yet."""
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
        journal._superblock = SuperblockWriter(copies, journal._writer, journal._shelf, found.lost, now_ns)
        journal._superblock.write()
        return journal

    @property
    def next_lsn(self) -> int:
        return self._writer.next_lsn if self._writer is not None else self._memory_lsn + 1

    @property
    def synced_lsn(self) -> int:
        return self._writer.synced_lsn if self._writer is not None else self._memory_lsn

    @property
    def uncommitted_size(self) -> int:
        """Bytes appended and not yet synced; the runtime pauses clients above `limits.UNCOMMITTED_SIZE_MAX`."""
        return self._writer.held.size if self._writer is not None else 0

    @property
    def trouble(self) -> JournalUnavailable | None:
        """Why new work must be refused now, as the error to show for it; None when all is well."""
        writer = self._writer
        if writer is None:
            return None
        if writer.failing is not None:
            return JournalFailing(self.settings.directory, writer.failing)
        return writer.room.unavailable(self.settings.segment_size) if writer.room.error is not None else None

    @property
    def accepts_new_work(self) -> bool:
        """False while the disk is full or failing: only facts that settle work should be made then."""
        return self._writer is None or (self._writer.failing is None and self._writer.room.error is None)

    def replay(self) -> Iterator[Block]:
        """The newest complete checkpoint's blocks, then every block of facts after its beginning, as found at `open`, which proved
        that they follow each other; their bytes are proved again."""
        if self._writer is None:
            return
        files = [*self._found.files, read_segment_file(self._disk, self.settings.directory, self._first_no)]
        if self._found.has_checkpoint:
            yield from self._checkpoint(files)
        next_lsn, may_jump = 1, False
        for index in range(self._found.start, len(files)):
            header = files[index].header
            assert header is not None, "recovery leaves no segment without a header"
            if may_jump or header.flags & SEGMENT_GAP:
                next_lsn = max(next_lsn, header.first_lsn)
            limit = min(block_limit(files, index), self._replay_end)
            for block in _blocks_below(self._disk, files[index], limit):
                if block.flags == 0:
                    yield block
                next_lsn, may_jump = block.first_lsn + block.count, block.flags & BLOCK_FILLER != 0
        assert next_lsn in (1, self._found.next_lsn), "recovery proved these blocks"

    def _checkpoint(self, files: list[SegmentFile]) -> Iterator[Block]:
        """The blocks of the one to start with. Facts that were written between them come after it."""
        start = self._found.start
        for block in _blocks_below(self._disk, files[start], min(block_limit(files, start), self._replay_end)):
            if block.flags & BLOCK_CHECKPOINT:
                yield block
            if block.flags & BLOCK_CHECKPOINT_END:
                return

    def next_place(self) -> int:
        """Where the first record of the next block will lie. Kept until the next `append` or `roll`; a caller that hands
        blocks to another thread may reckon on: the block after one of n record bytes begins n + BLOCK_HEADER_SIZE later."""
        if self._writer is None:
            return place_of(1, SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE)
        return self._writer.next_place()

    def append(
        self, records: bytes, count: int, time_ns: int, *, settling: bool = False, place: int | None = None
    ) -> int:
        """Write one block of `count` facts; the lsn of the last. `settling`: the block makes no new work, so it may use the
        reserve of a full disk. `place`: what its records were told, when that is older than the last `next_place`."""
        assert len(records) <= limits.BLOCK_SIZE_MAX, "one tick gathers less than this"
        if self._writer is None:
            self._memory_lsn += count
            return self._memory_lsn
        return self._writer.append(records, count, time_ns, settling, place)

    def commit(self) -> int:
        """Make all that was appended as safe as the durability says; the highest lsn that is. In `os` the append's write
        was it. Raises `JournalUnavailable` when it cannot; the blocks stay held, call again later."""
        if self._writer is None or self.settings.durability == "os":
            return self.next_lsn - 1
        return self._writer.sync()

    def sync(self) -> int:
        """Sync whatever the durability; the highest synced lsn."""
        return self._writer.sync() if self._writer is not None else self._memory_lsn

    def wants_upkeep(self, now_ns: int) -> bool:
        """Cheap, for every tick: True when `upkeep` has something to do."""
        writer = self._writer
        if writer is None:
            return False
        # A clock that was set back makes it due too: better a sync too many than none for an hour.
        is_due = not 0 <= now_ns - self._upkeep_ns < limits.SYNC_INTERVAL_NS
        if self._superblock is not None and self._superblock.wants_work(now_ns):
            return True
        if writer.room.wants_work(self.settings.zero_fill and self.settings.durability == "disk"):
            return writer.room.error is None or is_due
        if self.settings.durability == "os" and writer.held.size >= self.unsynced_size_soon:
            return True
        idle = not writer.has_unsynced and writer.failing is None
        return is_due and not idle

    def upkeep(self, now_ns: int) -> None:
        """Sync what is due, have a spare segment, try to leave trouble behind. May take long: run it in a thread, and in
        `disk` not in the one that commits. Never raises `JournalUnavailable`; see `trouble`."""
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
        """Why the superblock cannot be written now; the journal goes on without."""
        return self._superblock.trouble if self._superblock is not None else None

    def forget_lost(self, live_segments: Collection[int]) -> None:
        """Of the segments that a start found missing, those that no open message needs are a loss no longer."""
        if self._superblock is not None:
            self._superblock.forget_lost(live_segments)

    def wants_roll(self, size: int = 0) -> bool:
        """True when a block of `size` record bytes would fill the segment. Ask before `next_place`."""
        return self._writer is not None and self._writer.wants_roll(size)

    def roll(self, checkpoint: list[bytes] | None = None, rest_size: int = 0) -> bool:
        """Seal the segment and begin the next, with a checkpoint if one is given and there is room for it: True when it was written.
        `rest_size`: about so many bytes of it follow by `add_checkpoint`. Syncs nothing: the next commit or upkeep syncs both."""
        return self._writer is not None and self._writer.roll(checkpoint, rest_size)

    def add_checkpoint(self, chunks: list[bytes], is_last: bool) -> bool:
        """The next part of the checkpoint that `roll` began; facts may have been appended meanwhile, and no segment ends before it is whole.
        False when it was broken off by trouble with the disk: then it counts for nothing. Not between `next_place` and its `append`."""
        return self._writer is not None and self._writer.add_checkpoint(chunks, is_last)

    def confirm_checkpoint(self) -> bool:
        """Without waiting for the next facts, have a synced checkpoint count, so that what it stands for may go. True when
        that took a block, which the next commit or upkeep syncs. Not between `next_place` and its `append`."""
        return self._writer is not None and self._writer.confirm_checkpoint()

    def wants_checkpoint(self, estimated_size: int) -> bool:
        """True when there is none, or enough was written since the last that another costs little beside it."""
        writer = self._writer
        if writer is None or not self.accepts_new_work:
            return False
        return not writer.has_checkpoint or writer.written_size >= limits.CHECKPOINT_AMORTISE * estimated_size

    @property
    def has_moved(self) -> bool:
        """Whether `place_now` differs for any place."""
        return len(self._moves) > 0

    def place_now(self, place: int) -> int:
        """Where a record lies whose place was promised; another one only after a sync failed."""
        return self._moves.translate(place) if len(self._moves) else place

    def read_record(self, place: int, message_no: int = ANY_RECORD) -> bytes:
        """The record of a message at `place`, by the place it was promised or the place replay gave it, proved by a CRC.
        Raises `RecordDamaged`, and nothing else, when it cannot be read or is not what was written."""
        assert self._writer is not None, "nothing lives on disk in durability memory"
        place = self.place_now(place)
        if self._writer.failing is not None and (record := self._writer.held.record(place)) is not None:
            return record
        return self._shelf.read_record(*split_place(place), message_no)

    def record_size(self, place: int) -> int:
        """The bytes of a record as its own head says, which nothing proves: for an estimate. 0 where there is none."""
        return self._shelf.record_size(*split_place(self.place_now(place)))

    def prepare_reads(self, segment_nos: Iterable[int]) -> None:
        """At the start, before there is a loop to hold up: know the blocks of those segments whose records have no CRC of their own."""
        old = {file.segment_no for file in self._found.files if file.header is not None and file.header.version < 2}
        for segment_no in sorted(old.intersection(segment_nos)):
            self._shelf.prepare(segment_no)

    def read(self, from_lsn: int) -> Iterator[Block]:
        """Blocks with facts from `from_lsn` on, as far as they are written."""
        return (
            JournalReader(self.settings.directory, self._disk).read(from_lsn) if self._writer is not None else iter(())
        )

    def segments(self) -> list[SegmentInfo]:
        return self._shelf.infos()

    def size(self) -> int:
        """Used bytes of all segments."""
        return self._shelf.size()

    @property
    def is_disk_full(self) -> bool:
        return self._writer is not None and self._writer.room.is_full

    def size_bound(self) -> int:
        """Bytes that the segments may take now: `size_max`, or less where the disk would else have less than `free_min` left."""
        if self._writer is None:
            return self.settings.size_max
        try:
            free = self._disk.free_space(self.settings.directory)
        except OSError:
            return self.settings.size_max
        if self._writer.room.spare is None:
            free -= self.settings.segment_size
        return min(self.settings.size_max, self.size() + free - self.settings.free_min)

    def droppable(
        self, live_segments: Collection[int], now_ns: int, copied_lsn: int | None = None, size_max: int | None = None
    ) -> list[int]:
        """Segments that should go now by size or age; see `retention.droppable`. `size_max`: the setting, or what `size_bound` found."""
        return retention.droppable(
            self.segments(),
            self.checkpoint_no,
            {*live_segments, *self._moves.segments_behind(live_segments)},
            size_max=self.settings.size_max if size_max is None else size_max,
            age_max_ns=self.settings.age_max_s * 1_000_000_000,
            now_ns=now_ns,
            copied_lsn=copied_lsn,
        )

    def worth_carrying(self, live_sizes: Mapping[int, int], size_max: int) -> list[int]:
        """Segments whose few live records should be appended again (as kind 201), given live bytes by segment number. On a full disk none:
        the reserve is for settling."""
        if self.is_disk_full:
            return []
        return retention.worth_carrying(self.segments(), self.checkpoint_no, live_sizes, size_max=size_max)

    def drop(self, segment_nos: Iterable[int]) -> int:
        """Do without these segments; the bytes they hold, which the next `upkeep` frees."""
        assert self._superblock is not None, "nothing lives on disk in durability memory"
        return self._superblock.drop(list(segment_nos))

    def trim(self, before_lsn: int) -> int:
        """Delete sealed segments whose facts all lie below `before_lsn` and that recovery does not need; how many went. Waiting
        bodies are the caller's care."""
        infos = self.segments()
        numbers: list[int] = []
        for info in retention.unneeded(infos, self.checkpoint_no, ()):
            if info.last_lsn < before_lsn and not retention.takes_over_from_one_that_stays(infos, info, numbers):
                numbers.append(info.segment_no)
        self.drop(numbers)
        return len(numbers)

    def close(self) -> None:
        """Sync and leave the directory in good order."""
        if self._writer is not None and self._superblock is not None:
            self._superblock.delete_dropped(self._upkeep_ns)
            self._superblock.write(is_clean=self._writer.close())

    def _tidy(self) -> None:
        """After a start has synced all that counts, segments of which nothing counts go."""
        files = self._found.files
        while files and (header := files[-1].header) and header.first_block_no > self._found.synced_block_no:
            self._shelf.drop(files.pop().segment_no)

    @property
    def checkpoint_no(self) -> int | None:
        """The segment of the newest checkpoint that is synced: what the next start begins with, at the earliest."""
        return self._writer.checkpoint_no if self._writer is not None else None


def _refuse_kept_facts(disk: DiskFace, directory: str) -> None:
    if not disk.exists(directory) or not any(segment_no_of(name) is not None for name in disk.list_names(directory)):
        return
    raise JournalMisplaced(
        f"{directory} holds a journal, which durability `memory` would neither read nor keep up: "
        f"choose durability `os` or `disk`, or another data directory"
    )


def _blocks_below(disk: DiskFace, file: SegmentFile, limit: int) -> Iterator[Block]:
    """The blocks of one segment whose numbers are below `limit`."""
    assert file.header is not None, "recovery leaves no segment without a header"
    first_place, fd = place_of(file.segment_no, BLOCK_HEADER_SIZE), disk.open(file.path, write=False)
    try:
        for offset, header, records in SegmentWalk(disk, fd, block_seed(file.header.broker_id, file.segment_no)):
            if header.block_no >= limit:
                return
            yield Block(first_place + offset, header.first_lsn, header.facts, header.time_ns, records, header.flags)
    finally:
        disk.close(fd)
