"""Creates indexes: reads synced blocks that are not covered yet once, in order, and writes their entries to the segment's index.

Only synced blocks are covered. The journal records which: every block and segment header has the synced numbers at the time of its
writing; if nothing more is written, only the broker knows the current one. The newest segment gets a run for every
`limits.INDEX_STEP_SIZE` bytes; a sealed segment gets one run for everything.
"""

from __future__ import annotations

import json
import os
import sys
from collections import deque
from contextlib import AbstractContextManager, suppress
from typing import Final, NamedTuple

from librt.vecs import vec
from mypy_extensions import i64

from dragoman import limits
from dragoman.errors import IndexerBusy
from dragoman.journal import format as fmt
from dragoman.journal.disk import REAL_DISK, DiskFace, opened
from dragoman.journal.format import BLOCK_HEADER_SIZE, index_path, segment_name
from dragoman.journal.recovery.chain import NO_LIMIT, block_limit, valid_segments
from dragoman.journal.recovery.scan import SegmentFile, SegmentWalk, list_segments
from dragoman.journal.tools import index as index_file
from dragoman.journal.tools.child_loop import Loop, Parent, exclusive, run_child
from dragoman.journal.tools.verify import Progress, no_progress
from dragoman.model.facts.index import index_block

LOCK_NAME: Final = "indexer.lock"
TEMPORARY_SUFFIX: Final = ".tmp"
LOOK_S: Final = 1.0


class Mark(NamedTuple):
    """The end of a block that was read."""

    end: int
    next_block_no: int
    next_lsn: int
    synced_by: int  # if this fact is synced, so is the block: its last fact, or, without facts, the next one
    entries: int  # number of entries up to here


class Synced:
    """How far the journal is known to be synced, by block and by fact."""

    def __init__(self) -> None:
        self.block_no = 0
        self.lsn = 0

    def holds(self, mark: Mark) -> bool:
        return mark.next_block_no <= self.block_no + 1 or mark.synced_by <= self.lsn


class Cursor:
    """How far one segment was read, and which entries are not in its index yet."""

    def __init__(self, disk: DiskFace, file: SegmentFile, index: index_file.SegmentIndex | None) -> None:
        assert file.header is not None, "the caller leaves out segments without a header"
        header = file.header
        first = index_file.Covered(
            fmt.SEGMENT_HEADER_SIZE, fmt.SEGMENT_HEADER_SIZE, header.first_block_no, header.first_lsn
        )
        self.file = file
        self.covered = first if index is None else index.covered
        self.index_size = index_file.HEADER_SIZE if index is None else index.size
        self.runs = 0 if index is None else len(index.runs)
        self.is_broken = False  # a block does not follow the previous one
        self._disk = disk
        self._entries = vec[i64]()
        self._may_jump = index is None and header.flags & fmt.SEGMENT_GAP != 0
        self._read = Mark(*self.covered[1:], 0, 0)
        self._marks: deque[Mark] = deque()  # for synced blocks only the last one is kept

    def read(self, limit: int, synced: Synced) -> None:
        """Read the following blocks with numbers below `limit`, and update `synced` from their headers."""
        marks = self._marks
        with opened(self._disk, self.file.path) as fd:
            for offset, header, records in SegmentWalk(self._disk, fd, self.file.seed, self._read.end):
                if header.block_no >= limit or not self._follows(header):
                    self.is_broken = True
                    break
                self._may_jump = header.flags & fmt.BLOCK_FILLER != 0
                if header.flags == 0:
                    self._entries = index_block(records, offset, self._entries)
                synced.block_no = max(synced.block_no, header.synced_block_no)
                while len(marks) > 1 and synced.holds(marks[1]):
                    marks.popleft()
                end, next_lsn = offset + BLOCK_HEADER_SIZE + header.size, header.first_lsn + header.facts
                synced_by = next_lsn - 1 if header.facts else next_lsn
                self._read = Mark(end, header.block_no + 1, next_lsn, synced_by, len(self._entries))
                marks.append(self._read)

    def _follows(self, header: fmt.BlockHeader) -> bool:
        block_no, lsn = self._read.next_block_no, self._read.next_lsn
        if self._may_jump:
            return header.block_no >= block_no and header.first_lsn >= lsn
        return header.block_no == block_no and header.first_lsn == lsn

    def take(self, synced: Synced, size_min: int) -> tuple[index_file.Covered, vec[i64]] | None:
        """The synced part of what was read, for a run; None when that covers less than `size_min` bytes."""
        last: Mark | None = None
        while self._marks and synced.holds(self._marks[0]):
            last = self._marks.popleft()
        if last is None:
            return None
        if last.end - self.covered.end < size_min:
            self._marks.appendleft(last)
            return None
        taken, self._entries = self._entries[: last.entries], self._entries[last.entries :]
        self._marks = deque(mark._replace(entries=mark.entries - last.entries) for mark in self._marks)
        self.covered = index_file.Covered(self.covered.end, last.end, last.next_block_no, last.next_lsn)
        return self.covered, taken


