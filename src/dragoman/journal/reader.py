"""Reading a journal that somebody may be writing: the sealer, the trace, a backup, in this process or another.

A reader changes nothing and locks nothing. Of the newest segment it reads as far as whole blocks go; a block just being
written is simply not there yet. A segment trimmed under its feet is passed over.
"""

from __future__ import annotations

from collections.abc import Iterator

from dragoman.errors import JournalDamaged
from dragoman.journal.chain import ChainWalk, block_limit, counting, runs_of
from dragoman.journal.claims import broker_id_of
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.format import Block, split_place
from dragoman.journal.scan import SegmentFile, block_of, list_segments
from dragoman.journal.segments import SegmentInfo
from dragoman.journal.shelf import shelve

_TRIES_MAX = 8


class JournalReader:
    """Read-only face of the journal in `directory`."""

    def __init__(self, directory: str, disk: DiskFace | None = None) -> None:
        self._directory = directory
        self._disk: DiskFace = disk if disk is not None else Disk()

    def segments(self) -> list[SegmentInfo]:
        """All segments; only the newest counts as not sealed."""
        files = [file for file in list_segments(self._disk, self._directory) if file.header is not None]
        return shelve(self._disk, files, {}, newest_sealed=False).infos()

    def broker_id(self) -> bytes | None:
        """Whose journal it is; None while it has no segment."""
        return broker_id_of(list_segments(self._disk, self._directory), self._directory)

    def synced_lsn(self) -> int:
        """The highest lsn that the journal itself says is synced: what no power loss takes away."""
        files = [file for file in list_segments(self._disk, self._directory) if file.header is not None]
        if not files:
            return 0
        walk = ChainWalk(self._disk, files[-1:])
        for _ in walk:
            pass
        return walk.synced_lsn

    def read(self, from_lsn: int, behind: Block | None = None) -> Iterator[Block]:
        """Blocks with facts from `from_lsn` on, as far as they are written now. `behind`: one read before, all of whose facts are
        below `from_lsn`; what stands before it in its segment need not be walked again. It must have been synced."""
        for _ in range(_TRIES_MAX):
            try:
                for block in self._read(from_lsn, behind):
                    yield block
                    from_lsn = block.first_lsn + block.count
                return
            except FileNotFoundError:
                continue  # trimmed between listing and opening: list again, go on behind what was handed out
        raise JournalDamaged(self._directory, 0, from_lsn, "segments vanish faster than they can be read")

    def _read(self, from_lsn: int, behind: Block | None) -> Iterator[Block]:
        files = counting(list_segments(self._disk, self._directory))
        for run in runs_of(files):
            last = run[-1] is files[-1]
            start = max((i for i, f in enumerate(run) if f.header and f.header.first_lsn <= from_lsn), default=0)
            if not last and _ends_before(files, run, from_lsn):
                continue
            known = behind is not None and split_place(behind.place)[0] == run[start].segment_no
            walk = ChainWalk(self._disk, run, start, behind if known else None)
            limit = block_limit(
                files, files.index(run[-1])
            )  # a later run may have taken over what a suspect segment held
            for file, found in walk:
                if found.header.block_no >= limit:
                    break
                if found.header.facts and found.header.first_lsn + found.header.facts > from_lsn:
                    yield block_of(file, found)
            damage = walk.damage
            if damage is None or damage.block_no >= limit:
                continue
            # The newest segment may end in a block that is being written; anywhere else a stop is damage.
            if not last or damage.file.segment_no != run[-1].segment_no:
                raise JournalDamaged(damage.file.path, damage.offset, damage.lsn, damage.reason)


def _ends_before(files: list[SegmentFile], run: list[SegmentFile], from_lsn: int) -> bool:
    after = files[files.index(run[-1]) + 1]
    return after.header is not None and after.header.first_lsn <= from_lsn
