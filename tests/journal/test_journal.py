"""The journal in good weather: blocks in, blocks out, places, rolls, checkpoints, the three durabilities."""

from __future__ import annotations

from pathlib import Path

import pytest

from dragoman.errors import JournalDamaged, JournalMisplaced, JournalTooNew
from dragoman.journal.disk import Disk
from dragoman.journal.format import BLOCK_HEADER_SIZE, FORMAT_VERSION
from dragoman.journal.journal import Journal
from dragoman.journal.settings import Durability
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import (
    BROKER_ID,
    DIRECTORY,
    SEGMENT_SIZE,
    append_numbers,
    numbers_in,
    opened,
    read_numbers,
    record,
    replayed_numbers,
    settings,
)


def fill_segment(journal: Journal, first: int) -> int:
    """Append until the journal wants to roll; the next free number."""
    while not journal.wants_roll():
        append_numbers(journal, first, 10, size=400)
        first += 10
    return first


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_what_is_appended_is_replayed_after_a_restart(tmp_path: Path, durability: Durability) -> None:
    directory = str(tmp_path / "journal")
    journal = opened(Disk(), durability, directory)
    for first in range(1, 1000, 5):
        append_numbers(journal, first, 5)
        journal.commit()
    journal.close()
    journal = opened(Disk(), durability, directory)
    assert replayed_numbers(journal) == list(range(1, 1001))
    assert journal.next_lsn == 1001
    journal.close()


def test_a_block_keeps_its_lsn_its_time_and_its_count(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 3)
    journal.append([record(4)], 1, 777)
    disk.kill()
    blocks = list(opened(disk).replay())
    assert [(block.first_lsn, block.count, block.time_ns) for block in blocks] == [(1, 3, 1), (4, 1, 777)]


def test_append_and_commit_name_the_last_lsn(disk: FakeDisk) -> None:
    journal = opened(disk)
    assert journal.append([record(1) + record(2)], 2, 0) == 2
    assert journal.synced_lsn == 0
    assert journal.commit() == 2
    assert journal.synced_lsn == 2


def test_a_place_given_before_the_append_reads_the_record_for_ever(disk: FakeDisk) -> None:
    journal = opened(disk)
    positions = {}
    for number in range(1, 400, 4):
        if journal.wants_roll():
            journal.roll()
        position = append_numbers(journal, number, 4, size=700)
        positions |= {number + i: position + 700 * i for i in range(4)}
    assert len(journal.segments()) > 3
    for _ in range(2):
        assert all(journal.read_record(position) == record(number, 700) for number, position in positions.items())
        journal.close()
        journal = opened(disk)


def test_replay_tells_the_place_of_every_block(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 3)
    append_numbers(journal, 4, 1, size=5000)
    disk.kill()
    journal = opened(disk)
    for block in journal.replay():
        size = int.from_bytes(block.records[:4], "little")
        assert journal.read_record(block.position) == block.records[:size]


def test_a_record_larger_than_one_read_comes_whole(disk: FakeDisk) -> None:
    journal = opened(disk)
    position = append_numbers(journal, 1, 2, size=30_000)
    assert journal.read_record(position + 30_000) == record(2, 30_000)


def test_a_place_reckoned_ahead_of_a_handed_over_block_is_the_true_one(disk: FakeDisk) -> None:
    journal = opened(disk)
    first = journal.next_position()
    second = first + len(record(1)) + BLOCK_HEADER_SIZE
    journal.append([record(1)], 1, 0, position=first)
    journal.append([record(2)], 1, 0, position=second)
    assert journal.read_record(second) == record(2)


def test_a_block_larger_than_a_segment_is_taken(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1, size=3 * SEGMENT_SIZE)
    journal.commit()
    assert journal.wants_roll()
    disk.kill()
    assert replayed_numbers(opened(disk)) == [1]


