"""Whatever a salvage saves is a journal that starts, again and again, and holds exactly what was not reported lost."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from dragoman.core.settings import CoreSettings
from dragoman.core.storage.snapshot import encode
from dragoman.errors import JournalMisplaced
from dragoman.journal.format import pack_segment_header, unpack_segment_header
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.recovery.scan import list_segments
from dragoman.journal.tools.salvage import Salvage, salvage
from dragoman.journal.tools.verify import verify
from dragoman.runtime.recovery import recover
from dragoman.runtime.settings import apply_settings
from dragoman.testing.disk import FakeDisk
from dragoman_lab.sim.world import World
from tests.journal.small_journals import DIRECTORY, append_numbers, opened, read_numbers, record, replayed_numbers

SAVED = "/saved/journal"
PAGE = 4096


def written(disk: FakeDisk, rng: Random) -> int:
    """A journal of several lives, with rolls, checkpoints and segments left after failed syncs; how many facts it holds."""
    number = 0
    for _ in range(rng.randint(1, 3)):
        journal = opened(disk)
        for _ in range(rng.randint(1, 25)):
            if rng.random() < 0.15:
                journal.roll([record(number, 200, kind=200)] if rng.random() < 0.5 else None)
            if rng.random() < 0.05:
                disk.fail_syncs(1)
            count = rng.randint(1, 4)
            append_numbers(journal, number + 1, count, rng.choice((40, 300, 5000)))
            number += count
            if rng.random() < 0.8:
                journal.commit()
        disk.fail_syncs(0)
        journal.commit()
        journal.upkeep(2_000_000_000 * number)  # the superblock follows within a second
        if rng.random() < 0.7:
            journal.close()
        disk.kill()
    return number


def spoil(disk: FakeDisk, rng: Random) -> None:
    """A flipped byte, a cut tail or a page of zeros, once or several times."""
    names = [name for name in disk.list_names(DIRECTORY) if name.endswith(".seg")]
    for _ in range(rng.choice((1, 1, 2, 4))):
        path = f"{DIRECTORY}/{rng.choice(names)}"
        used = len(disk.content(path).rstrip(b"\0"))
        if not used:
            continue
        at, kind = rng.randrange(used), rng.random()
        if 8 <= at < 12:
            at = 16  # with more damage beside it, a damaged version cannot be told from a newer one
        if kind < 0.7:
            disk.damage(path, at, rng.randint(1, 255))
        elif kind < 0.85:
            disk.lose_tail(path, at)
        else:
            content = disk.content(path)
            disk.put(path, content[:at] + bytes(len(content[at : at + PAGE])) + content[at + PAGE :])


def lost_numbers(result: Salvage, last: int) -> set[int]:
    """Fact n has lsn n, so a loss names its facts."""
    return {
        number
        for loss in result.losses
        for number in range(loss.first_lsn, (loss.last_lsn if loss.last_lsn is not None else last) + 1)
    }


@pytest.mark.parametrize(
    "seeds",
    [range(10), *(pytest.param(range(i, i + 40), marks=pytest.mark.long) for i in range(10, 210, 40))],
    ids=str,
)
def test_a_salvaged_journal_starts_and_holds_all_but_the_losses(seeds: range) -> None:
    for seed in seeds:
        rng, disk = Random(seed), FakeDisk()
        last = written(disk, rng)
        spoil(disk, rng)
        if all(file.header is None for file in list_segments(disk, DIRECTORY)):
            continue  # without one whole header nothing tells whose blocks these are
        try:
            check_salvage(disk, last)
        except Exception as error:
            raise AssertionError(f"seed {seed}") from error


def check_salvage(disk: FakeDisk, last: int) -> None:
    result = salvage(DIRECTORY, SAVED, disk=disk)
    kept = read_numbers(SAVED, disk)
    lost = lost_numbers(result, last)
    assert kept == sorted(set(range(1, last + 1)) - lost)
    assert verify(SAVED, disk=disk).is_sound
    for life in range(3):
        journal = opened(disk, directory=SAVED)
        assert replayed_numbers(journal) == [number for number in kept if number >= first_replayed(journal)]
        number = journal.next_lsn
        append_numbers(journal, number, 1)
        kept.append(number)
        journal.commit()
        if life == 0:
            journal.close()
        disk.kill()
        assert read_numbers(SAVED, disk) == kept, "it goes on behind what was saved"


def first_replayed(journal: Journal) -> int:
    """Behind the newest checkpoint, or from the first fact."""
    checkpoints = [block for block in journal.replay() if block.is_checkpoint]
    return checkpoints[-1].first_lsn if checkpoints else 1


@pytest.mark.parametrize("seed", [2, 6, 55, 58])
def test_a_broker_starts_on_what_is_saved_of_a_real_load(seed: int) -> None:
    """The simulator's broker made these journals; a core reads what is saved of each, and a second one the same again."""
    world = World(seed)
    # The damage is done below, and all facts are to be there.
    world.plan = replace(world.plan, corruptions=0, journal=replace(world.plan.journal, size_max=1 << 30))
    world.run()
    assert world.life is not None
    if seed % 2 == 0:
        world.life.journal.close()
    names = [f"{DIRECTORY}/{name}" for name in world.disk.list_names(DIRECTORY)]
    facts = {block.first_lsn: block.records for block in JournalReader(DIRECTORY, world.disk).read(1)}
    for trial in range(25):
        rng, disk = Random(1000 * seed + trial), FakeDisk()
        for name in names:
            disk.put(name, world.disk.content(name))
        spoil(disk, rng)
        try:
            lost = lost_numbers(salvage(DIRECTORY, SAVED, disk=disk), max(facts))
            for block in JournalReader(SAVED, disk).read(1):
                assert facts[block.first_lsn] == block.records
                assert not lost & set(range(block.first_lsn, block.first_lsn + block.count))
            encodings = [started(world, disk) for _ in range(2)]
            assert encodings[0] == encodings[1]
        except Exception as error:
            raise AssertionError(f"seed {seed}, trial {trial}") from error


