"""Any crash at any instant: what was committed is there, what is there is a prefix of what was appended."""

from __future__ import annotations

from random import Random

import pytest

from dragoman.errors import JournalUnavailable
from dragoman.journal.journal import Journal
from dragoman.journal.settings import Durability
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import DIRECTORY, append_numbers, numbers_in, opened, record


class Story:
    """A broker's life on a bad disk, driven by one seed. Fact n carries the number n, so lists tell all."""

    def __init__(self, seed: int, durability: Durability) -> None:
        self.rng, self.durability = Random(seed), durability
        self.disk = FakeDisk()
        self.appended = 0
        self.kept = 0
        self.state = 0
        self.positions: dict[int, int] = {}
        self.journal = opened(self.disk, durability)

    def tick(self) -> None:
        if self.journal.wants_roll():
            # The checkpoint says how many facts it stands for.
            self.journal.roll([record(self.appended, 200, kind=200)] if self.rng.random() < 0.5 else None)
        if self.rng.random() < 0.03:
            self.disk.fail_syncs(self.rng.randint(1, 3))
        if self.rng.random() < 0.02:
            self.disk.fail_writes(self.rng.randint(1, 2))
        count, size = self.rng.randint(0, 4), self.rng.choice([40, 300, 9000])
        position = append_numbers(self.journal, self.appended + 1, count, size)
        for i in range(count):
            self.positions[self.appended + 1 + i] = position + i * size
        self.appended += count
        if self.durability == "disk" and self.rng.random() < 0.7:
            self.kept = max(self.kept, self.journal.commit())
        if self.rng.random() < 0.1:
            self.journal.upkeep(0)

    def live(self) -> None:
        for _ in range(self.rng.randint(0, 40)):
            try:
                self.tick()
            except JournalUnavailable:
                continue
            number = self.rng.randint(1, max(1, self.appended))
            if number in self.positions:
                assert numbers_in(self.journal.read_record(self.positions[number])) == [number]

    def die(self) -> None:
        if self.rng.random() < 0.5:
            self.kept = self.journal.synced_lsn
            self.disk.crash(self.rng)
        elif self.rng.random() < 0.2:
            try:
                self.journal.close()
                self.kept = self.appended
            except JournalUnavailable:
                self.disk.kill()
        else:
            self.disk.kill()
            self.kept = self.appended if self.durability == "os" else self.kept
        self.disk.fail_syncs(0)
        self.disk.fail_writes(0)

    def rise(self) -> None:
        self.journal = opened(self.disk, self.durability)
        found, self.positions = replay_with_positions(self.journal)
        assert len(found) >= self.kept, f"fact {len(found) + 1} was committed and is lost"
        assert found == list(range(1, len(found) + 1))
        assert self.journal.next_lsn == len(found) + 1
        self.appended = self.kept = len(found)


def replay_with_positions(journal: Journal) -> tuple[list[int], dict[int, int]]:
    found: list[int] = []
    positions: dict[int, int] = {}
    for block in journal.replay():
        if block.is_checkpoint:
            assert not found, "a checkpoint comes first"
            found = list(range(1, int.from_bytes(block.records[5:13], "little") + 1))
            continue
        numbers, size = numbers_in(block.records), int.from_bytes(block.records[:4], "little")
        positions |= {number: block.position + i * size for i, number in enumerate(numbers)}
        found += numbers
    return found, positions


@pytest.mark.parametrize("durability", ["os", "disk"])
@pytest.mark.parametrize(
    "seeds",
    [range(10), *(pytest.param(range(i, i + 50), marks=pytest.mark.long) for i in range(10, 210, 50))],
    ids=str,
)
def test_what_was_committed_survives_every_crash(durability: Durability, seeds: range) -> None:
    for seed in seeds:
        story = Story(seed, durability)
        try:
            for _ in range(6):
                story.live()
                story.die()
                story.rise()
        except Exception as error:
            raise AssertionError(f"seed {seed}, durability {durability}") from error


def test_the_same_seed_gives_the_same_disk() -> None:
    ends = []
    for _ in range(2):
        story = Story(7, "disk")
        for _ in range(3):
            story.live()
            story.die()
            story.rise()
        ends.append({name: story.disk.content(f"{DIRECTORY}/{name}") for name in story.disk.list_names(DIRECTORY)})
    assert ends[0] == ends[1]


def test_a_tail_cut_at_any_byte_loses_only_whole_blocks_of_the_tail() -> None:
    whole = FakeDisk()
    journal = opened(whole)
    ends = []
    for first in (1, 3, 5, 7):
        append_numbers(journal, first, 2)
        ends.append(journal.segments()[-1].size)
    whole.kill()
    path = f"{DIRECTORY}/0000000001.seg"
    content = whole.content(path)
    for cut in range(128, ends[-1] + 1):
        disk = FakeDisk()
        disk.put(path, content[:cut])
        found, _ = replay_with_positions(opened(disk))
        assert len(found) == 2 * sum(end <= cut for end in ends), f"cut at byte {cut}"


def test_a_flipped_byte_of_the_unsynced_tail_is_cut_and_of_the_synced_part_is_refused_never_read() -> None:
    from dragoman.errors import JournalDamaged

    whole = FakeDisk()
    journal = opened(whole)
    append_numbers(journal, 1, 2)
    append_numbers(journal, 3, 2)
    synced_end = journal.segments()[-1].size
    journal.commit()
    append_numbers(journal, 5, 2)
    end = journal.segments()[-1].size
    whole.kill()
    path = f"{DIRECTORY}/0000000001.seg"
    content = whole.content(path)
    for at in range(end):
        disk = FakeDisk()
        disk.put(path, content[:at] + bytes([content[at] ^ 0x10]) + content[at + 1 :])
        if 8 <= at < 12:
            continue  # the format version; another test's matter
        if at < synced_end:
            with pytest.raises(JournalDamaged):
                opened(disk)
        else:
            found, _ = replay_with_positions(opened(disk))
            assert found == [1, 2, 3, 4], f"flipped byte {at}"
