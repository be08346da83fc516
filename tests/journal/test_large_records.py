"""Large records are proved without being kept, and read in steps; damage to one is reported as if it were read whole."""

from __future__ import annotations

import shutil
import tracemalloc
from pathlib import Path
from random import Random

import pytest

from dragoman import limits
from dragoman.errors import RecordDamaged
from dragoman.journal.disk import Disk, DiskFace
from dragoman.journal.format import BLOCK_HEADER_SIZE, SEGMENT_HEADER_SIZE
from dragoman.journal.journal import Journal
from dragoman.journal.recovery.scan import BlockOffsets
from dragoman.journal.stream import PIECE_SIZE
from dragoman.model.facts.fields import accepted_body, body_at
from dragoman.model.facts.layout import ACCEPTED_CRC_SIZE, CARRIED_RECORD
from dragoman.model.facts.record_load import RecordLoad
from dragoman.model.facts.records import FactLog
from dragoman.model.message import Message
from dragoman.testing.disk import FakeDisk
from tests.journal.small_journals import opened, segment_path

LARGE = 3 * PIECE_SIZE + 12_345
FIRST_AT = SEGMENT_HEADER_SIZE + BLOCK_HEADER_SIZE


def accepted(number: int, size: int, headers: bytes = b"") -> bytes:
    m = Message(1, b"mail", b"id-%d" % number, Random(number).randbytes(size))
    m.number, m.address, m.headers = number, b"\x01client", headers
    log = FactLog()
    log.accepted(m)
    return log.take()


def carried(record: bytes) -> bytes:
    log = FactLog()
    log.carried(record, 17)
    return log.take()


def kept(disk: DiskFace, *records: bytes, **more: int) -> tuple[Journal, list[int]]:
    journal = opened(disk, **more)
    positions = []
    for record in records:
        positions.append(journal.next_position())
        journal.append([record], 1, 0)
    journal.sync()
    return journal, positions


def load(journal: Journal, position: int, number: int, step: int, is_whole: bool = False) -> RecordLoad:
    found = journal.begin_load(position, number, is_whole)
    while not found.step(step):
        pass
    return found


@pytest.mark.parametrize("size", [0, 10, 70_000, LARGE])
@pytest.mark.parametrize("headers", [b"", b"h" * limits.HEADERS_SIZE_MAX])
@pytest.mark.parametrize("is_carried", [False, True])
def test_what_is_looked_at_is_the_records_beginning(
    disk: FakeDisk, size: int, headers: bytes, is_carried: bool
) -> None:
    record = accepted(7, size, headers)
    stored = carried(record) if is_carried else record
    journal, (position,) = kept(disk, stored)
    begin = body_at(stored, CARRIED_RECORD if is_carried else 0)
    is_small = len(stored) <= limits.READ_WHOLE_SIZE
    for most in (0, 5, 2 * LARGE):
        assert journal.look(position, 7, most) == (stored if is_small else stored[: min(begin + most, len(stored) - 4)])
    assert journal.read_record(position, 7) == stored


@pytest.mark.parametrize("size", [0, 10, 70_000, LARGE])
@pytest.mark.parametrize("step", [997, 100_000, 1 << 30])
@pytest.mark.parametrize("is_carried", [False, True])
def test_a_load_gives_the_body_or_the_accepted_record(disk: FakeDisk, size: int, step: int, is_carried: bool) -> None:
    record = accepted(7, size)
    stored = carried(record) if is_carried else record
    journal, (position,) = kept(disk, stored)
    found = load(journal, position, 7, step)
    assert found.taken() == accepted_body(record, 0)
    assert stored.startswith(found.head)
    assert load(journal, position, 7, step, is_whole=True).taken() == record


def test_records_smaller_than_one_read_need_no_load_in_steps(disk: FakeDisk) -> None:
    journal, (position,) = kept(disk, accepted(7, 100))
    assert journal.begin_load(position, 7, False).step(100)


@pytest.mark.parametrize("at", [0, 3, 4, 8, 20, 57, 60, ACCEPTED_CRC_SIZE, 70, 5_000, PIECE_SIZE + 1, LARGE - 1, -1])
def test_damage_anywhere_is_found_by_look_and_load_as_by_a_whole_read(disk: FakeDisk, at: int) -> None:
    record = accepted(7, LARGE)
    journal, (position, _) = kept(disk, record, accepted(8, 100))
    disk.damage(segment_path(1), FIRST_AT + at % len(record))
    with pytest.raises(RecordDamaged) as whole:
        journal.read_record(position, 7)
    with pytest.raises(RecordDamaged) as looked:
        journal.look(position, 7, 0)
    with pytest.raises(RecordDamaged) as loaded:
        load(journal, position, 7, 100_000)
    assert looked.value.evidence == whole.value.evidence
    assert loaded.value.evidence == whole.value.evidence


