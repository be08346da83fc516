"""A disk that is full or fails: new work refused, settled work kept, nothing told that is not kept, back by itself."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from dragoman.errors import JournalFailing, JournalFull
from dragoman.journal.disk import Disk
from dragoman.journal.format import BLOCK_HEADER_SIZE
from dragoman.journal.journal import Journal
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import DIRECTORY, SEGMENT_SIZE, append_numbers, opened, record, replayed_numbers

BLOCK = 4000


def until_full(journal: Journal) -> int:
    """Append new work until it is refused; how many facts were taken."""
    taken = 0
    while True:
        try:
            if journal.wants_roll():
                journal.roll()
            append_numbers(journal, taken + 1, 1, size=BLOCK)
        except JournalFull:
            return taken
        taken += 1
        assert taken < 10_000, "the disk never filled up"


def test_new_work_is_refused_when_no_spare_segment_can_be_had(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    assert journal.accepts_new_work
    until_full(journal)
    assert not journal.accepts_new_work
    trouble = journal.trouble
    assert isinstance(trouble, JournalFull)
    assert trouble.code == "JOURNAL_FULL"
    assert DIRECTORY in str(trouble)


def test_a_refused_block_leaves_no_trace(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    assert journal.next_lsn == taken + 1
    journal.commit()
    disk.kill()
    disk.capacity = None
    assert replayed_numbers(opened(disk)) == list(range(1, taken + 1))


def test_a_full_disk_still_takes_facts_that_settle_work(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    settled = SEGMENT_SIZE // 2 // 200
    for i in range(settled):
        append_numbers(journal, taken + 1 + i, 1, size=100, settling=True)
    assert journal.commit() == taken + settled
    journal.upkeep(10**10)
    disk.crash(Random(1))
    assert len(replayed_numbers(opened(disk))) == taken + settled


def test_a_few_kilobytes_are_enough_for_the_checkpoint_that_lets_settled_segments_go(disk: FakeDisk) -> None:
    """Seed 952 of the simulator: nothing was open any more, and the disk stayed full of history."""
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    with pytest.raises(JournalFull):
        while True:
            append_numbers(journal, taken + 1, 1, size=BLOCK, settling=True)
            taken += 1
    journal.commit()
    disk.capacity = disk.used() + 4096
    assert journal.roll([record(taken, 50, kind=200)])
    journal.sync()
    journal.confirm_checkpoint()
    journal.sync()
    assert len(journal.droppable((), 0, None, 0)) > 0


def test_the_last_space_is_used_to_the_end_and_then_even_settling_waits(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    with pytest.raises(JournalFull):
        while True:
            append_numbers(journal, taken + 1, 1, size=BLOCK, settling=True)
            taken += 1
    assert journal.commit() == taken


def test_new_work_is_taken_again_at_the_next_append_when_space_is_back(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    disk.capacity = 6 * SEGMENT_SIZE
    append_numbers(journal, taken + 1, 1)
    assert journal.accepts_new_work
    assert journal.commit() == taken + 1


def test_upkeep_alone_notices_that_space_is_back(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    until_full(journal)
    disk.capacity = None
    assert journal.wants_upkeep(10**10)
    journal.upkeep(10**10)
    assert journal.accepts_new_work


def test_a_broker_restarts_on_a_full_disk_and_settles_there(disk: FakeDisk) -> None:
    disk.capacity = 3 * SEGMENT_SIZE
    journal = opened(disk)
    taken = until_full(journal)
    journal.commit()
    disk.kill()
    journal = opened(disk)
    append_numbers(journal, taken + 1, 1, settling=True)
    assert journal.commit() == taken + 1


def test_a_checkpoint_without_space_is_left_out_and_nothing_else_suffers(disk: FakeDisk) -> None:
    disk.capacity = 4 * SEGMENT_SIZE
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    journal.roll([record(1, 3 * SEGMENT_SIZE, kind=200)])
    append_numbers(journal, 2, 1)
    journal.commit()
    journal.close()
    journal = opened(disk)
    assert replayed_numbers(journal) == [1, 2]


def test_after_a_failed_sync_the_blocks_move_to_a_new_segment_before_the_commit_returns(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 2)
    journal.commit()
    position = append_numbers(journal, 3, 2)
    disk.fail_syncs(1)
    assert journal.commit() == 4
    assert [info.segment_no for info in journal.segments()] == [1, 2]
    assert journal.accepts_new_work
    assert journal.read_record(position + 40) == record(4)
    disk.crash(Random(3))
    assert replayed_numbers(opened(disk)) == [1, 2, 3, 4]


def test_a_sync_is_never_tried_twice_on_one_file(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    disk.fail_syncs(1)
    journal.commit()
    syncs = disk.syncs
    journal.commit()
    assert disk.syncs == syncs, "all was synced with the new segment"


def test_while_every_sync_fails_nothing_is_committed_and_the_blocks_are_kept_for_later(disk: FakeDisk) -> None:
    journal = opened(disk)
    position = append_numbers(journal, 1, 1)
    disk.fail_syncs(100)
    for _ in range(3):
        with pytest.raises(JournalFailing):
            journal.commit()
    assert journal.synced_lsn == 0
    assert not journal.accepts_new_work
    assert isinstance(journal.trouble, JournalFailing)
    later = append_numbers(journal, 2, 1)
    assert journal.read_record(position) == record(1)
    assert journal.read_record(later) == record(2)
    disk.fail_syncs(0)
    journal.upkeep(0)
    assert journal.synced_lsn == 2
    assert journal.accepts_new_work
    assert journal.read_record(position) == record(1)
    assert journal.read_record(later) == record(2)
    disk.crash(Random(5))
    assert replayed_numbers(opened(disk)) == [1, 2]


def test_a_place_promised_before_a_failed_sync_is_true_after_it(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    promised = journal.next_position()
    disk.fail_syncs(1)
    journal.commit()
    journal.append([record(2)], 1, 0, position=promised)
    assert journal.read_record(promised) == record(2)
    assert journal.position_now(promised) != promised
    journal.close()
    assert opened(disk).read_record(promised) == record(2)


def test_a_record_whose_place_an_earlier_failure_moved_is_read_while_the_disk_fails_again(disk: FakeDisk) -> None:
    """The second block is in memory only: its segment was suspect when it was appended."""
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    first = journal.next_position()
    second = first + len(record(2)) + BLOCK_HEADER_SIZE
    disk.fail_syncs(1)
    journal.commit()
    journal.append([record(2)], 1, 0, position=first)
    disk.fail_syncs(100)
    with pytest.raises(JournalFailing):
        journal.commit()
    journal.append([record(3)], 1, 0, position=second)
    assert journal.read_record(first) == record(2)
    assert journal.read_record(second) == record(3)
    disk.fail_syncs(0)
    journal.upkeep(0)
    assert journal.read_record(second) == record(3)
    journal.close()
    assert opened(disk).read_record(second) == record(3)


def test_a_record_is_not_taken_for_one_announced_where_it_moved_to(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    before = journal.next_position()
    disk.fail_syncs(1)
    journal.commit()
    after = journal.next_position()
    journal.append([record(2)], 1, 0, position=before)
    journal.append([record(3)], 1, 0, position=after)
    assert journal.position_now(before) == after
    disk.fail_syncs(100)
    with pytest.raises(JournalFailing):
        journal.commit()
    assert journal.read_record(before) == record(2)
    assert journal.read_record(after) == record(3)


def test_a_failing_write_in_os_is_answered_by_a_new_segment_at_once(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    append_numbers(journal, 1, 1)
    disk.fail_writes(1)
    position = append_numbers(journal, 2, 1)
    assert journal.accepts_new_work
    assert journal.read_record(position) == record(2)
    disk.kill()
    assert replayed_numbers(opened(disk, "os")) == [1, 2]


def test_a_write_that_keeps_failing_in_os_takes_nothing(disk: FakeDisk) -> None:
    journal = opened(disk, "os")
    append_numbers(journal, 1, 1)
    disk.fail_writes(100)
    with pytest.raises(JournalFailing):
        append_numbers(journal, 2, 1)
    assert journal.next_lsn == 2
    disk.fail_writes(0)
    append_numbers(journal, 2, 1)
    disk.kill()
    assert replayed_numbers(opened(disk, "os")) == [1, 2]


def test_waiting_bodies_keep_the_segment_they_moved_to(disk: FakeDisk) -> None:
    journal = opened(disk, size_max=1)
    append_numbers(journal, 1, 1)
    journal.commit()
    position = append_numbers(journal, 2, 1)
    disk.fail_syncs(1)
    journal.commit()
    for number in range(3, 6):
        journal.roll([record(number, 50, kind=200)])
        append_numbers(journal, number, 1)
        journal.commit()
    promised_segment, actual_segment = position >> 32, journal.position_now(position) >> 32
    assert promised_segment != actual_segment
    assert actual_segment in journal.droppable(set(), 0)
    assert actual_segment not in journal.droppable({promised_segment}, 0)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A real file system of 1 MiB."""
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount a small file system: {mounted.stderr.strip()}")
    yield tmp_path
    subprocess.run(["umount", str(tmp_path)], check=True)


def test_a_real_disk_that_runs_full_refuses_settles_and_recovers(small_disk: Path) -> None:
    ballast = small_disk / "ballast"
    ballast.write_bytes(bytes(500_000))
    directory = str(small_disk / "journal")
    journal = opened(Disk(), "disk", directory)
    taken = until_full(journal)
    append_numbers(journal, taken + 1, 1, settling=True)
    assert journal.commit() == taken + 1
    ballast.unlink()
    append_numbers(journal, taken + 2, 1)
    assert journal.commit() == taken + 2
    journal.close()
    journal = opened(Disk(), "disk", directory)
    assert replayed_numbers(journal) == list(range(1, taken + 3))
    journal.close()
