"""`dragoman seal` on the journal of a real broker, read back by pyarrow and by DuckDB."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from dragoman import App
from dragoman.cli.root import run
from dragoman.errors import JobFailed
from dragoman.journal.reader import JournalReader
from dragoman.lake.layout import HISTORY, INCOMING, broker_no
from dragoman.lake.sealer import sealing_alone
from dragoman.lake.store import Lake
from dragoman.model.facts.decode import decode_block
from dragoman.model.facts.layout import FACT_NAMES
from dragoman.testing.broker import RunningBroker
from tests.lake.journals import append, journal, read_all, values

JOBS = 20
OFF = ("lake.mode=off",)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data directory of a broker that did some work and was stopped; jobs divisible by 7 failed."""
    found = tmp_path_factory.mktemp("sealed") / "data"
    app = App(wait_s=20, answer_s=20)

    @app.job(queue="sums")
    def square(number: int) -> int:
        if number % 7 == 0:
            raise ValueError(number)
        return number * number

    with RunningBroker(found, "os", OFF) as broker:
        broker.attach(app)
        with broker.worker(app):
            for number in range(1, JOBS + 1):
                if number % 7:
                    assert square.ask_sync(number) == number * number
                else:
                    with pytest.raises(JobFailed):
                        square.ask_sync(number)
        app.close_sync()
    return found


def seal(capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    capfd.readouterr()
    code = run(["seal", *arguments])
    out, err = capfd.readouterr()
    return code, out, err


def journaled(data: Path) -> list[tuple[int, str, int, object]]:
    """lsn, kind, instant (µs) and message of every fact, straight from the journal."""
    found = []
    for block in JournalReader(str(data / "journal")).read(1):
        facts = [fact for fact in decode_block(block.records) if fact["fact"] not in ("carried", "checkpoint")]
        for lsn, fact in enumerate(facts, block.first_lsn):
            found.append((lsn, str(fact["fact"]), block.time_ns // 1000, fact.get("message_no")))
    return found


def test_a_real_journal_is_sealed_whole(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path / "lake")
    code, out, _ = seal(capfd, "--data", str(data), "--root", root, "--json")
    assert code == 0
    told, wanted = json.loads(out), journaled(data)
    assert (told["rows"], told["sealed_lsn"], told["missed_facts"]) == (len(wanted), wanted[-1][0], 0)
    table = read_all(Lake(root))
    kinds = [FACT_NAMES[kind] for kind in table.column("kind").to_pylist()]
    at_us = table.column("at").cast("int64").to_pylist()
    assert list(
        zip(table.column("lsn").to_pylist(), kinds, at_us, table.column("message_no").to_pylist(), strict=True)
    ) == [(lsn, kind, at, message_no or None) for lsn, kind, at, message_no in wanted]


def test_duckdb_finds_every_life_in_it(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    root = str(tmp_path / "lake")
    assert seal(capfd, "--data", str(data), "--root", root)[0] == 0
    facts = f"read_parquet('{root}/facts/incoming/**/*.parquet', hive_partitioning = true)"
    lives = duckdb.sql(
        f"""
        select count(*), count(*) filter (c.outcome = 3), count(*) filter (c.outcome = 4), bool_and(c."at" >= c.first_leased_at),
               bool_and(c.first_leased_at >= c.accepted_at), bool_and(a."at" = c.accepted_at), bool_and(c.attempt = 1),
               bool_and(l.worker_no = c.worker_no), bool_and(a.body_size = c.body_size), count(distinct a.client_id), min(q.text)
        from {facts} c
        join {facts} a on a.kind = 5 and a.message_no = c.message_no
        join {facts} l on l.kind = 6 and l.message_no = c.message_no
        join (select distinct queue_no, text from {facts} where kind = 2) q on q.queue_no = c.queue_no
        where c.kind = 9
        """
    ).fetchall()
    assert lives == [(JOBS, JOBS - 2, 2, True, True, True, True, True, True, JOBS, "sums")]
    broker_id = JournalReader(str(data / "journal")).broker_id()
    assert broker_id is not None
    assert duckdb.sql(f"select distinct broker_id from {facts}").fetchall() == [(broker_no(broker_id),)]


def test_sealing_again_finds_nothing_new(data: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ["--data", str(data), "--root", str(tmp_path / "lake")]
    assert "bytes each" in seal(capfd, *arguments)[1]
    assert f"{tmp_path / 'lake'}: 0 facts in 0 files" in seal(capfd, *arguments)[1]


def test_compact_joins_everything_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for _ in range(3):
        with journal(data) as log:
            append(log, 5)
        seal(capfd, "--data", str(data))
    code, out, _ = seal(capfd, "--data", str(data), "--compact", "--json")
    told = json.loads(out)
    assert (code, told["history_rows"], told["history_files"], told["rows"]) == (0, 15, 1, 0)
    lake = Lake(str(data / "lake"))
    assert [part.rows for part in lake.parts(INCOMING)] == [5, 5, 5]
    assert [part.rows for part in lake.parts(HISTORY)] == [15]
    assert values(lake, "lsn") == list(range(1, 16))


def test_it_refuses_while_another_sealer_is_at_work(data: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with sealing_alone(str(data / "journal")):
        code, _, err = seal(capfd, "--data", str(data))
    assert code == 1
    assert "[SEALER_BUSY]" in err


def test_without_a_journal_it_says_so(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = seal(capfd, "--data", str(tmp_path / "nobody"))
    assert code == 5
    assert "contains no journal" in err
    assert not (tmp_path / "nobody").exists()


def test_a_running_brokers_journal_is_sealed_as_far_as_it_is_safe(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with journal(tmp_path) as log:
        append(log, 5, blocks=2)
        log.sync()
        append(log, 5)  # says in its header that what is before it is synced; of itself nobody says so
        code, out, _ = seal(capfd, "--data", str(tmp_path), "--json")
    assert code == 0
    assert json.loads(out)["sealed_lsn"] == 10
