"""Small files become large ones, and no reader ever sees a fact twice or not at all."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import pytest

from dragoman import limits
from dragoman.errors import LakeDamaged
from dragoman.lake.compact import Compactor, next_group
from dragoman.lake.layout import HISTORY, INCOMING, Part
from dragoman.lake.store import Lake, Stored
from dragoman.lake.writer import LakeWriter
from tests.lake.journals import BROKER, BROKER_ID, DAY_NS, NOON_NS, facts, read_all, values
from tests.lake.stores import Died, mortal_lake

NOON_S = NOON_NS / 1e9
DAY_S = 86_400.0
TODAY, TOMORROW = datetime.date(2026, 1, 1), datetime.date(2026, 1, 2)


@pytest.fixture(autouse=True)
def small_files(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten rows are a large file here, forty the largest."""
    monkeypatch.setattr(limits, "LAKE_FILE_ROWS", 10)
    monkeypatch.setattr(limits, "LAKE_HISTORY_ROWS_MAX", 40)


def fill(lake: Lake, files: int, rows: int = 3, first: int = 1, time_ns: int = NOON_NS) -> int:
    """So many incoming files; the lsn behind them."""
    w = LakeWriter(lake, BROKER_ID, next_lsn=first)
    for _ in range(files):
        w.add(facts(first, rows), first, rows, time_ns)
        first += rows
        w.flush()
    return first


def compact(lake: Lake, now_s: float = NOON_S, is_all: bool = False, keep_s: float = 1e12) -> int:
    """Every step there is; how many."""
    compactor, steps = Compactor(lake, BROKER, keep_s), 0
    while compactor.step(now_s, is_all) is not None:
        steps += 1
    return steps


def ranges(lake: Lake, tier: str) -> list[tuple[int, int]]:
    return [(part.first_lsn, part.last_lsn) for part in lake.parts(tier)]  # type: ignore[arg-type]


def waiting(*rows: int, date: datetime.date = TODAY) -> list[Stored]:
    """Parts of so many rows, one behind the other; a negative number is a hole."""
    found, lsn = [], 1
    for count in rows:
        if count > 0:
            found.append(Stored(Part(BROKER, lsn, lsn + count - 1, date), INCOMING, count * 20, 0.0))
        lsn += abs(count)
    return found


@pytest.mark.parametrize(
    ("rows", "joined"),
    [
        ([], 0),
        ([3, 3, 3], 0),  # too little yet
        ([3, 3, 3, 3], 4),
        ([9, 9, 9, 9, 9], 4),  # a fifth would be too much
        ([12], 1),
        ([3, 12], 1),  # large ones stay as they are
        ([12, 3], 1),
        ([3, -5, 3, 3, 3, 3], 1),  # nothing will ever come behind the first
    ],
)
def test_what_is_worth_joining(rows: list[int], joined: int) -> None:
    group = next_group(waiting(*rows), TODAY)
    assert group == waiting(*rows)[:joined]


def test_a_date_that_is_over_is_joined_however_little_it_is() -> None:
    assert next_group(waiting(1, 1), TODAY) == []
    assert next_group(waiting(1, 1), TOMORROW) == waiting(1, 1)


def test_parts_of_two_dates_are_never_joined() -> None:
    late = Stored(Part(BROKER, 3, 4, TOMORROW), INCOMING, 40, 0.0)
    assert next_group([*waiting(1, 1), late], TODAY) == waiting(1, 1)


def test_very_many_files_are_joined_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LAKE_PARTS_MAX", 5)
    assert next_group(waiting(1, 1, 1, 1), TODAY) == []
    assert next_group(waiting(1, 1, 1, 1, 1), TODAY) == waiting(1, 1, 1, 1, 1)


def test_joined_files_hold_the_same_rows_in_order(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, 7)
    before = read_all(lake)
    assert compact(lake) == 1
    assert ranges(lake, HISTORY) == [(1, 21)]
    assert len(lake.parts(INCOMING)) == 7
    assert read_all(lake).equals(before)
    [part] = lake.parts(HISTORY)
    joined = lake.read(part, HISTORY)
    assert joined.equals(before)
    assert joined.schema.metadata[b"dragoman.broker_id"] == BROKER_ID.hex().encode()


