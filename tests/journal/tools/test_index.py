"""Indexes beside the segments: what they cover, and that nothing that is wrong with one is ever trusted."""

from __future__ import annotations

import struct
from pathlib import Path
from random import Random

import pytest
from librt.vecs import vec
from mypy_extensions import i64

from dragoman.errors import IndexerBusy
from dragoman.journal.disk import Disk
from dragoman.journal.format import SEGMENT_HEADER_SIZE
from dragoman.journal.journal import Journal
from dragoman.journal.recovery.scan import SegmentFile, list_segments
from dragoman.journal.segment_views import SegmentView, segment_views
from dragoman.journal.tools.backup import backup, restore
from dragoman.journal.tools.index import (
    HEADER_SIZE,
    PAGE_ENTRIES,
    Covered,
    IndexUntrue,
    pack_header,
    pack_run,
    read_index,
)
from dragoman.journal.tools.indexer import Indexer, indexing_alone
from dragoman.journal.tools.salvage import salvage
from dragoman.model import enums
from dragoman.model.facts.index import number_key
from dragoman.model.facts.layout import LEASED
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import DIRECTORY, SEGMENT_SIZE, opened, record

FIRST = f"{DIRECTORY}/0000000001.idx"
STEP_SIZE = 8192


def fill(journal: Journal, first: int, blocks: int, size: int = 400) -> None:
    """Blocks of one lease each, numbered from `first`."""
    for number in range(first, first + blocks):
        if journal.wants_roll(size):
            journal.roll()
        journal.append([record(number, size, LEASED)], 1, number)


def indexed(disk: FakeDisk, blocks: int = 400) -> list[SegmentView]:
    """A journal of a few segments, all of it indexed."""
    journal = opened(disk)
    fill(journal, 1, blocks)
    journal.close()
    Indexer(DIRECTORY, disk, STEP_SIZE).work(is_last=True)
    return segment_views(DIRECTORY, disk)


def numbers_found(segments: list[SegmentView], number: int) -> list[int]:
    """The numbers in the blocks that indexes name for `number`."""
    keys = {number_key(number)}
    blocks = [block for view in segments if view.index for block in view.fetch(view.find(keys)).values()]
    return [struct.unpack_from("<Q", block.records, 5)[0] for block in blocks]


def files(disk: FakeDisk) -> list[SegmentFile]:
    return list_segments(disk, DIRECTORY)


def test_every_block_is_named_by_exactly_one_segment(disk: FakeDisk) -> None:
    segments = indexed(disk)
    assert len(segments) > 2
    assert all(view.index is not None for view in segments)
    for number in (1, 2, 163, 164, 399, 400):
        assert numbers_found(segments, number) == [number]
    assert numbers_found(segments, 401) == []
    assert [list(view.rest()) for view in segments] == [[]] * len(segments)


def test_a_sealed_segment_has_one_run_and_a_growing_one_several(disk: FakeDisk) -> None:
    journal, indexer = opened(disk), Indexer(DIRECTORY, disk, STEP_SIZE)
    runs = []
    for number in range(1, 120, 10):
        fill(journal, number, 10)
        journal.commit()
        indexer.work()
        index = read_index(disk, files(disk)[0])
        runs.append(len(index.runs) if index is not None else 0)
    assert runs == sorted(runs)
    assert runs[0] == 0, "less than a step waits"
    assert runs[-1] > 2
    fill(journal, 1000, 100)
    journal.close()
    indexer.work()
    first = read_index(disk, files(disk)[0])
    assert first is not None
    assert len(first.runs) == 1
    assert numbers_found(segment_views(DIRECTORY, disk)[:1], 115) == [115]


