"""The index of one segment: which of its blocks concern which message. `0000000001.idx` is next to `0000000001.seg`.

An index may be lost, torn, stale or foreign at any time, and is ignored then: everything read from it is verified by a checksum
first, and what it does not cover is read from the segment itself. docs/reference/journal.md draws its bytes:

    header, 64 bytes     magic, version, crc, segment_no, crc of the segment's header, broker id
    run, one or more     header of 48 bytes; first entry and crc of each page; pages of 512 entries (`model/facts/index`), sorted

Each run covers a range of the segment and begins where the previous run ends. While a segment grows, runs are appended; readers see a run
only when it is whole. A sealed segment's index is one run.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, NamedTuple

from librt.vecs import vec
from mypy_extensions import i64

from dragoman.crc import crc32
from dragoman.journal.disk import DiskFace, opened
from dragoman.journal.format import SEGMENT_HEADER_SIZE, index_path, pack_segment_header
from dragoman.journal.recovery.scan import SegmentFile
from dragoman.model.facts.index import ENTRY_SIZE, OFFSET_BITS, packed, unpacked

INDEX_VERSION: Final = 2
INDEX_MAGIC: Final = b"dragoidx"
HEADER_SIZE: Final = 64
RUN_MAGIC: Final = 0x58494744  # "DGIX" in the file
RUN_HEADER_SIZE: Final = 48
PAGE_ENTRIES: Final = 512
PAGE_SIZE: Final = PAGE_ENTRIES * ENTRY_SIZE
DIRECTORY_ROW_SIZE: Final = ENTRY_SIZE + 4
_LEAD = struct.Struct("<8sII")
_REST = struct.Struct("<QII16s")
_RUN_LEAD = struct.Struct("<II")
_RUN_REST = struct.Struct("<QQQQII")
assert _RUN_LEAD.size + _RUN_REST.size == RUN_HEADER_SIZE
_OFFSET_MASK: Final = (1 << OFFSET_BITS) - 1


class IndexUntrue(Exception):
    """Bytes read from an index are not what was written: the index must be ignored."""


class Covered(NamedTuple):
    """A byte range of a segment, and the numbers of the block and fact after it."""

    begin: int
    end: int
    next_block_no: int
    next_lsn: int


class Run(NamedTuple):
    """A run's position in the file, what it covers, and its directory: each page's first entry and checksum."""

    covered: Covered
    entry_count: int
    pages_at: int
    firsts: tuple[int, ...]
    crcs: tuple[int, ...]

    @property
    def end(self) -> int:
        return self.pages_at + self.entry_count * ENTRY_SIZE


@dataclass(slots=True)
class SegmentIndex:
    """An index whose header and directories match its segment. Only `find` and `entries` read pages; they raise `IndexUntrue`."""

    path: str
    runs: list[Run]

    @property
    def covered(self) -> Covered:
        return self.runs[-1].covered._replace(begin=SEGMENT_HEADER_SIZE)

    @property
    def size(self) -> int:
        return self.runs[-1].end

    def find(self, disk: DiskFace, keys: set[int]) -> set[int]:
        """Offsets of the blocks that may contain any of these keys."""
        found: set[int] = set()
        with self._opened(disk) as fd:
            for run in self.runs:
                pages: dict[int, tuple[int, ...]] = {}
                for key in keys:
                    low, high = key << OFFSET_BITS, (key + 1) << OFFSET_BITS
                    number = max(bisect_left(run.firsts, low) - 1, 0)
                    while number < len(run.firsts) and run.firsts[number] < high:
                        if number not in pages:
                            data = _page(disk, fd, run, number)
                            pages[number] = struct.unpack(f"<{len(data) // ENTRY_SIZE}Q", data)
                        page = pages[number]
                        hits = page[bisect_left(page, low) : bisect_left(page, high)]
                        found.update(entry & _OFFSET_MASK for entry in hits)
                        number += 1
        return found

    def entries(self, disk: DiskFace) -> vec[i64]:
        found = vec[i64]()
        with self._opened(disk) as fd:
            for run in self.runs:
                for number in range(len(run.firsts)):
                    found = unpacked(_page(disk, fd, run, number), found)
        return found

    @contextmanager
    def _opened(self, disk: DiskFace) -> Iterator[int]:
        try:
            with opened(disk, self.path) as fd:
                yield fd
        except OSError:
            raise IndexUntrue from None


def read_index(disk: DiskFace, file: SegmentFile) -> SegmentIndex | None:
    """The index of a segment, as far as its runs are valid; pages are not verified yet. None if there is no valid index."""
    path = index_path(file.path)
    try:
        with opened(disk, path) as fd:
            if file.header is None or disk.read(fd, HEADER_SIZE, 0) != pack_header(file):
                return None
            runs = _read_runs(disk, fd, file.size)
    except OSError:
        return None
    return SegmentIndex(path, runs) if runs else None


def pack_header(file: SegmentFile) -> bytes:
    """The only valid header of this segment's index: any other is damaged, foreign, stale, or of another version."""
    assert file.header is not None, "a segment without a header has no index"
    segment_crc = crc32(pack_segment_header(file.header))
    rest = _REST.pack(file.segment_no, segment_crc, 0, file.header.broker_id)
    crc = crc32(rest, crc32(_LEAD.pack(INDEX_MAGIC, INDEX_VERSION, 0)))
    return (_LEAD.pack(INDEX_MAGIC, INDEX_VERSION, crc) + rest).ljust(HEADER_SIZE, b"\0")


