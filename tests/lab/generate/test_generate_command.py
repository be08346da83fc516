"""`dragoman generate`: the lake it writes, and what it says to what it cannot do."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.dataset as dataset
import pytest

from dragoman.cli.root import run
from dragoman.journal.tools.verify import verify
from dragoman.lake import schema
from dragoman.lake.layout import INCOMING, parse
from dragoman_lab.generate.broker import Plan
from dragoman_lab.generate.lake import fill


def files(root: Path, tier: str) -> list[Path]:
    return sorted((root / "facts" / tier).rglob("*.parquet"))


def test_the_lake_has_every_fact_once_and_in_order(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "--facts", "6_000", "--days", "3", "--out", str(tmp_path), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["facts"] >= 6_000
    assert said["files"] == len(files(tmp_path, "history")) == 3
    table = dataset.dataset(files(tmp_path, "history"), format="parquet").to_table()
    assert table.num_rows == said["facts"]
    assert sorted(table["lsn"].to_pylist()) == list(range(1, said["facts"] + 1))
    kinds = table["kind"].to_pylist()
    assert kinds.count(next(no for no, name in schema.KINDS.items() if name == "accepted")) == said["messages"]


def test_the_same_command_writes_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert (
            run(["generate", "--facts", "2_000", "--days", "2", "--seed", "5", "--out", str(tmp_path / name), "--json"])
            == 0
        )
    one, two = ({path.name: path.read_bytes() for path in files(tmp_path / name, "history")} for name in ("one", "two"))
    assert one
    assert one == two


def test_incoming_files_are_small_and_follow_one_another(tmp_path: Path) -> None:
    filled = fill(str(tmp_path), [Plan(facts=5_000, days=0.5)], INCOMING, lambda done, total: None, rows_max=1_000)
    assert files(tmp_path, "history") == []
    parts = [part for path in files(tmp_path, "incoming") if (part := parse(str(path))) is not None]
    assert len(parts) == filled.files == 5
    assert [part.first_lsn for part in parts] == [1, *(part.last_lsn + 1 for part in parts[:-1])]
    assert parts[-1].last_lsn == filled.facts


def test_the_command_writes_incoming_files_where_it_is_asked_to(tmp_path: Path) -> None:
    assert run(["generate", "--facts", "1000", "--days", "1", "--out", str(tmp_path), "--incoming", "--json"]) == 0
    assert files(tmp_path, "history") == []
    assert len(files(tmp_path, "incoming")) == 1


def test_several_brokers_share_the_facts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["generate", "--facts", "4000", "--brokers", "2", "--days", "1", "--start", "2026-01-31"]
    assert run([*arguments, "--out", str(tmp_path)]) == 0
    parts = [part for path in files(tmp_path, "history") if (part := parse(str(path))) is not None]
    assert len({part.broker for part in parts}) == 2
    assert {part.date.isoformat() for part in parts} == {"2026-01-31"}
    assert sum(part.rows for part in parts) >= 4000
    assert "bytes per fact" in capsys.readouterr().out


def test_a_lake_that_has_these_facts_already_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["generate", "--facts", "1000", "--days", "1", "--out", str(tmp_path)]
    assert run(arguments) == 0
    before = {path: path.stat().st_mtime_ns for path in files(tmp_path, "history")}
    assert run(arguments) == 2
    assert "LAKE_TAKEN" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in files(tmp_path, "history")} == before
    assert run([*arguments, "--seed", "2"]) == 0, "another seed is another broker"


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--facts", "7", "1000<=x"),
        ("--facts", "many", "not a valid"),
        ("--days", "0", "0.05<=x"),
        ("--start", "yesterday", "does not match"),
        ("--queues", "1", "4<=x"),
        ("--open-share", "0.9", "0<=x<=0.5"),
    ],
)
def test_bad_arguments_are_named_in_the_error(
    option: str, value: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["generate", "--out", str(tmp_path / "lake"), option, value]) == 2
    said = capsys.readouterr().err
    assert option in said
    assert words in said
    assert not (tmp_path / "lake").exists()


def test_a_path_that_is_no_lake_is_reported(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "--out", "nowhere://x/y", "--facts", "1000"]) != 0
    assert "LAKE_UNREACHABLE" in capsys.readouterr().err


def test_a_generated_journal_is_sound_and_holds_the_same_facts_as_the_lake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ["--facts", "2_000", "--days", "2", "--seed", "5"]
    assert run(["generate", *wanted, "--journal", str(tmp_path / "data"), "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    report = verify(str(tmp_path / "data" / "journal"))
    assert report.is_sound
    assert report.facts == said["facts"] >= 2_000
    assert report.broker_id == Plan(seed=5).broker_id
    assert run(["generate", *wanted, "--journal", str(tmp_path / "data")]) == 5, "a journal is never written over"


def test_a_place_to_write_to_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["generate", "--facts", "2_000"]) == 2
    assert "--journal" in capsys.readouterr().err
