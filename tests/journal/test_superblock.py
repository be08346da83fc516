"""The superblock: missing ends are noticed, and neither a power cut nor a failing disk makes it raise a false alarm."""

from __future__ import annotations

import errno
import zlib
from random import Random

import pytest

from dragoman.errors import JournalDamaged, JournalMisplaced, JournalTooNew, JournalUnavailable
from dragoman.journal.journal import Journal
from dragoman.journal.superblock import (
    SUPERBLOCK_NAMES,
    SegmentClaim,
    Superblock,
    SuperblockCopies,
    pack_superblock,
    unpack_superblock,
)
from dragoman.journal.tools.salvage import salvage
from dragoman.journal.tools.verify import verify
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.machine.disk import PowerCut, SimDisk
from tests.journal.small_journals import (
    BROKER_ID,
    DIRECTORY,
    append_numbers,
    opened,
    read_numbers,
    record,
    replayed_numbers,
    segment_path,
)

SECOND_NS = 1_000_000_000
COPIES = [f"{DIRECTORY}/{name}" for name in SUPERBLOCK_NAMES]


def rolled(disk: FakeDisk, segments: int, *, checkpoint_at: int = 0, is_closed: bool = True, **more: int) -> Journal:
    """Segment n holds facts 2n-1 and 2n; one may begin with a checkpoint."""
    journal = opened(disk, **more)
    for number in range(1, 2 * segments, 2):
        if number > 1:
            journal.roll([record(number - 1, 50, kind=200)] if number == 2 * checkpoint_at - 1 else None)
        append_numbers(journal, number, 2)
        journal.commit()
    journal.upkeep(SECOND_NS)
    if is_closed:
        journal.close()
    else:
        disk.kill()
    return journal


def remove(disk: FakeDisk, path: str) -> None:
    disk.unlink(path)
    disk.sync_directory(DIRECTORY)


def superblock(disk: FakeDisk, directory: str = DIRECTORY) -> Superblock:
    newest = SuperblockCopies(disk, directory).newest
    assert newest is not None
    return newest


@pytest.mark.parametrize("is_closed", [True, False])
@pytest.mark.parametrize("segment_no", [1, 2, 3, 4])
def test_any_missing_segment_refuses_the_start_and_is_named(disk: FakeDisk, segment_no: int, is_closed: bool) -> None:
    rolled(disk, 4, is_closed=is_closed)
    remove(disk, segment_path(segment_no))
    before = {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)}
    with pytest.raises(JournalDamaged, match=r"journal salvage"):
        opened(disk)
    assert {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)} == before
    report = verify(DIRECTORY, disk=disk)
    assert not report.is_sound
    assert segment_path(segment_no) in {flaw.file for flaw in report.flaws}
    result = salvage(DIRECTORY, "/saved", disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(2 * segment_no - 1, 2 * segment_no)]
    assert result.losses[0].file == segment_path(segment_no)


def test_a_journal_cut_at_any_byte_after_a_clean_stop_is_refused_there(disk: FakeDisk) -> None:
    rolled(disk, 2)
    names = {name: disk.content(f"{DIRECTORY}/{name}") for name in disk.list_names(DIRECTORY)}
    path = segment_path(2)
    for cut in range(len(disk.content(path))):
        short = FakeDisk()
        for name, content in names.items():
            short.put(f"{DIRECTORY}/{name}", content if f"{DIRECTORY}/{name}" != path else content[:cut])
        with pytest.raises(JournalDamaged) as caught:
            opened(short)
        assert caught.value.file in (path, segment_path(1)), f"cut at byte {cut}"
        assert caught.value.offset <= max(cut, len(names["0000000001.seg"]))
        assert not verify(DIRECTORY, disk=short).is_sound


def test_zeros_over_the_end_of_the_newest_segment_are_refused(disk: FakeDisk) -> None:
    rolled(disk, 2, is_closed=False)
    content = disk.content(segment_path(2))
    disk.put(segment_path(2), content[:128] + bytes(len(content) - 128))
    with pytest.raises(JournalDamaged, match="blocks up to 2 and facts up to 4"):
        opened(disk)