def test_a_full_segment_asks_to_be_rolled_and_a_sealed_one_has_no_unused_space(disk: FakeDisk) -> None:
    journal = opened(disk)
    fill_segment(journal, 1)
    journal.roll()
    assert not journal.wants_roll()
    journal.commit()
    sealed, live = journal.segments()
    assert sealed.sealed
    assert not live.sealed
    assert len(disk.content(sealed.path)) == sealed.size


def test_replay_starts_at_the_newest_complete_checkpoint(disk: FakeDisk) -> None:
    journal = opened(disk)
    first = fill_segment(journal, 1)
    journal.roll([record(first - 1, 50, kind=200), record(0, 60, kind=200)])
    append_numbers(journal, first, 2)
    journal.commit()
    journal.close()
    checkpoint, facts = opened(disk).replay()
    assert checkpoint.is_checkpoint
    assert checkpoint.count == 0
    assert checkpoint.records == record(first - 1, 50, kind=200) + record(0, 60, kind=200)
    assert numbers_in(facts.records) == [first, first + 1]
    assert facts.first_lsn == first


def test_a_checkpoint_larger_than_a_segment_is_written_in_blocks_and_read_whole(disk: FakeDisk) -> None:
    journal = opened(disk)
    chunks = [record(i, 100_000, kind=200) for i in range(30)]
    append_numbers(journal, 1, 1)
    journal.roll(chunks)
    journal.close()
    blocks = list(opened(disk).replay())
    assert len(blocks) > 1
    assert b"".join(block.records for block in blocks) == b"".join(chunks)


