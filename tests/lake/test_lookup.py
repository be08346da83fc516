"""What the journal no longer keeps is read from the lake, in the journal's own words."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli.inspect.history import lake_root
from dragoman.cli.root import run
from dragoman.errors import TraceNotFound
from dragoman.journal.journal import Journal
from dragoman.journal.reader import JournalReader
from dragoman.journal.settings import JournalSettings
from dragoman.lake.layout import HISTORY
from dragoman.lake.lookup import facts_of
from dragoman.lake.sealer import Sealer
from dragoman.lake.store import Lake
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.records import FactLog
from dragoman.runtime.search.lives import MessageHistory
from dragoman.runtime.search.trace import find_lives
from dragoman_lab.generate.broker import Plan
from dragoman_lab.generate.world import World
from tests.runtime.conftest import NewBroker, new_broker
from tests.runtime.search.histories import trace
from tests.waiting import wait_for

__all__ = ["new_broker"]

PLAN = Plan(facts=6_000, seed=3, days=4)
NOT_IN_THE_LAKE = {"address", "dedupe", "headers", "source", "worker", "next_due_ns", "died_with"}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data directory with a journal of several segments and a lake that has all of it."""
    data = tmp_path_factory.mktemp("data")
    settings = JournalSettings(str(data / "journal"), "os", segment_size=256 * 1024, zero_fill=False)
    journal = Journal.open(settings, new_broker_id=PLAN.broker_id)

    def take(records: bytes, first_lsn: int, count: int, time_ns: int) -> None:
        if journal.wants_roll(len(records)):
            journal.roll()
        journal.append([records], count, time_ns)

    World(PLAN).run(take)
    journal.close()
    sealer = Sealer(JournalReader(str(data / "journal")), PLAN.broker_id, Lake(str(data / "lake")))
    while sealer.take(journal.synced_lsn):
        sealer.flush()
    sealer.flush()
    lake = sealer.lake
    first = lake.parts("incoming")[0]
    lake.copy(first, "incoming", HISTORY)  # held twice: it must not be told twice
    return data


@pytest.fixture(scope="module")
def whole(data: Path) -> list[dict[str, Any]]:
    """Every accepted fact, while the journal still had it."""
    facts = [fact for block in JournalReader(str(data / "journal")).read(0) for fact in decode_block(block.records)]
    return [fact for fact in facts if fact["fact"] == "accepted"]


@pytest.fixture
def trimmed(data: Path, whole: list[dict[str, Any]], tmp_path: Path) -> Path:
    """The same data directory after its journal has lost its two oldest segments."""
    assert whole
    copy = tmp_path / "trimmed"
    (copy / "journal").mkdir(parents=True)
    (copy / "lake").symlink_to(data / "lake")
    names = sorted(path.name for path in (data / "journal").glob("*.seg"))
    assert len(names) > 4
    for name in names[2:]:
        (copy / "journal" / name).symlink_to(data / "journal" / name)
    return copy


