"""Checkpoints that are written in several parts, with facts between them."""

from __future__ import annotations

import pytest

from dragoman.journal.format import Block
from dragoman.journal.journal import Journal
from dragoman.journal.settings import Durability
from dragoman.journal.tools.salvage import salvage
from dragoman.journal.tools.verify import verify
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import DIRECTORY, append_numbers, numbers_in, opened, record, replayed_numbers

REST = 1000


def chunk(number: int) -> bytes:
    return record(number, 50, kind=200)


def begun(journal: Journal) -> None:
    """Facts 1 and 2, a checkpoint of them in three parts, facts 3 and 4 between those."""
    append_numbers(journal, 1, 2)
    assert journal.roll([chunk(1)], REST)
    append_numbers(journal, 3, 1)
    assert journal.add_checkpoint([chunk(2)], False)
    append_numbers(journal, 4, 1)


def parts_of(blocks: list[Block]) -> tuple[bytes, list[int]]:
    """A checkpoint's records, and the facts behind it."""
    checkpoints = [block.is_checkpoint for block in blocks]
    assert checkpoints == sorted(checkpoints, reverse=True), "the checkpoint comes first"
    records = b"".join(block.records for block in blocks if block.is_checkpoint)
    return records, [number for block in blocks if not block.is_checkpoint for number in numbers_in(block.records)]


@pytest.mark.parametrize("durability", ["os", "disk"])
def test_a_start_reads_the_checkpoint_first_and_then_the_facts_written_between_its_parts(
    disk: FakeDisk, durability: Durability
) -> None:
    journal = opened(disk, durability)
    begun(journal)
    assert journal.add_checkpoint([chunk(3)], True)
    append_numbers(journal, 5, 1)
    journal.sync()
    append_numbers(journal, 6, 1)  # says that the checkpoint is synced
    journal.close()
    blocks = list(opened(disk, durability).replay())
    assert parts_of(blocks) == (chunk(1) + chunk(2) + chunk(3), [3, 4, 5, 6])
    assert {block.time_ns for block in blocks if block.is_checkpoint} == {1}, "the time at which it began"


def test_no_segment_ends_before_its_checkpoint_is_whole(disk: FakeDisk) -> None:
    journal = opened(disk)
    begun(journal)
    for number in range(5, 500):
        append_numbers(journal, number, 1, size=400)
    assert not journal.wants_roll()
    journal.add_checkpoint([chunk(3)], True)
    assert journal.wants_roll()


def test_one_that_was_not_finished_counts_for_nothing(disk: FakeDisk) -> None:
    journal = opened(disk)
    begun(journal)
    journal.commit()
    disk.kill()
    journal = opened(disk)
    assert not any(block.is_checkpoint for block in journal.replay())
    assert replayed_numbers(journal) == [1, 2, 3, 4]
    append_numbers(journal, 5, 1)
    journal.roll([chunk(9)])
    journal.close()
    assert parts_of(list(opened(disk).replay())) == (chunk(9), [])


def test_one_whose_end_was_never_synced_is_not_trusted_though_its_beginning_was(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    journal.roll([chunk(7)])
    append_numbers(journal, 2, 1)
    journal.commit()
    journal.confirm_checkpoint()
    append_numbers(journal, 3, 1)
    journal.roll([chunk(1)], REST)
    append_numbers(journal, 4, 1)
    journal.commit()
    append_numbers(journal, 5, 1)
    journal.commit()  # says that the beginning is synced
    journal.add_checkpoint([chunk(2)], True)
    disk.kill()
    assert parts_of(list(opened(disk).replay())) == (chunk(7), [2, 3, 4, 5])


def test_a_failed_sync_breaks_it_off_and_loses_no_fact(disk: FakeDisk) -> None:
    journal = opened(disk)
    begun(journal)
    disk.fail_syncs(1)
    journal.commit()
    assert not journal.add_checkpoint([chunk(3)], True)
    append_numbers(journal, 5, 1)
    journal.commit()
    disk.kill()
    assert replayed_numbers(opened(disk)) == [1, 2, 3, 4, 5]


def test_a_failing_write_breaks_it_off_and_loses_no_fact(disk: FakeDisk) -> None:
    journal = opened(disk)
    begun(journal)
    disk.fail_writes(1)
    assert not journal.add_checkpoint([chunk(3)], True)
    assert not journal.add_checkpoint([chunk(3)], True)
    append_numbers(journal, 5, 1)
    journal.commit()
    disk.kill()
    assert replayed_numbers(opened(disk)) == [1, 2, 3, 4, 5]


def test_what_is_written_between_its_parts_counts_towards_the_next(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 2)
    journal.roll([chunk(1)], REST)
    append_numbers(journal, 3, 1, size=4000)
    journal.add_checkpoint([chunk(2)], True)
    assert journal.wants_checkpoint(1000)
    assert not journal.wants_checkpoint(1100)


def test_verify_and_salvage_know_it(disk: FakeDisk) -> None:
    journal = opened(disk)
    begun(journal)
    journal.add_checkpoint([chunk(3)], True)
    append_numbers(journal, 5, 1)
    journal.close()
    report = verify(DIRECTORY, disk=disk)
    assert report.has_checkpoint
    assert report.is_sound
    saved = salvage(DIRECTORY, "/salvaged", disk=disk)
    assert saved.losses == []
    assert parts_of(list(opened(disk, directory="/salvaged").replay())) == (chunk(1) + chunk(2) + chunk(3), [3, 4, 5])