class Indexer:
    """Maintains the indexes of one journal; no other process may write them at the same time (`indexing_alone`)."""

    def __init__(self, directory: str, disk: DiskFace = REAL_DISK, step_size: int = limits.INDEX_STEP_SIZE) -> None:
        self._directory = directory
        self._disk = disk
        self._step_size = step_size
        self._cursors: dict[int, Cursor] = {}
        self._done: dict[int, bool] = {}  # by segment number: whether an index was written
        self._synced = Synced()

    def on_synced(self, synced_lsn: int) -> None:
        self._synced.lsn = max(self._synced.lsn, synced_lsn)

    def work(self, is_last: bool = False, progress: Progress = no_progress) -> None:
        """Index what can be indexed now. `is_last`: even if it is less than a step."""
        names = set(self._disk.list_names(self._directory))
        self._forget(names)
        files = [file for file in valid_segments(list_segments(self._disk, self._directory)) if file.header is not None]
        # The journal's own space has priority: on a nearly full disk no index is written, and the writer deletes indexes (spare_segment.py).
        room_kept = limits.INDEX_SEGMENTS_KEPT * max((file.size for file in files), default=0)
        if not files or self._disk.free_space(self._directory) < room_kept:
            return
        total, done = sum(file.size for file in files), 0
        self._look_ahead(files)
        for index, file in enumerate(files):
            if file.segment_no not in self._done:
                self._segment(file, block_limit(files, index), file is files[-1], is_last)
            done += file.size
            progress(done, total)

    def _look_ahead(self, files: list[SegmentFile]) -> None:
        """Learn how far the journal is synced; the newest segment has the latest number."""
        for file in files:
            assert file.header is not None
            self._synced.block_no = max(self._synced.block_no, file.header.synced_block_no)
        self._cursor(files[-1]).read(NO_LIMIT, self._synced)

    def _segment(self, file: SegmentFile, limit: int, is_newest: bool, is_last: bool) -> None:
        try:
            cursor = self._cursor(file)
            cursor.read(limit, self._synced)
        except FileNotFoundError:
            return  # deleted in the meantime
        is_small_welcome = is_last or not is_newest
        run = cursor.take(self._synced, 1 if is_small_welcome else self._step_size)
        if run is not None:
            try:
                self._write(cursor, *run)
            except OSError:
                del self._cursors[file.segment_no]  # its entries are lost: the next attempt reads the segment again
                raise
        if is_newest:
            return
        if cursor.covered.next_block_no >= limit or cursor.is_broken:
            self._join(cursor)
            self._done[file.segment_no] = cursor.runs > 0
            del self._cursors[file.segment_no]

    def _cursor(self, file: SegmentFile) -> Cursor:
        cursor = self._cursors.get(file.segment_no)
        if cursor is None:
            cursor = self._cursors[file.segment_no] = Cursor(self._disk, file, self._proved(file))
        cursor.file = file  # its size may have changed
        return cursor

    def _proved(self, file: SegmentFile) -> index_file.SegmentIndex | None:
        """The existing index, if every byte of it is valid."""
        index = index_file.read_index(self._disk, file)
        try:
            if index is not None:
                index.entries(self._disk)
        except index_file.IndexUntrue:
            return None
        return index

    def _write(self, cursor: Cursor, covered: index_file.Covered, entries: vec[i64]) -> None:
        data = index_file.pack_run(covered, entries)
        if cursor.runs == 0:
            self._replace(cursor, data)
            return
        with opened(self._disk, index_path(cursor.file.path), write=True) as fd:
            self._disk.truncate(fd, cursor.index_size)
            self._disk.write(fd, [data], cursor.index_size)
        cursor.index_size += len(data)
        cursor.runs += 1

    def _join(self, cursor: Cursor) -> None:
        """Merge the runs of a segment that will not grow any more into one."""
        index = index_file.read_index(self._disk, cursor.file) if cursor.runs > 1 else None
        with suppress(index_file.IndexUntrue):  # the next indexer starts this segment again
            if index is not None:
                self._replace(cursor, index_file.pack_run(index.covered, index.entries(self._disk)))

    def _replace(self, cursor: Cursor, run: bytes) -> None:
        """Write an index file with only this run, replacing the existing one."""
        path = index_path(cursor.file.path)
        temporary = path + TEMPORARY_SUFFIX
        with opened(self._disk, temporary, create=True) as fd:
            self._disk.write(fd, [index_file.pack_header(cursor.file), run], 0)
        self._disk.rename(temporary, path)
        cursor.index_size, cursor.runs = index_file.HEADER_SIZE + len(run), 1

    def _forget(self, names: set[str]) -> None:
        """Delete indexes without a segment and temporary files of a killed indexer, and drop the state of files that no longer exist."""
        for name in names:
            is_orphan = fmt.is_index_name(name) and segment_name(int(name.removesuffix(fmt.INDEX_SUFFIX))) not in names
            if is_orphan or name.endswith(fmt.INDEX_SUFFIX + TEMPORARY_SUFFIX):
                self._disk.unlink(f"{self._directory}/{name}")
        for number, cursor in list(self._cursors.items()):
            if not _is_there(number, cursor.runs > 0, names):
                del self._cursors[number]
        for number, has_index in list(self._done.items()):
            if not _is_there(number, has_index, names):
                del self._done[number]