def test_an_empty_checkpoint_says_that_nothing_is_open(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    journal.roll([])
    journal.close()
    assert [block.records for block in opened(disk).replay()] == [b""]


def test_an_incomplete_checkpoint_counts_for_nothing(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 3)
    journal.roll([record(i, 700_000, kind=200) for i in range(4)])
    live = journal.segments()[-1]
    disk.kill()
    disk.lose_tail(live.path, live.size - 1)
    journal = opened(disk)
    assert replayed_numbers(journal) == [1, 2, 3]
    assert not any(block.is_checkpoint for block in journal.replay())


def test_a_checkpoint_is_wanted_at_first_and_then_only_when_enough_was_written(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    assert journal.wants_checkpoint(10**9)
    journal.roll([record(1, 100, kind=200)])
    append_numbers(journal, 2, 1, size=4000)
    assert not journal.wants_checkpoint(1100)
    assert journal.wants_checkpoint(1000)


def test_memory_writes_nothing_and_counts_on(tmp_path: Path) -> None:
    journal = opened(Disk(), "memory", str(tmp_path / "journal"))
    position = journal.next_position()
    journal.append([record(1) + record(2)], 2, 0)
    assert journal.commit() == 2
    assert journal.next_lsn == 3
    assert not journal.wants_roll()
    assert not journal.wants_upkeep(10**18)
    assert journal.accepts_new_work
    with pytest.raises(AssertionError, match="memory"):
        journal.read_record(position)
    journal.close()
    assert list(tmp_path.iterdir()) == []


def test_memory_refuses_a_directory_that_holds_kept_facts(disk: FakeDisk) -> None:
    opened(disk).close()
    with pytest.raises(JournalMisplaced, match="memory"):
        opened(disk, "memory")


def test_os_asks_for_a_sync_every_second(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    append_numbers(journal, 1, 1)
    journal.commit()
    assert journal.synced_lsn == 0
    assert not journal.wants_upkeep(500_000_000)
    assert journal.wants_upkeep(1_000_000_000)
    journal.upkeep(1_000_000_000)
    assert journal.synced_lsn == 1
    assert not journal.wants_upkeep(9_000_000_000)


def test_the_broker_id_is_made_once_and_kept(disk: FakeDisk) -> None:
    opened(disk).close()
    assert Journal.open(opened(disk).settings, disk, new_broker_id=bytes(16)).broker_id == BROKER_ID


def test_a_segment_of_another_broker_is_refused(disk: FakeDisk) -> None:
    journal, stranger = opened(disk), FakeDisk()
    Journal.open(journal.settings, stranger, new_broker_id=bytes(16)).close()
    opened(stranger).close()
    journal.close()
    second = f"{DIRECTORY}/0000000002.seg"
    disk.put(second, stranger.content(second))
    with pytest.raises(JournalMisplaced, match="2 brokers"):
        opened(disk)


def test_a_segment_under_another_number_is_refused_not_deleted(disk: FakeDisk) -> None:
    opened(disk).close()
    disk.put(f"{DIRECTORY}/0000000009.seg", disk.content(f"{DIRECTORY}/0000000001.seg"))
    with pytest.raises(JournalMisplaced, match="segment 1"):
        opened(disk)
    assert disk.exists(f"{DIRECTORY}/0000000009.seg")


def test_a_newer_format_is_refused_with_both_versions_named(disk: FakeDisk) -> None:
    opened(disk).close()
    path = f"{DIRECTORY}/0000000001.seg"
    content = disk.content(path)
    disk.put(path, content[:8] + (FORMAT_VERSION + 1).to_bytes(4, "little") + b"crc+" + content[16:])
    with pytest.raises(JournalTooNew) as caught:
        opened(disk)
    assert (caught.value.version, caught.value.version_known) == (FORMAT_VERSION + 1, FORMAT_VERSION)
    assert f"version {FORMAT_VERSION + 1}" in str(caught.value)
    assert f"up to {FORMAT_VERSION}" in str(caught.value)


def test_a_damaged_version_is_damage_and_no_newer_format(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    journal.close()
    disk.damage(f"{DIRECTORY}/0000000001.seg", 9)
    with pytest.raises(JournalDamaged, match="header is damaged"):
        opened(disk)


def test_reading_begins_at_the_block_that_holds_the_lsn(disk: FakeDisk) -> None:
    journal = opened(disk)
    first = 1
    for _ in range(3):
        first = fill_segment(journal, first)
        journal.roll()
    append_numbers(journal, first, 5)
    for from_lsn in (1, 2, 15, 200, first - 1, first + 4):
        found = [number for block in journal.read(from_lsn) for number in numbers_in(block.records)]
        assert found[-1] == first + 4
        assert found[0] <= from_lsn < found[0] + 10
        assert found == list(range(found[0], first + 5))
    assert list(journal.read(first + 5)) == []


def test_another_process_reads_what_is_written_so_far(tmp_path: Path) -> None:
    directory = str(tmp_path / "journal")
    journal = opened(Disk(), "os", directory)
    for first in range(1, 600, 3):
        if journal.wants_roll():
            journal.roll([record(0, 300, kind=200)])
        append_numbers(journal, first, 3, size=500)
        if first % 60 == 1:
            assert read_numbers(directory) == list(range(1, first + 3))
    journal.close()
    assert read_numbers(directory, from_lsn=300)[-1] == 600


def test_carried_records_are_storage_and_move_no_lsn(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    position = journal.next_position()
    journal.append([record(1, 60, kind=201)], 0, 5)
    append_numbers(journal, 2, 1)
    assert journal.next_lsn == 3
    assert journal.read_record(position) == record(1, 60, kind=201)
    assert read_numbers(disk=disk) == [1, 2]
    journal.close()
    assert [block.count for block in opened(disk).replay()] == [1, 0, 1]


def test_a_clock_set_back_does_not_stop_the_syncs_of_os(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    journal.upkeep(10**18)
    append_numbers(journal, 1, 1)
    assert not journal.wants_upkeep(10**18)
    assert journal.wants_upkeep(10**17)


def test_a_block_of_very_many_parts_is_written_whole(tmp_path: Path) -> None:
    """The system takes only so many parts in one call."""
    journal = Journal.open(settings("os", str(tmp_path)), new_broker_id=BROKER_ID)
    parts = [record(number) for number in range(3000)]
    journal.append(parts, len(parts), 1)
    journal.close()
    assert read_numbers(str(tmp_path)) == list(range(3000))
