"""From journal to lake: every committed fact once, whatever happens in between."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from dragoman.errors import LakeAhead, SealerBusy
from dragoman.journal.reader import JournalReader
from dragoman.lake.layout import INCOMING
from dragoman.lake.sealer import Sealer, sealing_alone
from dragoman.lake.store import Lake
from tests.lake.journals import BROKER, BROKER_ID, DAY_NS, NOON_NS, append, journal, values
from tests.lake.stores import Died, mortal_lake


def sealer(data: Path, lake: Lake | None = None, rows_max: int = 10) -> Sealer:
    reader = JournalReader(str(data / "journal"))
    return Sealer(reader, BROKER_ID, lake or Lake(str(data / "lake")), rows_max=rows_max)


def seal(found: Sealer, upto_lsn: int) -> list[tuple[int, int]]:
    """Seal all there is; the lsn ranges of the new files."""
    written = []
    while found.take(upto_lsn) or found.rows:
        written += found.flush()
    return [(file.part.first_lsn, file.part.last_lsn) for file in written]


def test_a_journal_goes_into_the_lake_in_files_of_enough_rows(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        last = append(log, 4, blocks=6)
        found = sealer(tmp_path)
        assert seal(found, last) == [(1, 12), (13, 24)]
    assert values(found.lake, "message_no") == list(range(1, 25))
    assert (found.sealed_lsn, found.missed_facts) == (24, 0)
    assert found.broker == BROKER


def test_a_block_above_the_synced_lsn_waits(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        append(log, 4, blocks=3)
        found = sealer(tmp_path)
        assert seal(found, 7) == [(1, 4)]
        assert seal(found, 7) == []
        assert seal(found, 8) == [(5, 8)]
        assert seal(found, 100) == [(9, 12)]


def test_a_growing_journal_is_followed_over_its_segments(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        found = sealer(tmp_path, rows_max=1000)
        last = 0
        for _ in range(30):
            last = append(log, 20, blocks=5)
            seal(found, last)
        assert len(JournalReader(str(tmp_path / "journal")).segments()) > 3
    assert values(found.lake, "lsn") == list(range(1, last + 1))
    assert values(found.lake, "message_no") == list(range(1, last + 1))


def test_a_new_sealer_goes_on_where_the_lake_ends(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        seal(sealer(tmp_path), append(log, 4, blocks=2))
        last = append(log, 4, blocks=2)
        assert seal(sealer(tmp_path), last) == [(9, 16)]


def test_a_lake_that_only_has_history_left_says_where_to_go_on_too(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        seal(sealer(tmp_path), append(log, 4))
        incoming, history = (tmp_path / "lake/facts" / tier for tier in ("incoming", "history"))
        incoming.rename(history)
        assert seal(sealer(tmp_path), append(log, 4)) == [(5, 8)]


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_a_sealer_that_dies_at_any_step_loses_and_doubles_nothing(tmp_path: Path, when: str) -> None:
    with journal(tmp_path) as log:
        append(log, 4, NOON_NS, blocks=4)
        last = append(log, 4, NOON_NS + DAY_NS, blocks=2)
    deaths = 0
    for dies_at in range(1, 100):
        root = tmp_path / f"lake{dies_at}"
        lake, handler = mortal_lake(root, dies_at, when)
        try:
            seal(sealer(tmp_path, lake), last)
        except Died:
            deaths += 1
        again = sealer(tmp_path, Lake(str(root)))
        seal(again, last)
        assert values(again.lake, "lsn") == list(range(1, last + 1)), f"died at step {dies_at}: {handler.steps}"
        assert values(again.lake, "message_no") == list(range(1, last + 1))
        leftovers = [path.name for path in root.rglob("_*")]
        assert leftovers == []
        if len(handler.steps) < dies_at:
            break
    assert deaths == (3 if when == "torn" else 9)  # three files, three steps each, one of them a write


def test_a_store_that_fails_for_a_while_is_asked_again(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        last = append(log, 4, blocks=2)
        lake, _ = mortal_lake(tmp_path / "lake", 2)
        found = sealer(tmp_path, lake)
        found.take(last)
        with pytest.raises(Died):
            found.flush()
        assert (found.rows, found.sealed_lsn) == (8, 0)
        assert [file.part.rows for file in found.flush()] == [8]
        assert found.sealed_lsn == 8


def test_files_written_before_a_failure_are_announced_with_the_next(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        append(log, 4, NOON_NS)
        last = append(log, 4, NOON_NS + DAY_NS)
        lake, _ = mortal_lake(tmp_path / "lake", 5)  # the second file's write
        found = sealer(tmp_path, lake)
        found.take(last)
        with pytest.raises(Died):
            found.flush()
        assert [file.part.first_lsn for file in found.flush()] == [1, 5]
    assert values(lake, "lsn") == list(range(1, 9))


def test_facts_trimmed_before_they_were_sealed_are_a_gap(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with journal(tmp_path) as log:
        found = sealer(tmp_path, rows_max=1000)
        seal(found, append(log, 4))
        last = append(log, 20, blocks=120)
    oldest = sorted((tmp_path / "journal").glob("*.seg"))[0]
    oldest.unlink()
    first_kept = next(JournalReader(str(tmp_path / "journal")).read(1)).first_lsn
    assert first_kept > 5
    with caplog.at_level(logging.WARNING, "dragoman.lake"):
        seal(found, last)
    assert values(found.lake, "lsn") == [*range(1, 5), *range(first_kept, last + 1)]
    assert found.missed_facts == first_kept - 5
    assert f"facts 5 to {first_kept - 1} left the journal before they were sealed" in caplog.text


def test_a_lake_begun_late_misses_nothing(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        last = append(log, 20, blocks=120)
    sorted((tmp_path / "journal").glob("*.seg"))[0].unlink()
    found = sealer(tmp_path, rows_max=1000)
    seal(found, last)
    assert found.missed_facts == 0
    assert values(found.lake, "lsn")[-1] == last


def test_a_journal_put_back_to_an_earlier_state_is_refused(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        seal(sealer(tmp_path), append(log, 4, blocks=2))
    found = sealer(tmp_path)
    found.check_journal_end(8)
    with pytest.raises(LakeAhead, match="up to 8, its journal only up to 4"):
        found.check_journal_end(4)


def test_two_sealers_of_one_journal_do_not_meet(tmp_path: Path) -> None:
    directory = str(tmp_path / "journal")
    with sealing_alone(directory), pytest.raises(SealerBusy, match="a sealer already reads"), sealing_alone(directory):
        pass
    with sealing_alone(directory):
        pass


def test_the_journal_itself_says_how_far_it_is_synced(tmp_path: Path) -> None:
    with journal(tmp_path) as log:
        last = append(log, 4, blocks=3)
        reader = JournalReader(str(tmp_path / "journal"))
        assert reader.synced_lsn() < last
        assert reader.broker_id() == BROKER_ID
    assert reader.synced_lsn() == last  # closed in good order: its last block says so
    assert Lake(str(tmp_path)).parts(INCOMING) == []