def _is_there(segment_no: int, has_index: bool, names: set[str]) -> bool:
    """Whether the segment exists, and its index if one was written: on a full disk the journal deletes indexes."""
    name = segment_name(segment_no)
    return name in names and (not has_index or index_path(name) in names)


def indexing_alone(directory: str) -> AbstractContextManager[None]:
    """Hold the lock that allows one indexer per data directory."""
    return exclusive(os.path.dirname(os.path.abspath(directory)), LOCK_NAME, IndexerBusy)


class IndexLoop(Loop):
    """The indexer as a child process of the broker: `python -m dragoman.journal.tools.indexer OPTIONS`, which are JSON.

        out   indexed    the indexer works: sent once at the start, and after trouble

    journal/tools/child_loop.py has the other lines of both directions. The parent sends the synced lsn because the journal itself records it
    only with its next block. The process checks the journal once per second and exits, after a last check, when its input ends. It runs at
    idle priority: under load the broker goes first.
    """

    def __init__(self, directory: str, parent: Parent) -> None:
        super().__init__(parent, directory)
        self._indexer = Indexer(directory)
        self._has_begun = False

    def work(self, now_s: float) -> None:
        self._indexer.on_synced(self.synced_lsn)
        self._indexer.work(self.parent.has_ended)
        if not self._has_begun:
            self._has_begun = True
            self.end_trouble()

    def wait_s(self, now_s: float) -> float:
        return LOOK_S

    def end_trouble(self) -> None:
        self.parent.send("indexed")


if __name__ == "__main__":
    journal: str = json.loads(sys.argv[1])["journal"]
    sys.exit(run_child(indexing_alone(journal), lambda parent: IndexLoop(journal, parent)))