def test_zeros_before_whole_blocks_are_refused_without_a_superblock_too(disk: FakeDisk) -> None:
    journal = opened(disk)
    for number in range(1, 6):
        append_numbers(journal, number, 1)
        journal.commit()
    disk.kill()
    for copy in COPIES[:1]:
        disk.unlink(copy)
    content = disk.content(segment_path(1))
    disk.put(segment_path(1), content[:240] + bytes(112) + content[352:])
    with pytest.raises(JournalDamaged, match="zeros stand where a block was") as caught:
        opened(disk)
    assert caught.value.offset == 240
    assert not verify(DIRECTORY, disk=disk).is_sound


def test_a_directory_without_any_segment_is_not_taken_for_a_new_one(disk: FakeDisk) -> None:
    rolled(disk, 1)
    remove(disk, segment_path(1))
    with pytest.raises(JournalDamaged, match="missing"):
        opened(disk)
    assert not verify(DIRECTORY, disk=disk).is_sound


def test_a_segment_missing_before_the_newest_checkpoint_is_reported_and_the_broker_starts(disk: FakeDisk) -> None:
    rolled(disk, 4, checkpoint_at=3)
    remove(disk, segment_path(1))
    assert not verify(DIRECTORY, disk=disk).is_sound
    assert [loss.file for loss in salvage(DIRECTORY, "/saved", disk=disk).losses] == [segment_path(1)]
    for _ in range(2):  # as long as messages may wait there
        journal = opened(disk)
        assert [(finding.file, finding.is_loss) for finding in journal.findings] == [(segment_path(1), True)]
        assert replayed_numbers(journal) == [5, 6, 7, 8]
        assert not verify(DIRECTORY, disk=disk).is_sound
        journal.close()
    journal = opened(disk)
    journal.forget_lost({2, 3})
    journal.close()
    assert verify(DIRECTORY, disk=disk).is_sound
    assert opened(disk).findings == []


def test_a_segment_cut_before_the_newest_checkpoint_is_reported(disk: FakeDisk) -> None:
    rolled(disk, 4, checkpoint_at=3)
    size = len(disk.content(segment_path(1)))
    disk.lose_tail(segment_path(1), size - 10)
    (finding,) = opened(disk).findings
    assert (finding.file, finding.offset, finding.size, finding.is_loss) == (segment_path(1), size - 10, 10, True)


def test_another_file_of_the_same_number_is_refused(disk: FakeDisk) -> None:
    other = FakeDisk()
    journal = opened(other)
    append_numbers(journal, 1, 1)
    journal.close()
    rolled(other, 2)
    rolled(disk, 3)
    disk.put(segment_path(2), other.content(segment_path(2)))
    with pytest.raises(JournalDamaged, match="another file") as caught:
        opened(disk)
    assert caught.value.file == segment_path(2)
    assert not verify(DIRECTORY, disk=disk).is_sound


def test_segments_of_another_broker_than_the_superblock_names_are_refused(disk: FakeDisk) -> None:
    stranger = FakeDisk()
    Journal.open(opened(disk).settings, stranger, new_broker_id=bytes(16)).close()
    opened(disk).close()
    for copy in COPIES:
        if stranger.exists(copy):
            disk.put(copy, stranger.content(copy))
    with pytest.raises(JournalMisplaced, match="superblock"):
        opened(disk)


def test_a_journal_of_an_older_version_starts_and_gets_a_superblock(disk: FakeDisk) -> None:
    rolled(disk, 2)
    for copy in COPIES:
        remove(disk, copy)
    journal = opened(disk)
    assert ["no superblock" in finding.text for finding in journal.findings] == [True]
    assert replayed_numbers(journal) == [1, 2, 3, 4]
    assert [claim.segment_no for claim in superblock(disk).segments] == [1, 2]
    assert not superblock(disk).is_clean
    journal.close()
    assert superblock(disk).is_clean