def pack_run(covered: Covered, entries: vec[i64]) -> bytes:
    """The bytes of one run. Entries come in the order of their blocks and may be repeated."""
    pages = packed(entries)
    begins = range(0, len(pages), PAGE_SIZE)
    firsts = [int.from_bytes(pages[at : at + ENTRY_SIZE], "little") for at in begins]
    crcs = [crc32(pages[at : at + PAGE_SIZE]) for at in begins]
    rest = _RUN_REST.pack(*covered, len(pages) // ENTRY_SIZE, len(begins))
    directory = struct.pack(f"<{len(firsts)}Q{len(crcs)}I", *firsts, *crcs)
    crc = crc32(directory, crc32(rest))
    return _RUN_LEAD.pack(RUN_MAGIC, crc) + rest + directory + pages


def _read_runs(disk: DiskFace, fd: int, segment_size: int) -> list[Run]:
    """The whole runs, each of which begins where the previous one ends."""
    runs: list[Run] = []
    at, begin, size = HEADER_SIZE, SEGMENT_HEADER_SIZE, disk.size(fd)
    while (run := _read_run(disk, fd, at, size)) is not None:
        if run.covered.begin != begin or not begin <= run.covered.end <= segment_size:
            break
        runs.append(run)
        at, begin = run.end, run.covered.end
    return runs


def _read_run(disk: DiskFace, fd: int, at: int, size: int) -> Run | None:
    head = disk.read(fd, RUN_HEADER_SIZE, at)
    if len(head) < RUN_HEADER_SIZE:
        return None
    magic, crc = _RUN_LEAD.unpack_from(head)
    *covered, count, pages = _RUN_REST.unpack_from(head, _RUN_LEAD.size)
    pages_at = at + RUN_HEADER_SIZE + pages * DIRECTORY_ROW_SIZE
    is_sane = magic == RUN_MAGIC and pages == -(-count // PAGE_ENTRIES) and pages_at + count * ENTRY_SIZE <= size
    if not is_sane:
        return None
    directory = disk.read(fd, pages * DIRECTORY_ROW_SIZE, at + RUN_HEADER_SIZE)
    if crc32(directory, crc32(head[_RUN_LEAD.size :])) != crc:
        return None
    firsts = struct.unpack_from(f"<{pages}Q", directory)
    crcs = struct.unpack_from(f"<{pages}I", directory, pages * ENTRY_SIZE)
    return Run(Covered(*covered), count, pages_at, firsts, crcs)


def _page(disk: DiskFace, fd: int, run: Run, number: int) -> bytes:
    count = min(PAGE_ENTRIES, run.entry_count - number * PAGE_ENTRIES)
    data = disk.read(fd, count * ENTRY_SIZE, run.pages_at + number * PAGE_SIZE)
    if len(data) != count * ENTRY_SIZE or crc32(data) != run.crcs[number]:
        raise IndexUntrue
    return data