def test_only_what_is_synced_is_covered(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    fill(journal, 1, 10)
    Indexer(DIRECTORY, disk, 1).work(is_last=True)
    assert read_index(disk, files(disk)[0]) is None
    journal.sync()
    fill(journal, 11, 1)  # its block says how far all was synced
    Indexer(DIRECTORY, disk, 1).work(is_last=True)
    index = read_index(disk, files(disk)[0])
    assert index is not None
    assert index.covered.next_lsn == 11


def test_a_broker_knows_of_a_sync_before_its_journal_says_so(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    fill(journal, 1, 10)
    carried, log = FactLog(), FactLog()
    carried.accepted(Message(enums.EMQP, b"q", b"", b""))
    log.carried(carried.take(), 1)
    journal.append(log.take_parts(), 0, 11)  # it has no fact: synced for sure when one behind it is
    journal.sync()
    indexer = Indexer(DIRECTORY, disk, 1)
    indexer.on_synced(journal.synced_lsn)
    indexer.work(is_last=True)
    index = read_index(disk, files(disk)[0])
    assert index is not None
    assert index.covered.next_block_no == 11
    assert [block.block_no for block in segment_views(DIRECTORY, disk)[0].rest()] == [11]


def test_an_indexer_goes_on_where_the_last_one_stopped(disk: FakeDisk) -> None:
    journal = opened(disk)
    for first in range(1, 300, 30):
        fill(journal, first, 30)
        journal.commit()  # which the next block tells
        Indexer(DIRECTORY, disk, STEP_SIZE).work(is_last=True)
    segments = segment_views(DIRECTORY, disk)
    for number in range(1, 271):
        assert numbers_found(segments, number) == [number]


@pytest.mark.parametrize("seed", range(20))
def test_one_wrong_byte_is_noticed_before_anything_is_believed(disk: FakeDisk, seed: int) -> None:
    chance = Random(seed)
    indexed(disk, 150)
    disk.damage(FIRST, chance.randrange(len(disk.content(FIRST))), chance.randint(1, 255))
    view = segment_views(DIRECTORY, disk)[0]
    try:
        found = [numbers_found([view], number) for number in range(1, 151)] if view.index else None
    except IndexUntrue:
        found = None
    assert found is None, f"seed {seed}"


def test_a_torn_index_counts_as_far_as_it_is_whole(disk: FakeDisk) -> None:
    journal, indexer = opened(disk), Indexer(DIRECTORY, disk, STEP_SIZE)
    for first in (1, 31, 61, 91):
        fill(journal, first, 30)
        journal.commit()
        indexer.work(is_last=True)
    whole = read_index(disk, files(disk)[0])
    assert whole is not None
    assert len(whole.runs) == 3
    disk.lose_tail(FIRST, len(disk.content(FIRST)) - 1)
    torn = read_index(disk, files(disk)[0])
    assert torn is not None
    assert [run.covered for run in torn.runs] == [run.covered for run in whole.runs[:2]]
    Indexer(DIRECTORY, disk, STEP_SIZE).work(is_last=True)
    again = read_index(disk, files(disk)[0])
    assert again is not None
    assert again.covered.end == whole.covered.end


def test_an_index_of_another_broker_or_of_an_earlier_segment_of_that_number_is_ignored(disk: FakeDisk) -> None:
    indexed(disk, 100)
    other = files(disk)[0]
    assert other.header is not None
    run = pack_run(Covered(SEGMENT_HEADER_SIZE, 4096, 5, 5), vec[i64]([1]))
    for strange in (
        other._replace(header=other.header._replace(broker_id=bytes(16))),
        other._replace(header=other.header._replace(created_ns=7)),
        other._replace(segment_no=2),
    ):
        disk.put(FIRST, pack_header(strange) + run)
        assert read_index(disk, other) is None
    disk.put(FIRST, pack_header(other) + run)
    assert read_index(disk, other) is not None


def test_an_index_of_a_later_version_is_ignored_and_made_again(disk: FakeDisk) -> None:
    indexed(disk, 100)
    disk.damage(FIRST, 8, 1)  # version 3
    assert read_index(disk, files(disk)[0]) is None
    Indexer(DIRECTORY, disk).work(is_last=True)
    assert read_index(disk, files(disk)[0]) is not None


def test_an_index_that_covers_more_than_its_segment_has_is_stale(disk: FakeDisk) -> None:
    indexed(disk, 100)
    file = files(disk)[0]
    disk.put(FIRST, pack_header(file) + pack_run(Covered(SEGMENT_HEADER_SIZE, file.size + 1, 5, 5), vec[i64]([1])))
    assert read_index(disk, file) is None


def test_a_damaged_index_is_made_again_by_the_next_indexer(disk: FakeDisk) -> None:
    indexed(disk, 100)
    disk.damage(FIRST, len(disk.content(FIRST)) - 1)
    Indexer(DIRECTORY, disk, STEP_SIZE).work(is_last=True)
    assert numbers_found(segment_views(DIRECTORY, disk), 100) == [100]


def test_a_run_that_could_not_be_written_is_written_at_the_next_attempt(disk: FakeDisk) -> None:
    journal = opened(disk)
    fill(journal, 1, 400)
    journal.close()
    indexer = Indexer(DIRECTORY, disk, STEP_SIZE)
    disk.fail_writes(1)
    with pytest.raises(OSError, match="Errno 5"):
        indexer.work(is_last=True)
    indexer.work(is_last=True)
    segments = segment_views(DIRECTORY, disk)
    assert all(view.index is not None for view in segments)
    assert [numbers_found(segments, number) for number in (1, 400)] == [[1], [400]]


def test_a_dropped_segment_takes_its_index_along_and_orphans_go(disk: FakeDisk) -> None:
    indexed(disk)
    journal = opened(disk)
    journal.drop([1])
    journal.upkeep(0)
    assert "0000000001.idx" not in disk.list_names(DIRECTORY)
    disk.put(f"{DIRECTORY}/0000000001.idx", b"left by somebody")
    disk.put(f"{DIRECTORY}/0000000002.idx.tmp", b"left by a killed indexer")
    disk.put(f"{DIRECTORY}/notes.idx", b"not ours")
    Indexer(DIRECTORY, disk).work()
    names = disk.list_names(DIRECTORY)
    assert [name for name in names if name in ("0000000001.idx", "0000000002.idx.tmp", "notes.idx")] == ["notes.idx"]


def test_indexes_are_deleted_for_the_journal_and_come_back_when_there_is_space(disk: FakeDisk) -> None:
    def index_names() -> list[str]:
        return [name for name in disk.list_names(DIRECTORY) if name.endswith(".idx")]

    journal = opened(disk)
    indexer = Indexer(DIRECTORY, disk, STEP_SIZE)
    fill(journal, 1, 400)
    indexer.on_synced(journal.commit())
    indexer.work()
    assert index_names()
    disk.capacity = disk.used()
    journal.roll()  # its spare becomes the segment, and for another there is no room but the indexes'
    assert index_names() == []
    indexer.work()
    assert index_names() == [], "the journal's room goes first"
    disk.capacity = None
    fill(journal, 401, 100)
    indexer.on_synced(journal.commit())
    indexer.work(is_last=True)
    segments = segment_views(DIRECTORY, disk)
    assert index_names()
    assert numbers_found(segments, 7) == [7]
    assert numbers_found(segments, 450) == [450]


def test_indexes_do_not_disturb_a_start_a_backup_a_restore_or_a_salvage(tmp_path: Path) -> None:
    data, copy, again, saved = (str(tmp_path / name) for name in ("data", "copy", "again", "saved"))
    journal = opened(Disk(), "os", f"{data}/journal")
    fill(journal, 1, 300)
    journal.close()
    Indexer(f"{data}/journal").work(is_last=True)
    assert all(view.index is not None for view in segment_views(f"{data}/journal"))
    backup(data, copy)
    restore(copy, again)
    salvage(f"{data}/journal", saved)
    for directory in (f"{copy}/journal", f"{again}/journal", saved):
        assert {Path(name).suffix for name in Disk().list_names(directory)} == {".seg", ".0"}, (
            "segments and a superblock"
        )
    journal = opened(Disk(), "os", f"{data}/journal")
    assert journal.next_lsn == 301
    journal.close()


def test_a_page_more_or_less_full_finds_the_same(disk: FakeDisk) -> None:
    """Many entries of one key reach over pages."""
    indexed(disk, 50)
    file = files(disk)[0]
    for count in (1, PAGE_ENTRIES - 1, PAGE_ENTRIES, PAGE_ENTRIES + 1, 3 * PAGE_ENTRIES):
        entries = vec[i64]([7 << 32 | offset for offset in range(count)] + [6 << 32, 8 << 32])
        disk.put(FIRST, pack_header(file) + pack_run(Covered(SEGMENT_HEADER_SIZE, SEGMENT_SIZE // 8, 5, 5), entries))
        index = read_index(disk, file)
        assert index is not None
        assert index.find(disk, {7}) == set(range(count))
        assert index.find(disk, {6, 8}) == {0}
        assert index.find(disk, {5, 9}) == set()


def test_a_header_has_its_place(disk: FakeDisk) -> None:
    """docs/reference/journal.md draws it."""
    indexed(disk, 50)
    data = disk.content(FIRST)
    assert data[:8] == b"dragoidx"
    assert struct.unpack_from("<I", data, 8) == (2,)
    assert struct.unpack_from("<Q", data, 16) == (1,)
    assert data[32:48] == bytes(range(16))
    assert data[HEADER_SIZE : HEADER_SIZE + 4] == b"DGIX"
    assert struct.unpack_from("<Q", data, HEADER_SIZE + 8) == (SEGMENT_HEADER_SIZE,)


def test_two_indexers_never_work_on_one_journal(tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = str(tmp_path_factory.mktemp("data") / "journal")
    with (
        indexing_alone(directory),
        pytest.raises(IndexerBusy, match="is being indexed already"),
        indexing_alone(directory),
    ):
        pass