def test_one_damaged_copy_is_normal_and_two_are_reported_and_made_anew(disk: FakeDisk) -> None:
    rolled(disk, 2)
    for copy in COPIES:
        torn = FakeDisk()
        for name in disk.list_names(DIRECTORY):
            torn.put(f"{DIRECTORY}/{name}", disk.content(f"{DIRECTORY}/{name}"))
        torn.damage(copy, 40)
        assert opened(torn).findings == []
    for copy in COPIES:
        disk.damage(copy, 40)
    assert verify(DIRECTORY, disk=disk).superblock == "damaged"
    journal = opened(disk)
    assert {finding.file for finding in journal.findings} == set(COPIES)
    assert replayed_numbers(journal) == [1, 2, 3, 4]
    assert superblock(disk).synced_lsn == 4


def test_no_flipped_bit_and_no_cut_of_a_superblock_passes_for_one() -> None:
    claims = tuple(SegmentClaim(number, number * 7, 100, number, number == 1) for number in range(1, 4))
    whole = Superblock(BROKER_ID, 11, 12, True, 13, claims, 14)
    data = pack_superblock(whole)
    assert unpack_superblock(data + b"left by a longer one", "path") == whole
    for bit in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        assert unpack_superblock(bytes(flipped), "path") is None, f"bit {bit}"
    for size in range(len(data)):
        assert unpack_superblock(data[:size], "path") is None


def test_a_superblock_of_a_later_version_is_refused() -> None:
    data = pack_superblock(Superblock(BROKER_ID))
    newer = data[:8] + (9).to_bytes(4, "little") + bytes(4) + data[16:]
    newer = newer[:12] + zlib.crc32(newer).to_bytes(4, "little") + newer[16:]
    with pytest.raises(JournalTooNew, match="version 9"):
        unpack_superblock(newer, "path")


def test_it_is_written_once_a_second_at_each_roll_and_never_when_nothing_is_new(disk: FakeDisk) -> None:
    journal = opened(disk)
    journal.upkeep(0)
    sequence = superblock(disk).sequence
    for number in range(1, 50):
        append_numbers(journal, number, 1)
        journal.commit()
        journal.upkeep(number)
    assert superblock(disk).sequence == sequence
    assert journal.wants_upkeep(SECOND_NS)
    journal.upkeep(SECOND_NS)
    assert (superblock(disk).sequence, superblock(disk).synced_lsn) == (sequence + 1, 49)
    assert not journal.wants_upkeep(10 * SECOND_NS)
    journal.roll()
    journal.commit()
    journal.upkeep(SECOND_NS + 1)
    assert superblock(disk).sequence == sequence + 2


def test_no_commit_costs_a_sync_more(disk: FakeDisk) -> None:
    journal = opened(disk)
    syncs = disk.syncs
    for number in range(1, 21):
        append_numbers(journal, number, 1)
        journal.commit()
    assert disk.syncs == syncs + 20


class NoSuperblocks(FakeDisk):
    """A disk that fails wherever a superblock is written, from `fails` on."""

    fails = False

    def open(self, path: str, *, create: bool = False, write: bool = True) -> int:
        if self.fails and write and path in COPIES:
            raise OSError(errno.EIO, "the device refuses to write")
        return super().open(path, create=create, write=write)


def test_a_superblock_that_cannot_be_written_is_logged_and_stops_nothing() -> None:
    disk = NoSuperblocks()
    journal = rolled_live(disk)
    disk.fails = True
    journal.drop(journal.droppable(set(), 0))
    journal.upkeep(2 * SECOND_NS)
    assert journal.superblock_trouble == "[Errno 5] the device refuses to write"
    assert journal.accepts_new_work
    assert not any(disk.exists(copy) for copy in COPIES), "what cannot be kept up is removed before segments go"
    assert not disk.exists(segment_path(1))
    assert not journal.wants_upkeep(2 * SECOND_NS + 1), "it is tried once a second"
    append_numbers(journal, 9, 1)
    journal.commit()
    disk.fails = False
    assert journal.wants_upkeep(4 * SECOND_NS)
    journal.upkeep(4 * SECOND_NS)
    assert journal.superblock_trouble is None
    assert superblock(disk).synced_lsn == 9
    journal.close()
    assert opened(disk).findings == []