def test_the_record_of_another_message_is_no_proof(disk: FakeDisk) -> None:
    journal, (position,) = kept(disk, accepted(7, LARGE))
    for read in (lambda: journal.look(position, 8, 0), lambda: load(journal, position, 8, LARGE)):
        with pytest.raises(RecordDamaged, match="the record of another message is here"):
            read()


def test_a_file_that_ends_inside_a_record_is_damage(disk: FakeDisk) -> None:
    journal, (position,) = kept(disk, accepted(7, LARGE))
    begun = journal.begin_load(position, 7, False)
    assert not begun.step(PIECE_SIZE)
    disk.lose_tail(segment_path(1), 2 * PIECE_SIZE)
    for read in (
        lambda: journal.look(position, 7, 0),
        lambda: begun.step(LARGE),
        lambda: load(journal, position, 7, LARGE),
    ):
        with pytest.raises(RecordDamaged, match="the file ends inside the record"):
            read()


def test_a_load_goes_on_when_its_file_was_closed_meanwhile(disk: FakeDisk) -> None:
    record = accepted(7, LARGE)
    journal, (position,) = kept(disk, record)
    journal._store.open_max = 1
    journal.roll()
    other = journal.next_position()
    journal.append([accepted(8, 10)], 1, 0)
    begun = journal.begin_load(position, 7, False)
    while not begun.step(100_000):
        journal.read_record(other, 8)
    assert begun.taken() == accepted_body(record, 0)


def test_a_load_whose_segment_is_dropped_is_damage(disk: FakeDisk) -> None:
    journal, (position,) = kept(disk, accepted(7, LARGE))
    journal.roll()
    begun = journal.begin_load(position, 7, False)
    assert not begun.step(1000)
    journal.drop([1])
    with pytest.raises(RecordDamaged, match="the segment is missing"):
        begun.step(1000)


def test_a_record_that_moves_while_it_is_loaded_is_read_at_its_new_place(disk: FakeDisk) -> None:
    journal = opened(disk)
    record = accepted(7, LARGE)
    position = journal.next_position()
    journal.append([record], 1, 0)
    begun = journal.begin_load(position, 7, False)
    assert not begun.step(PIECE_SIZE)
    disk.fail_syncs(1)
    journal.commit()
    assert journal.position_now(position) != position
    assert not disk.exists(segment_path(1))
    while not begun.step(PIECE_SIZE):
        pass
    assert begun.taken() == accepted_body(record, 0)


def test_a_record_that_only_memory_holds_is_loaded_from_there(disk: FakeDisk) -> None:
    journal = opened(disk)
    record = accepted(7, LARGE)
    position = journal.next_position()
    journal.append([record], 1, 0)
    disk.fail_syncs(100)
    with pytest.raises(Exception, match="sync"):
        journal.commit()
    assert load(journal, position, 7, LARGE).taken() == accepted_body(record, 0)
    assert journal.look(position, 7, 0) == record


def test_a_proof_takes_no_memory_of_the_bodys_size(tmp_path: Path) -> None:
    journal, (position,) = kept(Disk(), accepted(7, 16 * PIECE_SIZE), directory=str(tmp_path))
    journal.look(position, 7, 0)
    tracemalloc.start()
    try:
        journal.look(position, 7, 0)
        assert tracemalloc.get_traced_memory()[1] < PIECE_SIZE
    finally:
        tracemalloc.stop()
    journal.close()


# -- records without a CRC of their own -----------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [100, 70_000])
def test_damage_in_the_byte_that_claims_a_crc_costs_no_walk_over_the_segment(
    disk: FakeDisk, size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_walk(*_: object) -> None:
        raise AssertionError("nobody needs to know the blocks of this segment")

    journal, (position, _) = kept(disk, accepted(7, size), accepted(8, LARGE))
    disk.damage(segment_path(1), FIRST_AT + ACCEPTED_CRC_SIZE, xor=4)  # it says: no CRC
    monkeypatch.setattr(BlockOffsets, "read_on", no_walk)
    for read in (lambda: journal.read_record(position, 7), lambda: journal.look(position, 7, 0)):
        with pytest.raises(RecordDamaged, match="the record's CRC does not match"):
            read()


def test_where_records_of_version_1_may_lie_their_blocks_are_known_from_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a start wrote them again, into a segment of this version."""
    directory = tmp_path / "journal"
    shutil.copytree(Path(__file__).parent / "fixture_v1", directory)
    journal = opened(Disk(), "disk", str(directory))
    numbers = [info.segment_no for info in journal.segments()]
    journal.prepare_reads(numbers)
    walked: list[int] = []
    monkeypatch.setattr(BlockOffsets, "read_on", lambda *_: walked.append(1))
    for block in journal.replay():
        at = 0
        while at < len(block.records):
            journal.read_record(block.position + at)
            at += int.from_bytes(block.records[at : at + 4], "little")
    assert not walked
    journal.close()
