"""A reader that comes back again and again reads on behind what it has, without walking the segment from its start."""

from __future__ import annotations

from collections.abc import Sequence

from dragoman.journal.disk import DiskFace
from dragoman.journal.format import Block
from dragoman.journal.reader import JournalReader
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import BROKER_ID, DIRECTORY, append_numbers, numbers_in, opened


class CountingDisk:
    """Counts the bytes that were read from each file."""

    def __init__(self, disk: FakeDisk) -> None:
        self._disk = disk
        self.offsets: list[int] = []

    def read(self, fd: int, size: int, offset: int) -> bytes:
        self.offsets.append(offset)
        return self._disk.read(fd, size, offset)

    def __getattr__(self, name: str) -> object:
        return getattr(self._disk, name)


def read_on(reader: JournalReader, behind: Block | None) -> list[Block]:
    return list(reader.read(behind.last_lsn + 1 if behind else 1, behind))


def numbers(blocks: Sequence[Block]) -> list[int]:
    return [number for block in blocks for number in numbers_in(block.records)]


def test_reading_on_gives_what_came_since_and_nothing_twice(disk: FakeDisk) -> None:
    journal, reader = opened(disk), JournalReader(DIRECTORY, disk)
    behind, got, next_no = None, [], 1
    for turn in range(40):
        for _ in range(turn % 4):
            if journal.wants_roll():
                journal.roll([b"\x32\0\0\0\xc8" + bytes(45)] if turn % 8 == 0 else None)
            append_numbers(journal, next_no, 5, size=1500)
            next_no += 5
        journal.sync()
        blocks = read_on(reader, behind)
        got += numbers(blocks)
        behind = blocks[-1] if blocks else behind
    assert got == list(range(1, next_no))
    assert len(reader.segments()) > 3


def test_what_stands_before_is_not_read_again(disk: FakeDisk) -> None:
    journal = opened(disk)
    for first in range(1, 100, 5):
        append_numbers(journal, first, 5)
    journal.sync()
    counting = CountingDisk(disk)
    face: DiskFace = counting  # type: ignore[assignment]
    reader = JournalReader(DIRECTORY, face)
    behind = read_on(reader, None)[-1]
    append_numbers(journal, 101, 5)
    counting.offsets.clear()
    assert numbers(read_on(reader, behind)) == list(range(101, 106))
    assert min(offset for offset in counting.offsets if offset) >= behind.position & 0xFFFFFFFF


def test_a_segment_that_took_over_after_a_failed_sync_is_followed(disk: FakeDisk) -> None:
    journal, reader = opened(disk), JournalReader(DIRECTORY, disk)
    append_numbers(journal, 1, 5)
    journal.sync()
    [behind] = read_on(reader, None)
    append_numbers(journal, 6, 5)
    disk.fail_syncs(1)
    journal.sync()  # fails, and moves the second block into a new segment
    append_numbers(journal, 11, 5)
    journal.sync()
    assert numbers(read_on(reader, behind)) == list(range(6, 16))


def test_a_segment_trimmed_meanwhile_is_no_obstacle(disk: FakeDisk) -> None:
    journal, reader = opened(disk), JournalReader(DIRECTORY, disk)
    append_numbers(journal, 1, 5)
    journal.sync()
    [behind] = read_on(reader, None)
    journal.roll([b"\x32\0\0\0\xc8" + bytes(45)])
    append_numbers(journal, 6, 5)
    journal.sync()
    append_numbers(journal, 11, 1)
    journal.sync()
    journal.drop([1])
    assert numbers(read_on(reader, behind)) == list(range(6, 12))


def test_it_knows_whose_journal_it_is_and_what_is_safe(disk: FakeDisk) -> None:
    reader = JournalReader(DIRECTORY, disk)
    journal = opened(disk)
    append_numbers(journal, 1, 5)
    journal.sync()
    assert reader.synced_lsn() == 0  # nothing written since says so
    append_numbers(journal, 6, 5)
    assert reader.synced_lsn() == 5
    assert reader.broker_id() == BROKER_ID
    journal.close()
    assert reader.synced_lsn() == 10
