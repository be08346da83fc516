"""Reads a list of segments as one sequence of blocks.

Invariant: block numbers continue without a gap from segment to segment. A segment's valid blocks end where any later segment
begins: after a failed sync the uncommitted blocks are rewritten to a new segment, and their copies in the suspect segment are ignored,
whole or not. Numbers may jump only where a salvage left a gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from dragoman.errors import JournalDamaged
from dragoman.journal import format as fmt
from dragoman.journal.disk import DiskFace
from dragoman.journal.format import Block
from dragoman.journal.recovery.scan import Found, SegmentFile, SegmentWalk, walk_file

NO_LIMIT = 1 << 64


class Damage(NamedTuple):
    """The first position at which the journal violates the invariant."""

    file: SegmentFile
    offset: int
    block_no: int
    lsn: int
    reason: str

    def error(self) -> JournalDamaged:
        return JournalDamaged(self.file.path, self.offset, self.lsn, self.reason)


@dataclass
class Reach:
    """How far a segment's valid blocks were read: offset after the last one, its lsn and time."""

    end: int
    last_lsn: int
    last_time_ns: int
    blocks: int = 0
    facts: int = 0


def block_limit(files: list[SegmentFile], index: int) -> int:
    """The block number from which on the blocks of `files[index]` are ignored."""
    return min((f.header.first_block_no for f in files[index + 1 :] if f.header is not None), default=NO_LIMIT)


def valid_segments(files: list[SegmentFile]) -> list[SegmentFile]:
    """The segments with at least one valid block: those for which no later segment begins at or before their first block."""
    return [
        file
        for index, file in enumerate(files)
        if file.header is None or file.header.first_block_no < block_limit(files, index)
    ]


def runs_of(files: list[SegmentFile], checkpoint: int | None = None) -> list[list[SegmentFile]]:
    """Groups of segments without a gap: a missing number begins a new group, because any segment up to index `checkpoint` (None: any) may be dropped."""
    runs: list[list[SegmentFile]] = []
    for index, file in enumerate(files):
        is_after_checkpoint = checkpoint is not None and index > checkpoint
        if runs and (is_after_checkpoint or runs[-1][-1].segment_no + 1 == file.segment_no):
            runs[-1].append(file)
        else:
            runs.append([file])
    return runs


def checkpoint_end(disk: DiskFace, file: SegmentFile, limit: int) -> int | None:
    """The number of the last block of the checkpoint that the segment starts with; None if it starts with none, or with one that is not complete
    below block number `limit`. Blocks of facts may be between those of a checkpoint: the checkpoint is the state before them."""
    if file.header is None or not file.header.flags & fmt.SEGMENT_CHECKPOINT:
        return None
    expected = file.header.first_block_no
    for found in walk_file(disk, file):
        flags = found.header.flags
        is_begun = expected > file.header.first_block_no or flags & fmt.BLOCK_CHECKPOINT_BEGIN != 0
        if not is_begun or found.header.block_no != expected or expected >= limit:
            return None
        if flags & fmt.BLOCK_FILLER:
            return None  # the lost bytes may have been a part of it
        if flags & fmt.BLOCK_CHECKPOINT and flags & fmt.BLOCK_CHECKPOINT_END:
            return expected
        expected += 1
    return None


def newest_checkpoint(disk: DiskFace, files: list[SegmentFile], before: int | None = None) -> int | None:
    """The index of the newest segment (of those before index `before`) that starts with a complete checkpoint."""
    for index in range(len(files) - 1 if before is None else before - 1, -1, -1):
        if checkpoint_end(disk, files[index], block_limit(files, index)) is not None:
            return index
    return None


