"""What may go and what must stay."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from dragoman.journal import retention
from dragoman.journal.journal import Journal
from dragoman.journal.segment_store import SegmentInfo
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import append_numbers, opened, read_numbers, record, replayed_numbers

DAY_NS = 24 * 3600 * 1_000_000_000


def infos(count: int, size: int = 100) -> list[SegmentInfo]:
    """Segments 1…count, ten facts each, one a day; the last one is live."""
    return [
        SegmentInfo(i, f"{i}.seg", 10 * i - 9, 10 * i, size, i < count, (i - 1) * DAY_NS, i * DAY_NS)
        for i in range(1, count + 1)
    ]


def dropped(
    segments: list[SegmentInfo], checkpoint_no: int | None, live: set[int] | None = None, **more: int
) -> list[int]:
    wanted = {"size_max": 10**9, "age_max_ns": 0, "now_ns": 0} | more
    copied_lsn = wanted.pop("copied_lsn", None)
    return retention.droppable(segments, checkpoint_no, live or set(), copied_lsn=copied_lsn, **wanted)


def test_nothing_is_deleted_while_there_is_space_and_no_age() -> None:
    assert dropped(infos(6), 5) == []


def test_over_its_size_the_oldest_go_and_no_more_than_needed() -> None:
    assert dropped(infos(6), 6, size_max=450) == [1, 2]


def test_nothing_at_or_after_the_newest_checkpoint_goes() -> None:
    assert dropped(infos(6), 3, size_max=0) == [1, 2]
    assert dropped(infos(6), None, size_max=0) == []


def test_a_segment_with_live_bodies_stays_and_the_others_go() -> None:
    assert dropped(infos(6), 6, {1, 3}, size_max=0) == [2, 4, 5]


def test_old_segments_are_deleted_by_age_even_with_space() -> None:
    assert dropped(infos(6), 6, age_max_ns=3 * DAY_NS, now_ns=6 * DAY_NS) == [1, 2]


def test_for_size_only_what_the_lake_has_goes() -> None:
    assert dropped(infos(6), 6, size_max=0, copied_lsn=25) == [1, 2]


def test_only_segments_that_are_hardly_live_are_worth_carrying() -> None:
    live_sizes = {1: 24, 2: 25, 3: 0, 5: 10, 6: 1}
    assert retention.worth_carrying(infos(6), 5, live_sizes, size_max=1000) == [1]
    assert retention.worth_carrying(infos(6), 5, live_sizes, size_max=10_000) == []


def rolled(disk: FakeDisk, segments: int, **more: int) -> Journal:
    """A journal whose segment n holds facts 2n-1 and 2n and, from the second on, begins with a checkpoint."""
    journal = opened(disk, **more)
    for number in range(1, 2 * segments, 2):
        if number > 1:
            journal.roll([record(number - 1, 50, kind=200)])
        append_numbers(journal, number, 2)
        journal.commit()
    return journal


def test_a_dropped_segment_is_gone_and_the_rest_starts_and_reads_on(disk: FakeDisk) -> None:
    journal = rolled(disk, 5, size_max=1)
    numbers = journal.droppable({2}, 0)
    assert numbers == [1, 3]
    size = journal.size()
    freed = journal.drop(numbers)
    assert journal.size() == size - freed
    assert journal.wants_upkeep(0)
    journal.upkeep(0)
    assert read_numbers(disk=disk) == [3, 4, 7, 8, 9, 10]
    journal.commit()
    disk.kill()
    journal = opened(disk)
    assert next(block.is_checkpoint for block in journal.replay())
    assert journal.next_lsn == 11
    assert read_numbers(disk=disk) == [3, 4, 7, 8, 9, 10]


def test_a_checkpoint_frees_older_segments_only_once_a_synced_block_vouches_for_it(disk: FakeDisk) -> None:
    journal = opened(disk, size_max=1)
    append_numbers(journal, 1, 1)
    journal.commit()
    journal.roll([record(1, 50, kind=200)])
    assert journal.droppable(set(), 0) == []
    journal.commit()
    assert journal.droppable(set(), 0) == []
    append_numbers(journal, 2, 1)
    assert journal.droppable(set(), 0) == []
    journal.commit()
    assert journal.droppable(set(), 0) == [1]


def test_a_quiet_journal_vouches_for_its_checkpoint_when_asked(disk: FakeDisk) -> None:
    journal = opened(disk, size_max=1)
    append_numbers(journal, 1, 1)
    journal.commit()
    journal.roll([record(1, 50, kind=200)])
    assert not journal.confirm_checkpoint(), "it is not synced yet"
    journal.commit()
    assert journal.confirm_checkpoint()
    assert not journal.confirm_checkpoint(), "once is enough"
    assert journal.droppable(set(), 0) == []
    journal.commit()
    assert not journal.confirm_checkpoint()
    assert journal.droppable(set(), 0) == [1]
    journal.drop([1])
    append_numbers(journal, 2, 2)
    journal.commit()
    disk.kill()
    assert replayed_numbers(opened(disk)) == [2, 3]


@pytest.mark.parametrize("seed", range(20))
def test_a_power_cut_while_vouching_loses_nothing_and_frees_nothing_too_early(disk: FakeDisk, seed: int) -> None:
    journal = opened(disk, size_max=1)
    append_numbers(journal, 1, 2)
    journal.commit()
    journal.roll([record(2, 50, kind=200)])
    journal.commit()
    assert journal.confirm_checkpoint()
    disk.crash(Random(seed))
    journal = opened(disk, size_max=1)
    with_checkpoint = next(iter(journal.replay())).is_checkpoint
    assert replayed_numbers(journal) == ([] if with_checkpoint else [1, 2])
    assert journal.next_lsn == 3
    assert journal.droppable(set(), 0) == ([1] if with_checkpoint else [])


def test_a_segment_that_took_over_the_end_of_another_goes_only_after_it() -> None:
    segments = infos(6)
    segments[2] = replace(segments[2], took_over=True)
    assert dropped(segments, 6, live={2}, size_max=0) == [1, 4, 5]
    assert dropped(segments, 6, size_max=0) == [1, 2, 3, 4, 5]
    assert dropped([segments[0], *segments[2:]], 6, live={1}, size_max=0) == [4, 5]


@pytest.mark.parametrize("seed", range(20))
def test_what_a_crash_tore_is_not_damage_after_retention_and_another_crash(disk: FakeDisk, seed: int) -> None:
    """Blocks that no sync had covered when the process died are written again by the next start; power loss then tears their first
    copies. Only the segment that took them over says that those count for nothing."""
    journal = opened(disk, durability="os", size_max=1)
    append_numbers(journal, 1, 2)
    journal.sync()
    append_numbers(journal, 3, 4)
    disk.kill()
    journal = opened(disk, durability="os", size_max=1)
    for _ in range(2):
        journal.roll([record(6, 50, kind=200)])
        for _ in range(2):  # the second vouches for the checkpoint
            append_numbers(journal, journal.next_lsn, 1)
            journal.sync()
    assert journal.droppable({1}, 0) == [3]
    journal.drop([3])
    disk.crash(Random(seed))
    opened(disk, durability="os")
    assert read_numbers(disk=disk)[:6] == [1, 2, 3, 4, 5, 6], f"seed {seed}"


def test_a_segment_that_uses_the_numbers_of_an_unsynced_checkpoint_says_so(disk: FakeDisk) -> None:
    """Seed 5159 of the simulator: a power loss may tear that checkpoint, and only this segment says that it counts for nothing."""
    journal = opened(disk, durability="os")
    append_numbers(journal, 1, 2)
    journal.roll([record(2, 50, kind=200)], 5000)
    append_numbers(journal, 3, 1)
    journal.sync()
    assert [info.took_over for info in journal.segments()] == [False, False]
    journal.add_checkpoint([record(2, 3000, kind=200)], True)
    disk.kill()
    journal = opened(disk, durability="os")
    assert [info.took_over for info in journal.segments()] == [False, False, True]
    append_numbers(journal, 4, 1)
    journal.close()
    disk.kill()
    assert [info.took_over for info in opened(disk, durability="os").segments()] == [False, False, True, False]
