"""DuckDB's part: every table from the lake's Parquet files, in SQL, each written with COPY. Two threads, otherwise as it comes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb

from bench.pipeline import duckdb_gold as gold
from bench.pipeline import duckdb_silver as silver
from bench.pipeline.erlang import staffing
from bench.pipeline.numbers import (
    ATTEMPT_ENDS,
    BUCKETS_PER_OCTAVE,
    DIALECTS,
    ENDS,
    FAILURES,
    KIND,
    LIFE,
    LN_2,
    OUTCOME,
    REASON,
    REASONS,
    WINDOWS,
    numbers,
)
from dragoman_spark.transforms.checks.objectives import DEFAULTS, mean_waits_ms, shares

THREADS = 2


def _listed(values: Any) -> str:
    return ", ".join(str(value) for value in values)


def _worded(words: dict[int, str], column: str) -> str:
    cases = " ".join(f"when {number} then '{word}'" for number, word in words.items())
    return f"case {column} {cases} else 'unknown_' || {column} end"


_MACROS = f"""
create macro dialect(n) as {_worded(DIALECTS, "n")};
create macro reason_word(n) as {_worded(REASONS, "n")};
create macro named(name, n) as coalesce(name, '#' || n);
create macro people_see(n) as (n >> 40) || '.' || (n & ((1::bigint << 40) - 1));
create macro plural(n, noun) as n || ' ' || noun || case when n = 1 then '' else 's' end;
create macro said_utc(t) as strftime(make_timestamp(epoch_us(t)), '%Y-%m-%d %H:%M:%S UTC');
create macro said_span(s) as case when s >= 172800 then floor(s / 86400)::bigint || ' d' when s >= 7200 then floor(s / 3600)::bigint
    || ' h' when s >= 120 then floor(s / 60)::bigint || ' min' else floor(greatest(s, 0))::bigint || ' s' end;
create macro bucket(ms) as case when round(ms * 1000) < 1 then 0
    else (floor(ln(round(ms * 1000)) / {LN_2!r}::double * {BUCKETS_PER_OCTAVE}) + 1)::int end;
create macro make_timestamptz(us) as to_timestamp(us / 1_000_000);
create macro next_hour(t) as ceil(epoch_us(t) / 3_600_000_000)::bigint;
create macro of_season(b, e, hour, hours) as
    (floor((e - 1 - hour % hours) / hours) - floor((b - 1 - hour % hours) / hours))::bigint;