def as_the_lake_says(life: MessageHistory) -> list[dict[str, Any]]:
    """A life's facts as far as the lake has them: without what it leaves out, instants in microseconds."""
    facts = []
    for fact in life.facts:
        said = {field: value for field, value in fact.items() if field not in NOT_IN_THE_LAKE}
        instants = {field: value // 1000 * 1000 for field, value in said.items() if field.endswith("_ns")}
        facts.append(said | instants)
    return facts


def test_a_trace_from_the_lake_equals_the_trace_from_the_journal(
    data: Path, trimmed: Path, whole: list[dict[str, Any]]
) -> None:
    seen: set[str] = set()
    for fact in whole[:: len(whole) // 40]:
        key = str(fact["message_no"])
        told, kept = (
            find_lives(str(trimmed / "journal"), key, lake=str(trimmed / "lake")),
            trace(str(data / "journal"), key),
        )
        assert [as_the_lake_says(life) for life in told] == [as_the_lake_says(life) for life in kept], key
        assert [(life.number, life.queue, life.client_id) for life in told] == [
            (life.number, life.queue, life.client_id) for life in kept
        ]
        seen |= {fact["source"] for life in told for fact in life.facts}
    assert seen == {"journal", "lake"}


@pytest.mark.parametrize("is_by_id", [False, True])
def test_the_history_of_a_message_before_it_was_carried_forward_comes_from_the_lake(
    data: Path, tmp_path: Path, is_by_id: bool
) -> None:
    number, client_id, record = first_record(data / "journal")
    carried = tmp_path / "journal"
    shutil.copytree(data / "journal", carried)
    journal = Journal.open(JournalSettings(str(carried), "os", segment_size=256 * 1024, zero_fill=False))
    log = FactLog()
    log.carried(record, 1)
    journal.append(log.take_parts(), 0, 2**62)
    journal.close()
    for path in sorted(carried.glob("*.seg"))[:2]:
        path.unlink()
    key = client_id if is_by_id else str(number)
    [alone] = find_lives(str(carried), key)
    assert [fact["fact"] for fact in alone.facts] == ["carried"]
    [life] = find_lives(str(carried), key, lake=str(data / "lake"))
    [kept] = trace(str(data / "journal"), key)
    assert as_the_lake_says(life) == as_the_lake_says(kept)
    assert len(life.facts) > 2


def first_record(journal: Path) -> tuple[int, str, bytes]:
    """Number, client's id and record of the first message that gave an id nobody else gave."""
    for block in JournalReader(str(journal)).read(0):
        at = 0
        for fact in decode_block(block.records):
            size = int.from_bytes(block.records[at : at + 4], "little")
            if fact["fact"] == "accepted" and fact["client_id"] and fact["dialect"] == "emqp":
                if len(trace(str(journal), str(fact["client_id"]))) == 1:
                    return int(str(fact["message_no"])), str(fact["client_id"]), block.records[at : at + size]
            at += size
    raise AssertionError("nobody gave an id")


def test_a_life_that_is_gone_from_the_journal_is_found_by_its_clients_id(
    trimmed: Path, whole: list[dict[str, Any]]
) -> None:
    first = next(fact for fact in whole if fact["client_id"] and fact["dialect"] != "rq")
    key = str(first["client_id"])
    assert find_lives(str(trimmed / "journal"), key) == []
    lives = find_lives(str(trimmed / "journal"), key, lake=str(trimmed / "lake"))
    assert first["message_no"] in [life.number for life in lives]
    assert lives[0].is_begun


def test_workers_in_the_lake_have_names(trimmed: Path, whole: list[dict[str, Any]]) -> None:
    lives = [find_lives(str(trimmed / "journal"), str(f["message_no"]), lake=str(trimmed / "lake")) for f in whole[:5]]
    leases = [fact for [life] in lives for fact in life.facts if fact["fact"] == "leased"]
    assert leases
    assert all(fact["worker"] for fact in leases)


def test_an_id_that_nobody_had_is_in_neither(trimmed: Path) -> None:
    assert find_lives(str(trimmed / "journal"), "nobody", lake=str(trimmed / "lake")) == []


def test_another_lake_is_named_by_the_command_the_settings_or_the_broker(
    data: Path,
    trimmed: Path,
    whole: list[dict[str, Any]],
    new_broker: NewBroker,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (trimmed / "lake").unlink()
    command = ["trace", str(whole[0]["message_no"]), "--data", str(trimmed)]
    assert run(command) == TraceNotFound.exit_code
    assert run([*command, "--lake", str(data / "lake")]) == 0
    assert "read from the lake" in capfd.readouterr().out
    monkeypatch.setenv("DRAGOMAN_LAKE__ROOT", str(data / "lake"))
    assert run(command) == 0
    assert "read from the lake" in capfd.readouterr().out
    elsewhere = data.parent / "elsewhere"
    broker = new_broker("lake.mode=on", f"lake.root={elsewhere}").start()
    wait_for("its lake", elsewhere.is_dir, 60)
    assert lake_root(broker.data) == str(elsewhere)


def test_the_facts_of_another_broker_are_not_exported(data: Path, whole: list[dict[str, Any]]) -> None:
    number = whole[0]["message_no"]
    assert facts_of(str(data / "lake"), PLAN.broker_id, b"", {number})
    assert facts_of(str(data / "lake"), bytes(16), b"", {number}) == []


def test_the_command_says_that_facts_came_from_the_lake(
    trimmed: Path, whole: list[dict[str, Any]], capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(["trace", str(whole[0]["message_no"]), "--data", str(trimmed)]) == 0
    out = capfd.readouterr().out
    assert "accepted" in out
    assert "read from the lake" in out


def test_an_unreadable_lake_is_reported_and_the_rest_is_shown(
    trimmed: Path, data: Path, whole: list[dict[str, Any]], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    broken = tmp_path / "broken"
    part = Lake(str(data / "lake")).parts("incoming")[0]
    path = broken / part.path("incoming")
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 this is no table")
    notes: list[str] = []
    assert find_lives(str(trimmed / "journal"), str(whole[0]["message_no"]), lake=str(broken), notes=notes) == []
    assert "could not be asked" in notes[0]
    (trimmed / "lake").unlink()
    (trimmed / "lake").symlink_to(broken)
    assert run(["trace", str(whole[0]["message_no"]), "--data", str(trimmed)]) == 4
    assert "could not be asked" in capfd.readouterr().err


def test_without_pyarrow_the_command_says_what_is_missing(
    trimmed: Path, whole: list[dict[str, Any]], tmp_path: Path
) -> None:
    (tmp_path / "pyarrow.py").write_text("raise ImportError('not here')")
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    command = [sys.executable, "-m", "dragoman", "trace", str(whole[0]["message_no"]), "--data", str(trimmed)]
    ended = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert ended.returncode == 4
    assert "could not be asked for what the journal no longer keeps" in ended.stderr
    assert "pyarrow" in ended.stderr