def started(world: World, disk: FakeDisk) -> list[bytes]:
    """What a core makes of the saved journal: its state, without the places."""
    settings = CoreSettings()
    apply_settings(world.plan.config, settings)
    journal = Journal.open(replace(world.plan.journal, directory=SAVED), disk, now_ns=world.wall_ns())
    core, _ = recover(journal, settings)
    disk.kill()
    return encode(core.state, lambda position: 0)


def test_the_last_facts_flipped_after_a_clean_stop_are_lost_and_the_rest_starts(disk: FakeDisk) -> None:
    journal = opened(disk)
    for number in (1, 3, 5):
        append_numbers(journal, number, 2)
    path, end = journal.segments()[-1].path, journal.segments()[-1].size
    journal.close()
    disk.damage(path, end - 1)
    result = salvage(DIRECTORY, SAVED, disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(5, 6)]
    for _ in range(2):
        journal = opened(disk, directory=SAVED)
        assert replayed_numbers(journal) == [1, 2, 3, 4]
        assert journal.next_lsn == 7
        journal.close()


def test_whole_blocks_behind_a_page_of_zeros_are_saved(disk: FakeDisk) -> None:
    journal = opened(disk)
    for number in range(1, 9):
        append_numbers(journal, number, 1)
    path = journal.segments()[-1].path
    journal.close()
    content = disk.content(path)
    disk.put(path, content[:240] + bytes(112) + content[352:])  # the second block
    result = salvage(DIRECTORY, SAVED, disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(2, 2)]
    assert read_numbers(SAVED, disk) == [1, 3, 4, 5, 6, 7, 8]


def test_a_checkpoint_behind_a_damaged_header_still_counts(disk: FakeDisk) -> None:
    journal = opened(disk)
    append_numbers(journal, 1, 3)
    journal.roll([record(3, 50, kind=200)])
    append_numbers(journal, 4, 1)
    path = journal.segments()[-1].path
    journal.close()
    disk.damage(path, 100)
    assert salvage(DIRECTORY, SAVED, disk=disk).losses == []
    blocks = list(opened(disk, directory=SAVED).replay())
    assert blocks[0].is_checkpoint
    assert JournalReader(SAVED, disk).segments()[0].first_lsn == 1


def test_what_stood_before_the_first_whole_block_of_a_headless_segment_is_reported_as_lost(disk: FakeDisk) -> None:
    journal = opened(disk)
    for number in (1, 3, 5):
        append_numbers(journal, number, 2)
    path = journal.segments()[-1].path
    journal.close()
    content = disk.content(path)
    disk.put(path, bytes(280) + content[280:])  # the header and the first block
    result = salvage(DIRECTORY, SAVED, disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(1, 2)]
    assert read_numbers(SAVED, disk) == [3, 4, 5, 6]
    assert replayed_numbers(opened(disk, directory=SAVED)) == [3, 4, 5, 6]