create macro list_median(l) as list_aggregate(l, 'median');
"""


class DuckDb:
    """One run over one lake."""

    def __init__(self, lake: Path, out: Path) -> None:
        self.out = out
        self.base = duckdb.connect(config={"threads": THREADS, "temp_directory": str(out / "spill")})
        self.base.execute("set timezone = 'UTC'; set preserve_insertion_order = false")
        files = f"{lake}/facts/history/*/*.parquet"
        self.base.execute(
            f"create view facts as from read_parquet('{files}', hive_partitioning = false, union_by_name = false)"
        )
        self.base.execute(_MACROS)
        self.words: dict[str, Any] = KIND | {word: OUTCOME[word] for word in ENDS}
        self.words |= {
            "why": REASON,
            "life": _listed(numbers(*LIFE)),
            "ends": _listed(numbers(*ATTEMPT_ENDS)),
            "kinds": _listed(KIND.values()),
            "outcomes": _listed(OUTCOME[word] for word in ENDS),
            "reasons": _listed(REASONS),
            "dialects": _listed(DIALECTS),
            "failures": _listed(REASON[word] for word in FAILURES),
        }

    def value(self, sql: str) -> Any:
        row = self.base.execute(sql.format(**self.words)).fetchone()
        assert row is not None
        return row[0]

    def write(self, name: str, sql: str) -> None:
        """Write a table, and let those after it read what was written."""
        folder = self.out / name
        folder.mkdir(parents=True)
        file = folder / "part.parquet"
        self.base.execute(f"copy ({sql.format(**self.words)}) to '{file}' (format parquet, compression zstd)")
        self.base.execute(f"create view \"{name}\" as from read_parquet('{file}')")

    def run(self) -> None:
        now_us = self.value('select epoch_us(max("at")) from facts')
        self.words["now"] = f"make_timestamptz({now_us}::bigint)"
        self.words["now_no"], self.words["next_no"] = now_us // 3_600_000_000, -(-now_us // 3_600_000_000)
        self.silver()
        self.write("latency", gold.LATENCY)
        self.write("throughput", gold.THROUGHPUT)
        self.write("funnel", gold.FUNNEL)
        self.write("crossings", gold.CROSSINGS)
        self.write("workers", gold.WORKERS)
        self.write("stuck", gold.STUCK)
        self.slo()
        self.base.execute(f"create temp table hours as {gold.HOURS}")
        self.base.execute(f"create temp table forecast as {gold.FORECAST.format(**self.words)}")
        self.capacity()
        self.write("anomalies", gold.ANOMALIES)

    def silver(self) -> None:
        self.write("events", silver.EVENTS)
        self.write("queues", silver.QUEUES)
        self.write("peers", silver.PEERS)
        self.write("messages", silver.MESSAGES)
        self.write("attempts", silver.ATTEMPTS)
        self.base.execute(f"create temp table lives as {silver.LIVES.format(**self.words)}")
        self.write("open", silver.OPEN)
        self.write("orphans", silver.ORPHANS)
        self.quality()

    def quality(self) -> None:
        conditions = [(name, is_fatal, text.format(**self.words)) for name, is_fatal, text in silver.OF_FACTS]
        counts = ", ".join(f"count(*) filter ({text})" for _, _, text in conditions)
        found = self.base.execute(f"select {counts} from facts").fetchone()
        assert found is not None
        rows: list[tuple[str, int, bool, str | None]] = []
        for (name, is_fatal, text), count in zip(conditions, found, strict=True):
            broken = f"select to_json(f) from facts as f where {text} order by lsn limit 1"
            rows.append((name, count, is_fatal, self.value(broken) if count else None))
        rows.append(("orphan", self.value("select count(*) from orphans"), True, None))
        rows.append(("time_backwards", self.value(silver.TIME_BACKWARDS), True, None))
        rows.append(("gap", self.value(silver.GAPS), True, None))
        rows.append(("schema_version", 0, True, None))
        self.base.execute(
            "create temp table judged (batch bigint, expectation varchar, rows bigint, is_fatal boolean, example varchar)"
        )
        self.base.executemany("insert into judged values (0, ?, ?, ?, ?)", rows)
        self.write("quality", "from judged")

    def slo(self) -> None:
        self.base.execute('create temp table windows ("window" varchar, hours int)')
        self.base.executemany("insert into windows values (?, ?)", [list(window) for window in WINDOWS])
        self.base.execute(
            "create temp table objectives (objective varchar, queue varchar, measure varchar, threshold_ms double, target double)"
        )
        rows = [[one.name, one.queue, one.measure, one.threshold_ms, one.target] for one in shares(DEFAULTS)]
        self.base.executemany("insert into objectives values (?, ?, ?, ?, ?)", rows)
        self.write("slo", gold.SLO)

    def capacity(self) -> None:
        wanted = mean_waits_ms(DEFAULTS)
        rows = []
        asked = "select hour, queue, load_erlangs, service_ms from forecast"
        for hour, queue, load, service_ms in self.base.execute(asked).fetchall():
            wait_ms = wanted.get(queue, wanted["*"])
            rows.append((hour, queue, wait_ms, *staffing(load, service_ms, wait_ms)))
        columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in range(6)]
        kinds = ("timestamptz", "varchar", "double", "int", "double", "double")
        names = ("hour", "queue", "wait_objective_ms", "workers_needed", "wait_ms", "wait_probability")
        unnested = ", ".join(f"unnest(?::{kind}[]) as {name}" for name, kind in zip(names, kinds, strict=True))
        self.base.execute(f"create temp table staffed as select {unnested}", columns)
        self.write("capacity", gold.CAPACITY)


def run(lake: Path, out: Path) -> None:
    """Make every table."""
    DuckDb(lake, out).run()
