"""Read access to a journal segment by segment, for searches: by index, or over all blocks.

Both follow the invariant of `recovery/chain.py`: blocks follow each other without a gap and end where a later segment begins. The part that an
index covers was checked when the index was made; only the blocks after it are checked again. Only synced blocks are indexed, so a
crash cannot replace them with others.
"""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.journal import format as fmt
from dragoman.journal.disk import REAL_DISK, DiskFace, opened
from dragoman.journal.format import Block
from dragoman.journal.recovery.chain import ChainWalk, block_limit, runs_of, valid_segments
from dragoman.journal.recovery.scan import Found, SegmentFile, block_at, block_of, list_segments, walk_file
from dragoman.journal.tools.index import IndexUntrue, SegmentIndex, read_index


class SegmentView:
    """One segment. Its blocks with records come as `Block`s in order, without checkpoints."""

    def __init__(self, disk: DiskFace, run: list[SegmentFile], position: int, limit: int, is_newest: bool) -> None:
        self._disk, self._run, self._position, self._limit = disk, run, position, limit
        self._is_newest = is_newest
        self.file = run[position]
        self.index: SegmentIndex | None = read_index(disk, self.file)

    def blocks(self) -> Iterator[Block]:
        """All blocks."""
        return self._walk(None)

    def rest(self) -> Iterator[Block]:
        """The blocks after those that the index covers."""
        assert self.index is not None, "nothing is covered"
        covered = self.index.covered
        if covered.next_block_no >= self._limit:
            return iter(())
        position = fmt.position_of(self.file.segment_no, covered.end)
        return self._walk(Block(position, covered.next_lsn, 0, 0, b"", block_no=covered.next_block_no - 1))

    def checkpoint(self) -> Iterator[bytes]:
        """The records of the checkpoint that the segment begins with, block by block, as far as it was written; nothing if there is none."""
        header = self.file.header
        if header is None or not header.flags & fmt.SEGMENT_CHECKPOINT:
            return
        for found in walk_file(self._disk, self.file):
            if found.header.flags & fmt.BLOCK_CHECKPOINT:
                yield found.records
            if found.header.flags & fmt.BLOCK_CHECKPOINT_END:
                return

    def find(self, keys: set[int]) -> set[int]:
        """Offsets of indexed blocks that may contain these keys; raises `IndexUntrue`."""
        assert self.index is not None, "nothing is covered"
        return self.index.find(self._disk, keys)

    def fetch(self, offsets: set[int]) -> dict[int, Block]:
        """The valid blocks at these offsets; raises `IndexUntrue` where there is no block."""
        found: dict[int, Block] = {}
        with opened(self._disk, self.file.path) as fd:
            for offset in offsets:
                block = block_at(self._disk, fd, self.file.seed, offset)
                if block is None:
                    raise IndexUntrue
                if block.header.block_no < self._limit and _has_records(block):
                    found[offset] = block_of(self.file, block)
        return found

    def _walk(self, after: Block | None) -> Iterator[Block]:
        # If a header is damaged, only a walk from the previous segment shows whether blocks are missing.
        start = self._position if self.file.header is not None else max(self._position - 1, 0)
        walk = ChainWalk(self._disk, self._run, start, after, stop=self._position + 1)
        for file, found in walk:
            if found.header.block_no >= self._limit and file is self.file:
                return
            if file is self.file and _has_records(found):
                yield block_of(file, found)
        damage = walk.damage
        # The newest segment may end in a block that is being written; anywhere else a stop means damage.
        if damage is not None and damage.block_no < self._limit and not self._is_newest:
            raise damage.error()


def segment_views(directory: str, disk: DiskFace = REAL_DISK) -> list[SegmentView]:
    """Every segment of a journal with valid blocks, in order."""
    files = valid_segments(list_segments(disk, directory))
    found: list[SegmentView] = []
    for run in runs_of(files):
        limit = block_limit(files, files.index(run[-1]))
        for position, file in enumerate(run):
            own_limit = min(limit, block_limit(run, position))
            found.append(SegmentView(disk, run, position, own_limit, file is files[-1]))
    return found


def _has_records(found: Found) -> bool:
    """True for blocks of facts or carried records; a checkpoint, a mark or a filler has a flag."""
    return found.header.flags == 0 and found.header.size > 0
