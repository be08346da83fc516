"""The lake as a store: whole files or none, foreign files left alone, clear words for what is wrong."""

from __future__ import annotations

import datetime
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import fs, parquet

from dragoman.errors import LakeDamaged, LakeTooNew, LakeUnreachable, PyarrowMissing
from dragoman.lake.layout import HISTORY, INCOMING, Part
from dragoman.lake.store import Lake
from dragoman.lake.writer import LakeWriter
from tests.lake.journals import BROKER, BROKER_ID, NOON_NS, facts, values
from tests.lake.stores import Died, mortal_lake

OTHER_ID = bytes(16)


def filled(lake: Lake, first: int = 1, count: int = 3, broker_id: bytes = BROKER_ID) -> Part:
    w = LakeWriter(lake, broker_id, next_lsn=first)
    w.add(facts(first, count), first, count, NOON_NS)
    [written] = w.flush()
    return written.part


def test_parts_are_listed_in_order_by_shelf_and_broker(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    second, first, other = filled(lake, 4), filled(lake, 1), filled(lake, 1, 9, OTHER_ID)
    assert lake.parts(INCOMING) == [other, first, second]
    assert lake.parts(INCOMING, BROKER) == [first, second]
    assert lake.parts(HISTORY) == []
    assert (lake.last_lsn(BROKER), lake.last_lsn("f" * 16)) == (6, 0)


def test_an_empty_lake_needs_no_directory(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "not" / "there"))
    assert lake.parts(INCOMING) == []
    assert not (tmp_path / "not").exists()


def test_files_of_others_are_counted_and_left_alone(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    directory = (tmp_path / part.path(INCOMING)).parent
    for name in ("notes.txt", "*.parquet", "part-0.parquet"):
        (directory / name).write_text("mine")
    (directory / "_SUCCESS").touch()
    assert lake.parts(INCOMING) == [part]
    assert lake.remove_temporary(BROKER) == 0
    assert (directory / "*.parquet").read_text() == "mine"


@pytest.mark.parametrize("when", ["before", "torn", "after"])
def test_a_writer_that_dies_while_writing_leaves_nothing_a_reader_sees(tmp_path: Path, when: str) -> None:
    lake, handler = mortal_lake(tmp_path, 2, when)
    with pytest.raises(Died):
        filled(lake)
    assert handler.steps == ["create_dir", "write"]
    again = Lake(str(tmp_path))
    assert again.parts(INCOMING) == []
    assert again.remove_temporary("f" * 16) == 0  # another broker's leftovers are its own
    assert again.remove_temporary(BROKER) == (0 if when == "before" else 1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


def test_a_root_may_be_an_address(tmp_path: Path) -> None:
    lake = Lake(f"file://{tmp_path}/lake")
    part = filled(lake)
    assert Lake(str(tmp_path / "lake")).parts(INCOMING) == [part]
    assert lake.is_local


def test_an_object_store_is_written_to_without_renaming() -> None:
    """pyarrow's in-memory file system stands for one: it has a type of its own, and no disk to sync."""
    memory = fs._MockFileSystem()
    lake = Lake("bucket/lake", memory)
    part = filled(lake)
    assert lake.parts(INCOMING) == [part]
    assert values(lake, "lsn") == [1, 2, 3]
    assert not lake.is_local


@pytest.mark.parametrize("root", ["nowhere://bucket/x", "s4://x"])
def test_an_address_nobody_knows_is_refused_in_words(root: str) -> None:
    with pytest.raises(LakeUnreachable, match=f"the lake {root} cannot be used"):
        Lake(root)


def test_a_root_that_cannot_be_written_to_is_unreachable(tmp_path: Path) -> None:
    (tmp_path / "lake").write_text("a file is in the way")
    with pytest.raises(LakeUnreachable) as caught:
        filled(Lake(str(tmp_path / "lake")))
    assert caught.value.code == "LAKE_UNREACHABLE"


def test_a_file_of_a_later_schema_is_refused_with_both_versions(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    path = tmp_path / part.path(INCOMING)
    table = parquet.read_table(path, partitioning=None)
    parquet.write_table(table.replace_schema_metadata({"dragoman.schema_version": "99"}), path)
    with pytest.raises(LakeTooNew, match=r"schema version 99; this dragoman reads versions up to \d+"):
        lake.read(part, INCOMING)


def test_a_file_that_is_no_lake_file_is_damage(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    path = tmp_path / part.path(INCOMING)
    parquet.write_table(pa.table({"lsn": [1, 2, 3]}), path)
    with pytest.raises(LakeDamaged, match="does not say its schema version"):
        lake.read(part, INCOMING)
    path.write_bytes(b"PAR1 torn")
    with pytest.raises(LakeDamaged):
        lake.read(part, INCOMING)


def test_a_file_with_other_rows_than_its_name_says_is_damage(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    longer = Part(part.broker, part.first_lsn, part.last_lsn + 1, part.date)
    (tmp_path / part.path(INCOMING)).rename(tmp_path / longer.path(INCOMING))
    with pytest.raises(LakeDamaged, match="it has 3 rows, its name says 4"):
        lake.read(longer, INCOMING)


def test_the_footer_says_from_when_to_when_facts_are(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    w = LakeWriter(lake, BROKER_ID, next_lsn=1)
    w.add(facts(1, 2), 1, 2, NOON_NS)
    w.add(facts(3, 1), 3, 1, NOON_NS + 5_000_000_000)
    [written] = w.flush()
    noon = datetime.datetime.fromtimestamp(NOON_NS / 1e9, datetime.UTC)
    assert lake.span(written.part, INCOMING) == (noon, noon + datetime.timedelta(seconds=5))
    lake.delete(written.part, INCOMING)
    assert lake.span(written.part, INCOMING) is None


def test_a_garbled_footer_is_damage_of_the_file_and_not_a_failing_store(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    path = tmp_path / part.path(INCOMING)
    whole = path.read_bytes()
    size = int.from_bytes(whole[-8:-4], "little")
    path.write_bytes(whole[: -8 - size] + b"\xff" * size + whole[-8:])
    for look in (lake.span, lake.read):
        with pytest.raises(LakeDamaged, match=part.name):
            look(part, INCOMING)


def test_deleting_twice_is_as_good_as_once(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    part = filled(lake)
    lake.delete(part, INCOMING)
    lake.delete(part, INCOMING)
    assert lake.parts(INCOMING) == []
    lake.remove_empty(part.date, INCOMING)
    lake.remove_empty(datetime.date(2000, 1, 1), INCOMING)
    assert list((tmp_path / "facts/incoming").iterdir()) == []


def test_without_pyarrow_the_error_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(PyarrowMissing, match=r"dragoman\[lake\]"):
        Lake(str(tmp_path))
