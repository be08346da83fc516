"""A journal of format version 1 is read for ever."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from dragoman.errors import JournalTooNew
from dragoman.journal.disk import Disk
from dragoman.journal.tools.verify import verify
from tests.journal.small_journals import BROKER_ID, append_numbers, numbers_in, opened, read_numbers, record

FIXTURE = Path(__file__).parent / "fixture_v1"


@pytest.fixture
def directory(tmp_path: Path) -> str:
    shutil.copytree(FIXTURE, tmp_path / "journal")
    return str(tmp_path / "journal")


def test_every_fact_of_version_1_is_read() -> None:
    assert read_numbers(str(FIXTURE)) == list(range(1, 11))


def test_a_broker_starts_on_version_1_and_goes_on(directory: str) -> None:
    journal = opened(Disk(), "disk", directory)
    assert journal.broker_id == BROKER_ID
    checkpoint, *blocks = journal.replay()
    assert checkpoint.records == record(4, 50, kind=200) + record(4, 60, kind=200)
    assert [(block.first_lsn, block.count, block.time_ns) for block in blocks] == [
        (5, 2, 5),
        (7, 0, 7),
        (7, 1, 7),
        (8, 2, 8),
        (10, 1, 10),
    ]
    assert [n for block in blocks for n in numbers_in(block.records)] == [5, 6, 7, 8, 9, 10]
    append_numbers(journal, 11, 1)
    journal.close()
    assert read_numbers(directory) == list(range(1, 12))


def test_a_record_of_version_1_that_moved_is_found_under_its_old_place(directory: str) -> None:
    journal = opened(Disk(), "disk", directory)
    moved = next(block for block in journal.replay() if numbers_in(block.records) == [7])
    promised = 2 << 32 | 659
    assert journal.position_now(promised) == moved.position
    assert journal.read_record(promised) == record(7)
    journal.close()


def test_verify_finds_only_the_torn_tail_of_version_1() -> None:
    report = verify(str(FIXTURE))
    assert report.is_sound
    assert [flaw.is_torn_tail for flaw in report.flaws] == [True]
    assert report.facts == 10


def test_version_3_is_refused_with_both_versions_named(directory: str) -> None:
    path = Path(directory) / "0000000002.seg"
    content = path.read_bytes()
    path.write_bytes(content[:8] + (3).to_bytes(4, "little") + b"crc3" + content[16:])
    for act in (lambda: opened(Disk(), "disk", directory), lambda: verify(directory)):
        with pytest.raises(JournalTooNew, match=r"version 3.*versions up to 2"):
            act()
