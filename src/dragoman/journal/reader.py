"""Reads a journal that may be written at the same time: for the sealer, a trace or a backup, in this process or another.

A reader changes nothing and locks nothing. In the newest segment it reads up to the last whole block; a block that is being
written is not seen yet. A segment that is deleted during the read is skipped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from dragoman.errors import JournalDamaged
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.format import Block, split_position
from dragoman.journal.recovery.chain import ChainWalk, block_limit, runs_of, valid_segments
from dragoman.journal.recovery.scan import block_of, list_segments
from dragoman.journal.recovery.superblock_checks import broker_id_of
from dragoman.journal.segment_store import SegmentInfo, open_store

_TRIES_MAX = 8


class JournalReader:
    """Read-only access to the journal in `directory`."""

    def __init__(self, directory: str, disk: DiskFace | None = None) -> None:
        self._directory = directory
        self._disk: DiskFace = disk if disk is not None else Disk()

    def segments(self) -> list[SegmentInfo]:
        """All segments; only the newest is not sealed."""
        files = [file for file in list_segments(self._disk, self._directory) if file.header is not None]
        return open_store(self._disk, files, {}, newest_sealed=False).infos()

    def broker_id(self) -> bytes | None:
        """The broker id in the segment headers; None while there is no segment."""
        return broker_id_of(list_segments(self._disk, self._directory), self._directory)

    def synced_lsn(self) -> int:
        """The highest lsn that the journal itself records as synced."""
        files = [file for file in list_segments(self._disk, self._directory) if file.header is not None]
        if not files:
            return 0
        walk = ChainWalk(self._disk, files[-1:])
        deque(walk, maxlen=0)
        return walk.synced_lsn

    def read(self, from_lsn: int, after: Block | None = None) -> Iterator[Block]:
        """Blocks with facts from `from_lsn` on, as far as they are written now. `after`: a block read earlier, all of whose facts are below
        `from_lsn`, so that the walk can skip what precedes it in its segment. It must be synced."""
        for _ in range(_TRIES_MAX):
            try:
                for block in self._read(from_lsn, after):
                    yield block
                    from_lsn = block.first_lsn + block.count
                return
            except FileNotFoundError:
                continue  # deleted between listing and opening: list again and continue after the last yielded block
        raise JournalDamaged(self._directory, 0, from_lsn, "segments vanish faster than they can be read")

    def _read(self, from_lsn: int, after: Block | None) -> Iterator[Block]:
        files = valid_segments(list_segments(self._disk, self._directory))
        for run in runs_of(files):
            last, end = run[-1] is files[-1], files.index(run[-1])
            start = max((i for i, f in enumerate(run) if f.header and f.header.first_lsn <= from_lsn), default=0)
            if not last and (follower := files[end + 1].header) is not None and follower.first_lsn <= from_lsn:
                continue
            known = after is not None and split_position(after.position)[0] == run[start].segment_no
            walk = ChainWalk(self._disk, run, start, after if known else None)
            # A later run may have rewritten the blocks of a suspect segment.
            limit = block_limit(files, end)
            for file, found in walk:
                if found.header.block_no >= limit:
                    break
                if found.header.facts and found.header.first_lsn + found.header.facts > from_lsn:
                    yield block_of(file, found)
            damage = walk.damage
            if damage is None or damage.block_no >= limit:
                continue
            # The newest segment may end in a block that is being written; anywhere else a stop means damage.
            if not last or damage.file.segment_no != run[-1].segment_no:
                raise damage.error()