class ChainWalk:
    """Iterate over every valid block of `files[start:]`. Afterwards `damage` is the first violation of the invariant, or None;
    `reach` has, by segment number, how far its blocks go; the `synced` pair is the highest seen. With `after`, a
    block of `files[start]`, the walk begins after it."""

    def __init__(
        self,
        disk: DiskFace,
        files: list[SegmentFile],
        start: int = 0,
        after: Block | None = None,
        stop: int | None = None,
    ) -> None:
        """`stop`: the index of the first file not to read; None: read all."""
        self._disk, self._files, self._start, self._after = disk, files, start, after
        self._stop = len(files) if stop is None else stop
        self.damage: Damage | None = None
        self.reach: dict[int, Reach] = {}
        self.next_block_no = 1
        self.next_lsn = 1
        self.synced_lsn = 0
        self.synced_block_no = 0
        self.time_ns = 0
        self._gap = False

    def __iter__(self) -> Iterator[tuple[SegmentFile, Found]]:
        for index in range(self._start, self._stop):
            file, limit = self._files[index], block_limit(self._files, index)
            if (header := file.header) is None:
                if self.next_block_no >= limit:
                    continue  # a later segment has every block that could be here
                self.damage = Damage(file, 0, self.next_block_no, self.next_lsn, "the segment header is damaged")
                return
            if index == self._start or header.flags & fmt.SEGMENT_GAP or self._gap:
                self.next_block_no = max(self.next_block_no, header.first_block_no)
                self.next_lsn = max(self.next_lsn, header.first_lsn)
                self._gap = bool(header.flags & fmt.SEGMENT_GAP)
            if index == self._start and self._after is not None:
                self.next_block_no, self.next_lsn = self._after.block_no + 1, self._after.last_lsn + 1
                self._gap = False
            self._saw_synced(header.synced_lsn, header.synced_block_no)
            self.reach[file.segment_no] = Reach(fmt.SEGMENT_HEADER_SIZE, self.next_lsn - 1, header.created_ns)
            if self.next_block_no >= limit:
                continue
            if header.first_block_no > self.next_block_no:
                self.damage = self._missing(index)
                return
            yield from self._walk(file, limit)
            if self.damage is not None:
                return

    def _walk(self, file: SegmentFile, limit: int) -> Iterator[tuple[SegmentFile, Found]]:
        fd = self._disk.open(file.path, write=False)
        reach = self.reach[file.segment_no]
        next_block_no, next_lsn, gap = self.next_block_no, self.next_lsn, self._gap
        synced_lsn, synced_block_no, time_ns, blocks, facts = 0, 0, reach.last_time_ns, 0, 0
        walk = SegmentWalk(self._disk, fd, file.seed, self._begin(file))
        reason: str | None = None
        last_end = walk.end
        try:
            for found in walk:
                header = found.header
                block_no, first_lsn = header.block_no, header.first_lsn
                if block_no != next_block_no or first_lsn != next_lsn:
                    if gap and block_no >= next_block_no and first_lsn >= next_lsn:
                        pass
                    elif block_no >= limit:
                        break
                    else:
                        reason = _breach(block_no, first_lsn, next_block_no, next_lsn)
                        return
                gap = header.flags & fmt.BLOCK_FILLER != 0
                # A filler's number may be reused: if the segment's header was lost too, its first whole block has the same number.
                next_block_no, next_lsn = block_no if gap else block_no + 1, first_lsn + header.facts
                if header.synced_block_no >= synced_block_no:
                    synced_lsn, synced_block_no = header.synced_lsn, header.synced_block_no
                if header.time_ns > time_ns:
                    time_ns = header.time_ns
                blocks, facts, last_end = blocks + 1, facts + header.facts, walk.end
                yield file, found
                if next_block_no >= limit:
                    return
            reason = walk.fault
            if reason is None and limit != NO_LIMIT and not gap and not self._may_jump_to(limit):
                # Lost blocks that read as zeros look like the end of a segment; only the next segment's numbers show the difference.
                reason = f"blocks {next_block_no} to {limit - 1} are missing"
        finally:
            self._disk.close(fd)
            self.next_block_no, self.next_lsn, self._gap = next_block_no, next_lsn, gap
            self._saw_synced(synced_lsn, synced_block_no)
            self.time_ns = max(self.time_ns, time_ns)
            reach.end, reach.last_lsn, reach.last_time_ns = last_end, next_lsn - 1, time_ns
            reach.blocks, reach.facts = blocks, facts
            if reason is not None:
                self.damage = Damage(file, last_end, next_block_no, next_lsn, reason)

    def _begin(self, file: SegmentFile) -> int:
        if self._after is not None:
            segment_no, offset = fmt.split_position(self._after.position)
            if segment_no == file.segment_no:
                return offset + len(self._after.records)
        return fmt.SEGMENT_HEADER_SIZE

    def _may_jump_to(self, block_no: int) -> bool:
        headers = [file.header for file in self._files if file.header is not None]
        return any(header.first_block_no == block_no and header.flags & fmt.SEGMENT_GAP for header in headers)

    def _saw_synced(self, lsn: int, block_no: int) -> None:
        self.synced_lsn = max(self.synced_lsn, lsn)
        self.synced_block_no = max(self.synced_block_no, block_no)

    def _missing(self, index: int) -> Damage:
        before = self._files[index - 1]
        reach = self.reach.get(before.segment_no)
        end = reach.end if reach is not None else 0
        wanted = self._files[index].header
        assert wanted is not None
        reason = (
            f"blocks {self.next_block_no} to {wanted.first_block_no - 1} are missing before {self._files[index].path}"
        )
        return Damage(before, end, self.next_block_no, self.next_lsn, reason)


def _breach(block_no: int, first_lsn: int, next_block_no: int, next_lsn: int) -> str:
    if block_no != next_block_no:
        return f"block {block_no} stands where block {next_block_no} belongs"
    return f"a block begins with fact {first_lsn} where fact {next_lsn} belongs"