def test_a_directory_whose_every_segment_is_another_file_is_refused_with_words(disk: FakeDisk) -> None:
    """Another life of the same broker: no block of it tells of what this superblock names."""
    journal = opened(disk)
    append_numbers(journal, 1, 1)
    journal.close()
    path = f"{DIRECTORY}/{disk.list_names(DIRECTORY)[0]}"
    data = disk.content(path)
    header = unpack_segment_header(data)
    assert header is not None
    other = pack_segment_header(header._replace(created_ns=header.created_ns + 1))
    disk.put(path, other + data[len(other) :])
    with pytest.raises(JournalMisplaced, match="nothing to save"):
        salvage(DIRECTORY, SAVED, disk=disk)
    assert not disk.exists(SAVED)


def test_a_page_of_a_segment_that_stands_again_at_its_beginning_is_no_block_there(disk: FakeDisk) -> None:
    """The copies are whole, and closer to the header than any block can be."""
    journal = opened(disk)
    for number in range(1, 9):
        append_numbers(journal, number, 1)
    path = journal.segments()[-1].path
    journal.close()
    content = disk.content(path)
    page = content[464 - 150 : 464 - 150 + 300]  # the block at 464 comes to stand at 150
    disk.put(path, page + content[300:])
    result = salvage(DIRECTORY, SAVED, disk=disk)
    saved = replayed_numbers(opened(disk, directory=SAVED))
    assert saved == [3, 4, 5, 6, 7, 8]
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(1, 2)]


def numbered(disk: FakeDisk, count: int) -> tuple[str, bytes]:
    """A segment of blocks with one fact each, 112 bytes long; the first begins at 128."""
    journal = opened(disk)
    for number in range(1, count + 1):
        append_numbers(journal, number, 1)
    path = journal.segments()[-1].path
    journal.close()
    return path, disk.content(path)


@pytest.mark.parametrize("at", [206, 240], ids=["between blocks", "where a block was"])
def test_whole_copies_of_later_blocks_do_not_stand_for_what_they_overwrote(disk: FakeDisk, at: int) -> None:
    """`make damage`, seed 30348166: blocks 4 and 5 stand again over the header and the first two; 3 and what follows is intact."""
    path, content = numbered(disk, 8)
    disk.put(path, bytes(at) + content[464 : 464 + 350 - at] + content[350:])
    result = salvage(DIRECTORY, SAVED, disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(1, 2)]
    assert read_numbers(SAVED, disk) == [3, 4, 5, 6, 7, 8]
    saved = disk.content(f"{SAVED}/{path.rsplit('/', 1)[1]}")
    assert saved[352:1024] == content[352:1024], "places in checkpoints stay true"
    assert replayed_numbers(opened(disk, directory=SAVED)) == [3, 4, 5, 6, 7, 8]


def test_copies_that_follow_a_block_as_if_they_were_the_next_are_none(disk: FakeDisk) -> None:
    path, content = numbered(disk, 8)
    disk.put(path, content[:240] + content[576:800] + content[464:])  # blocks 5 and 6 over 2 and 3
    result = salvage(DIRECTORY, SAVED, disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(2, 3)]
    assert read_numbers(SAVED, disk) == [1, 4, 5, 6, 7, 8]
    assert replayed_numbers(opened(disk, directory=SAVED)) == [1, 4, 5, 6, 7, 8]


def test_what_a_salvage_saved_is_saved_whole_by_the_next_one(disk: FakeDisk) -> None:
    """The block behind its first filler has the filler's number."""
    path, content = numbered(disk, 8)
    disk.put(path, bytes(352) + content[352:])
    salvage(DIRECTORY, SAVED, disk=disk)
    disk.damage(f"{SAVED}/{path.rsplit('/', 1)[1]}", 600)
    again = salvage(SAVED, "/again/journal", disk=disk)
    assert [(loss.first_lsn, loss.last_lsn) for loss in again.losses] == [(5, 5)]
    assert read_numbers("/again/journal", disk) == [3, 4, 6, 7, 8]