def test_a_large_file_is_taken_over_as_it_is(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, 1, rows=15)
    compact(lake)
    [part] = lake.parts(HISTORY)
    assert (tmp_path / part.path(HISTORY)).read_bytes() == (tmp_path / part.path(INCOMING)).read_bytes()


def test_incoming_files_go_when_history_has_them_and_they_are_old(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    behind = fill(lake, 5)
    compact(lake)
    fill(lake, 1, first=behind)
    for path in tmp_path.rglob("*.parquet"):
        os.utime(path, (NOON_S, NOON_S))
    compactor = Compactor(lake, BROKER, 60)
    assert compactor.step(NOON_S + 59) is None
    assert len(lake.parts(INCOMING)) == 6
    tidied = compactor.step(NOON_S + 61)
    assert tidied is not None
    assert tidied.deleted == 5
    assert ranges(lake, INCOMING) == [(16, 18)]  # in history nowhere yet
    assert values(lake, "lsn") == list(range(1, 19))


def test_a_date_without_files_loses_its_directory(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, 4)
    compact(lake, NOON_S + 3 * DAY_S, keep_s=-1e12)
    assert list((tmp_path / "facts/incoming").iterdir()) == []
    assert values(lake, "lsn") == list(range(1, 13))


def test_a_compactor_is_notified_of_new_files(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    compactor = Compactor(lake, BROKER)
    w = LakeWriter(lake, BROKER_ID)
    for first in (1, 5, 9):
        w.add(facts(first, 4), first, 4, NOON_NS)
        for written in w.flush():
            compactor.add(written, NOON_S)
    assert compactor.waiting_rows == 12
    tidied = compactor.step(NOON_S)
    assert tidied is not None
    assert tidied.written is not None
    assert (tidied.written.part.first_lsn, tidied.written.part.last_lsn) == (1, 12)
    assert compactor.waiting_rows == 0
    assert compactor.step(NOON_S) is None


def test_asked_for_all_it_joins_the_rest_too(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    behind = fill(lake, 2)
    fill(lake, 2, first=behind, time_ns=NOON_NS + DAY_NS)
    assert compact(lake, NOON_S) == 1  # the first date can grow no more: the next has begun
    assert compact(lake, NOON_S, is_all=True) == 1
    assert ranges(lake, HISTORY) == [(1, 6), (7, 12)]


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_a_compaction_that_dies_at_any_step_changes_no_answer(tmp_path: Path, when: str) -> None:
    deaths = 0
    for dies_at in range(1, 100):
        root = tmp_path / str(dies_at)
        healthy = Lake(str(root))
        last = fill(healthy, 1, rows=12, first=fill(healthy, 4)) - 1
        lake, handler = mortal_lake(root, dies_at, when)
        try:
            compact(lake, NOON_S, is_all=True, keep_s=-1e12)
        except Died:
            deaths += 1
        assert values(healthy, "lsn") == list(range(1, last + 1)), f"died at step {dies_at}: {handler.steps}"
        assert values(healthy, "message_no") == list(range(1, last + 1))
        healthy.remove_temporary(BROKER)
        compact(healthy, NOON_S, is_all=True, keep_s=-1e12)
        assert values(healthy, "lsn") == list(range(1, last + 1))
        assert ranges(healthy, INCOMING) == []
        assert [part.rows for part in healthy.parts(HISTORY)] == [12, 12]
        if len(handler.steps) < dies_at:
            break
    assert deaths == (2 if when == "torn" else 11)  # two files of three steps each, five deletions


def test_a_part_that_is_not_what_its_name_says_stops_the_joining(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    fill(lake, 4)
    first, second, *_ = lake.parts(INCOMING)
    (tmp_path / second.path(INCOMING)).write_bytes((tmp_path / first.path(INCOMING)).read_bytes())
    with pytest.raises(LakeDamaged, match="not those of its name"):
        compact(lake)
    assert lake.parts(HISTORY) == []
