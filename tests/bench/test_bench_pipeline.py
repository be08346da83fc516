"""The pipeline's bench: contenders that write other rows are found out, and bars read the right way."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest

from bench.pairs import Pairs
from bench.pipeline import __main__ as command
from bench.pipeline import bars, lakes, race
from bench.pipeline.agree import ROWS, digests
from bench.pipeline.erlang import staffing
from bench.pipeline.numbers import TABLES
from bench.pipeline.race import Lap, Race

FACTS = 20_000


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_duckdb_and_polars_write_the_same_tables_and_one_changed_row_shows(tmp_path: Path) -> None:
    lake = lakes.lake(tmp_path / "lakes", FACTS, False, lambda _: None)
    laps = {name: race.lap(name, lake, tmp_path / name, warm_times=0) for name in ("duckdb", "polars")}
    assert all(lap.cold_s > 0 and lap.peak_mb > 10 for lap in laps.values())
    assert race.disagreements(tmp_path, list(laps)) == []
    found = digests(tmp_path / "duckdb" / "tables")
    filled = {table for table in TABLES if found[table][ROWS] > 0}
    assert filled >= set(TABLES) - {"orphans", "anomalies"}, "a table without rows compares nothing"

    file = tmp_path / "polars" / "tables" / "attempts" / "part.parquet"
    changed = file.with_name("changed.parquet")
    duckdb.sql(
        f"copy (select * replace (case when lsn = (select min(lsn) from '{file}') then held_ms + 1 else held_ms end as held_ms) "
        f"from '{file}') to '{changed}' (format parquet)"
    )
    changed.replace(file)
    (text,) = race.disagreements(tmp_path, list(laps))
    assert "attempts.held_ms" in text


def test_a_lake_is_made_once(tmp_path: Path) -> None:
    kept = tmp_path / f"facts-1000-seed-{lakes.SEED}"
    kept.mkdir()
    said: list[str] = []
    assert lakes.lake(tmp_path, 1000, False, said.append) == kept
    assert said == []


def test_the_figure_is_the_median_of_ratios_within_rounds() -> None:
    pairs = [(10.0, 20.0), (40.0, 60.0), (10.0, 30.0)]
    rounds = [{"polars": Lap("polars", 1, p, 300), "spark": Lap("spark", 1, s, 90)} for p, s in pairs]
    fifty = Race(50_000_000, rounds)
    assert fifty.ratio("spark", "polars", "warm_s") == 2.0
    assert fifty.ratio("spark", "duckdb", "warm_s") is None
    verdicts = {bar.text: bar.verdict for bar in bars.race_bars([fifty])}
    assert verdicts == {
        "50 M facts, warm: Spark to Polars": "missed",
        "50 M facts: Spark's memory to Polars'": "met",
    }


def test_growth_is_held_against_the_growth_of_facts() -> None:
    one = Race(1_000_000, [{"spark": Lap("spark", 1, 2.0, 1)}])
    ten = Race(10_000_000, [{"spark": Lap("spark", 1, 10.0, 1)}])
    growth = bars.race_bars([ten, one])[-1]
    assert (growth.value, growth.verdict) == (0.5, "met")


def test_what_sealing_costs_is_a_share_within_a_round() -> None:
    (bar,) = bars.sealing_bars(Pairs([(100.0, 98.0), (200.0, 192.0), (50.0, 40.0)]))
    assert bar.value == pytest.approx(4.0)
    assert bar.verdict == "met"
    assert bars.sealing_bars(Pairs())[0].verdict == "not measured"


def test_one_worker_at_half_load_waits_as_long_as_it_works() -> None:
    # M/M/1: the mean wait is load / (1 - load) × service.
    assert staffing(0.5, 100.0, 100.0) == (1, pytest.approx(100.0), pytest.approx(0.5))
    assert staffing(0.0, 100.0, 1.0) == (0, 0.0, 0.0)
    assert staffing(None, None, 1.0) == (None, None, None)


def test_sizes_and_parts_are_read_as_people_write_them(tmp_path: Path) -> None:
    given = command.arguments(["--facts", "1e6,50e6", "--only", "stream,race", "--out", str(tmp_path)])
    assert given.facts == [1_000_000, 50_000_000]
    assert given.only == ["stream", "race"]
    with pytest.raises(SystemExit):
        command.arguments(["--only", "nothing"])
    json.dumps(Race(10, []).to_json())
