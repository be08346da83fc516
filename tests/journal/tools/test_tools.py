"""verify, salvage, backup and restore, on real files."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dragoman.errors import JournalDamaged, JournalMisplaced, JournalTooNew
from dragoman.journal.disk import Disk
from dragoman.journal.journal import Journal
from dragoman.journal.tools.backup import backup, restore
from dragoman.journal.tools.salvage import salvage
from dragoman.journal.tools.verify import verify
from tests.journal.small_journals import append_numbers, opened, read_numbers, record, replayed_numbers


def written(data: Path, facts: int = 60, per_segment: int = 20, *, checkpoint: bool = False) -> Journal:
    """A journal of blocks of two facts; fact n says n."""
    journal = opened(Disk(), "disk", str(data / "journal"))
    for number in range(1, facts + 1, 2):
        if number > 1 and number % per_segment == 1:
            journal.roll([record(number - 1, 50, kind=200)] if checkpoint else None)
        append_numbers(journal, number, 2)
        journal.commit()
    return journal


def spoil(path: Path, offset: int) -> None:
    content = bytearray(path.read_bytes())
    content[offset] ^= 0xFF
    path.write_bytes(content)


def segment(data: Path, segment_no: int) -> Path:
    return data / "journal" / f"{segment_no:010d}.seg"


def test_verify_counts_what_is_there(tmp_path: Path) -> None:
    written(tmp_path).close()
    seen: list[tuple[int, int]] = []
    report = verify(str(tmp_path / "journal"), lambda done, total: seen.append((done, total)))
    assert (report.segments, report.facts, report.first_lsn, report.last_lsn) == (3, 60, 1, 60)
    assert report.blocks == 31, "30 blocks of facts and the mark of a clean close"
    assert report.is_sound
    assert seen[-1] == (report.size, report.size)
    assert seen == sorted(seen)


def test_verify_runs_beside_a_writing_broker(tmp_path: Path) -> None:
    journal = written(tmp_path)
    report = verify(str(tmp_path / "journal"))
    assert report.is_sound
    assert report.facts == 60
    journal.close()


def test_verify_names_file_offset_and_lsn_of_damage(tmp_path: Path) -> None:
    written(tmp_path).close()
    spoil(segment(tmp_path, 2), 128 + 152 + 100)
    report = verify(str(tmp_path / "journal"))
    assert not report.is_sound
    (flaw,) = report.flaws
    assert (flaw.file, flaw.offset, flaw.lsn) == (str(segment(tmp_path, 2)), 128 + 152, 23)
    assert "CRC" in flaw.reason


def test_verify_of_no_journal_says_so(tmp_path: Path) -> None:
    with pytest.raises(JournalMisplaced, match="no journal"):
        verify(str(tmp_path))


def test_a_damaged_journal_is_refused_naming_file_offset_and_the_salvage_command(tmp_path: Path) -> None:
    written(tmp_path).close()
    spoil(segment(tmp_path, 2), 128 + 152 + 100)
    before = segment(tmp_path, 2).read_bytes()
    with pytest.raises(JournalDamaged) as caught:
        opened(Disk(), "disk", str(tmp_path / "journal"))
    assert caught.value.offset == 128 + 152
    assert str(segment(tmp_path, 2)) in str(caught.value)
    assert "dragoman journal salvage" in str(caught.value)
    assert segment(tmp_path, 2).read_bytes() == before


def test_salvage_saves_every_intact_block_and_names_what_was_lost(tmp_path: Path) -> None:
    written(tmp_path).close()
    spoil(segment(tmp_path, 2), 128 + 152 + 100)
    target = tmp_path / "saved" / "journal"
    result = salvage(str(tmp_path / "journal"), str(target))
    (loss,) = result.losses
    assert (loss.file, loss.offset, loss.size) == (str(segment(tmp_path, 2)), 128 + 152, 152)
    assert (loss.first_lsn, loss.last_lsn) == (23, 24)
    assert result.facts == 58
    journal = opened(Disk(), "disk", str(target))
    assert replayed_numbers(journal) == [n for n in range(1, 61) if n not in (23, 24)]
    assert journal.next_lsn == 61, "facts keep their lsn"
    append_numbers(journal, 61, 1)
    journal.close()
    assert read_numbers(str(target))[-1] == 61


def test_a_salvaged_record_keeps_its_place(tmp_path: Path) -> None:
    journal = written(tmp_path)
    position = append_numbers(journal, 61, 1)
    journal.close()
    spoil(segment(tmp_path, 3), 130)
    target = str(tmp_path / "saved")
    salvage(str(tmp_path / "journal"), target)
    journal = opened(Disk(), "disk", target)
    assert journal.read_record(position) == record(61)
    journal.close()


@pytest.mark.parametrize("offset", [0, 20, 100])
def test_salvage_survives_a_damaged_segment_header(tmp_path: Path, offset: int) -> None:
    written(tmp_path).close()
    spoil(segment(tmp_path, 2), offset)
    target = str(tmp_path / "saved")
    assert salvage(str(tmp_path / "journal"), target).facts == 60
    journal = opened(Disk(), "disk", target)
    assert replayed_numbers(journal) == list(range(1, 61))
    journal.close()


def test_salvage_goes_on_behind_a_missing_segment(tmp_path: Path) -> None:
    written(tmp_path).close()
    segment(tmp_path, 2).unlink()
    target = str(tmp_path / "saved")
    with pytest.raises(JournalDamaged, match="missing"):
        opened(Disk(), "disk", str(tmp_path / "journal"))
    (loss,) = salvage(str(tmp_path / "journal"), target).losses
    assert (loss.first_lsn, loss.last_lsn) == (21, 40)
    journal = opened(Disk(), "disk", target)
    assert replayed_numbers(journal) == [*range(1, 21), *range(41, 61)]
    journal.close()


def test_salvage_loses_a_zeroed_half_and_says_up_to_where(tmp_path: Path) -> None:
    written(tmp_path).close()
    path = segment(tmp_path, 2)
    content = path.read_bytes()
    path.write_bytes(content[: 128 + 5 * 152] + bytes(len(content) - 128 - 5 * 152))
    target = str(tmp_path / "saved")
    (loss,) = salvage(str(tmp_path / "journal"), target).losses
    assert (loss.offset, loss.first_lsn, loss.last_lsn) == (128 + 5 * 152, 31, 40)
    journal = opened(Disk(), "disk", target)
    assert replayed_numbers(journal) == [*range(1, 31), *range(41, 61)]
    journal.close()


def test_salvage_of_a_sound_journal_loses_nothing(tmp_path: Path) -> None:
    written(tmp_path, checkpoint=True).close()
    target = str(tmp_path / "saved")
    result = salvage(str(tmp_path / "journal"), target)
    assert result.losses == []
    assert result.facts == 60
    assert verify(target).is_sound


def test_salvage_never_writes_over_anything(tmp_path: Path) -> None:
    written(tmp_path).close()
    with pytest.raises(JournalMisplaced, match="not empty"):
        salvage(str(tmp_path / "journal"), str(tmp_path))


@pytest.mark.parametrize("segment_no", [1, 3])
def test_blocks_inside_a_body_never_pass_for_blocks_of_the_journal(tmp_path: Path, segment_no: int) -> None:
    journal = written(tmp_path)
    whole_block = segment(tmp_path, segment_no).read_bytes()[128 : 128 + 152]
    bait = (5 + len(whole_block)).to_bytes(4, "little") + b"\x01" + whole_block
    offset = journal.segments()[-1].size
    journal.append([bait], 1, 0)
    append_numbers(journal, 62, 1)
    path = segment(tmp_path, 3)
    journal.close()
    spoil(path, offset + 1)
    result = salvage(str(tmp_path / "journal"), str(tmp_path / "saved"))
    assert [(loss.first_lsn, loss.last_lsn) for loss in result.losses] == [(61, 61)]
    assert result.facts == 61


def test_a_backup_of_a_running_broker_holds_all_that_was_committed(tmp_path: Path) -> None:
    data, target, again = tmp_path / "data", tmp_path / "backup", tmp_path / "again"
    journal = written(data, checkpoint=True)
    manifest = backup(str(data), str(target))
    assert manifest.last_lsn == 60
    assert manifest.broker_id == journal.broker_id.hex()
    append_numbers(journal, 61, 1)
    journal.close()
    assert restore(str(target), str(again)) == manifest
    restored = opened(Disk(), "disk", str(again / "journal"))
    assert restored.broker_id == journal.broker_id
    assert restored.next_lsn == 61
    assert read_numbers(str(again / "journal")) == list(range(1, 61))
    append_numbers(restored, 61, 1)
    restored.close()
    assert verify(str(target / "journal")).last_lsn == 60, "the restored broker writes into its own files"


def test_a_backup_leaves_out_the_block_being_written(tmp_path: Path) -> None:
    data = tmp_path / "data"
    journal = written(data)
    live = segment(data, 3)
    with live.open("r+b") as file:
        file.seek(journal.segments()[-1].size)
        file.write(b"DGBK half a block")
    assert backup(str(data), str(tmp_path / "backup")).last_lsn == 60
    assert verify(str(tmp_path / "backup" / "journal")).flaws == []
    journal.close()


def test_restore_refuses_a_data_directory_that_holds_anything(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    backup(str(tmp_path / "data"), str(tmp_path / "backup"))
    with pytest.raises(JournalMisplaced, match="not empty"):
        restore(str(tmp_path / "backup"), str(tmp_path / "data"))


def test_restore_refuses_a_damaged_backup_and_makes_nothing(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    backup(str(tmp_path / "data"), str(tmp_path / "backup"))
    spoil(segment(tmp_path / "backup", 2), 300)
    with pytest.raises(JournalDamaged):
        restore(str(tmp_path / "backup"), str(tmp_path / "again"))
    assert not (tmp_path / "again").exists()


def test_restore_refuses_an_unfinished_backup_and_one_that_lost_its_end(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    target = tmp_path / "backup"
    backup(str(tmp_path / "data"), str(target))
    segment(target, 3).unlink()
    with pytest.raises(JournalDamaged, match=r"0000000003.*missing"):
        restore(str(target), str(tmp_path / "again"))
    for copy in (target / "journal").glob("superblock.*"):
        copy.unlink()
    with pytest.raises(JournalMisplaced, match="promises"):
        restore(str(target), str(tmp_path / "again"))
    (target / "backup.json").unlink()
    with pytest.raises(JournalMisplaced, match="no finished backup"):
        restore(str(target), str(tmp_path / "again"))


def test_restore_refuses_a_backup_of_a_newer_format(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    backup(str(tmp_path / "data"), str(tmp_path / "backup"))
    path = tmp_path / "backup" / "backup.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format_version": 3}))
    with pytest.raises(JournalTooNew, match="version 3"):
        restore(str(tmp_path / "backup"), str(tmp_path / "again"))


def test_a_backup_goes_only_into_a_fresh_directory(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    with pytest.raises(JournalMisplaced, match="not empty"):
        backup(str(tmp_path / "data"), str(tmp_path))
    with pytest.raises(JournalMisplaced, match="no journal"):
        backup(str(tmp_path / "nothing"), str(tmp_path / "backup"))


@pytest.mark.parametrize("inside", ["journal", "journal/monday", "link/monday"])
def test_a_backup_into_the_journal_itself_is_refused_and_leaves_it_alone(tmp_path: Path, inside: str) -> None:
    written(tmp_path / "data").close()
    (tmp_path / "data" / "link").symlink_to(tmp_path / "data" / "journal")
    names = sorted(path.name for path in (tmp_path / "data" / "journal").iterdir())
    with pytest.raises(JournalMisplaced, match="lies inside") as caught:
        backup(str(tmp_path / "data"), str(tmp_path / "data" / inside))
    assert caught.value.code == "JOURNAL_MISPLACED"
    with pytest.raises(JournalMisplaced, match="lies inside"):
        salvage(str(tmp_path / "data" / "journal"), str(tmp_path / "data" / inside))
    assert sorted(path.name for path in (tmp_path / "data" / "journal").iterdir()) == names


def test_a_restore_into_the_backup_itself_is_refused(tmp_path: Path) -> None:
    written(tmp_path / "data").close()
    backup(str(tmp_path / "data"), str(tmp_path / "backup"))
    with pytest.raises(JournalMisplaced, match="lies inside"):
        restore(str(tmp_path / "backup"), str(tmp_path / "backup" / "again"))