def rolled_live(disk: FakeDisk) -> Journal:
    """Four segments, each with a checkpoint, the first ones ready to go."""
    journal = opened(disk, size_max=1)
    for number in range(1, 9, 2):
        if number > 1:
            journal.roll([record(number - 1, 50, kind=200)])
        append_numbers(journal, number, 2)
        journal.commit()
    journal.upkeep(SECOND_NS)
    return journal


@pytest.mark.parametrize("operations", range(24))
def test_a_power_cut_while_segments_go_raises_no_alarm(operations: int) -> None:
    for seed in range(20):
        disk = SimDisk()
        journal = rolled_live(disk)
        journal.drop(journal.droppable(set(), 0))
        disk.cut_after(operations)
        try:
            journal.upkeep(2 * SECOND_NS)
            append_numbers(journal, 9, 1)
            journal.commit()
            journal.close()
        except PowerCut:
            pass
        disk.restore()
        disk.crash(Random(seed))
        journal = opened(disk, size_max=1)
        assert not any(finding.is_loss for finding in journal.findings), f"seed {seed}"
        assert journal.next_lsn in (9, 10)


@pytest.mark.long
@pytest.mark.parametrize("durability", ["os", "disk"])
@pytest.mark.parametrize("seeds", [range(i, i + 60) for i in range(0, 240, 60)], ids=str)
def test_no_crash_and_no_failing_disk_makes_a_false_alarm(durability: str, seeds: range) -> None:
    for seed in seeds:
        rng, disk, now_ns, number, kept = Random(seed), SimDisk(), 0, 0, 0
        for _ in range(6):
            if rng.random() < 0.7:
                disk.cut_after(rng.randint(0, 120))
            try:
                journal = opened(disk, durability, size_max=rng.choice((1, 150_000)))  # type: ignore[arg-type]
                assert not any(finding.is_loss for finding in journal.findings), f"seed {seed}"
                assert journal.next_lsn > kept, f"seed {seed}: {kept} was kept"
                number = journal.next_lsn - 1
                for _ in range(rng.randint(1, 30)):
                    now_ns += rng.choice((1, SECOND_NS // 3, 2 * SECOND_NS))
                    number, kept = step(journal, disk, rng, number, kept, now_ns)
                if rng.random() < 0.4:
                    journal.close()
                    kept = number
            except (PowerCut, JournalUnavailable):
                pass
            disk.restore()
            disk.fail_syncs(0)
            disk.fail_writes(0)
            disk.crash(rng)


def step(journal: Journal, disk: SimDisk, rng: Random, number: int, kept: int, now_ns: int) -> tuple[int, int]:
    """One tick of a broker on a bad disk; the last fact appended and the last one kept."""
    chance = rng.random()
    if chance < 0.05:
        disk.fail_syncs(rng.randint(1, 2))
    elif chance < 0.1:
        disk.fail_writes(rng.randint(1, 2))
    elif chance < 0.25:
        journal.roll([record(number, 60, kind=200)] if rng.random() < 0.6 else None)
    append_numbers(journal, number + 1, 1, rng.choice((40, 9000)))
    number += 1
    if rng.random() < 0.6:
        journal.sync()
        kept = journal.synced_lsn
    if journal.wants_upkeep(now_ns):
        journal.upkeep(now_ns)
    if rng.random() < 0.2:
        journal.drop(journal.droppable(set(), 0))
    return number, kept


def test_a_cut_at_a_start_is_logged_with_its_size(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 2)
    journal.commit()
    append_numbers(journal, 3, 2)
    end = journal.segments()[-1].size
    disk.kill()
    disk.damage(segment_path(1), end - 3)
    (finding,) = opened(disk).findings
    assert (finding.file, finding.offset, finding.size) == (segment_path(1), 280, 152 - 2)
    assert "torn tail" in finding.text
    assert not finding.is_loss


def test_salvage_names_the_broker_by_the_superblock_where_every_header_is_damaged(disk: FakeDisk) -> None:
    rolled(disk, 1)
    disk.damage(segment_path(1), 100)
    assert salvage(DIRECTORY, "/saved", disk=disk).facts == 2
    assert read_numbers("/saved", disk) == [1, 2]
    assert superblock(disk, "/saved").is_clean
