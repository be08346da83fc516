"""Whether two contenders wrote the same tables: rows, and of each column how many values it has and what they add up to.

Whole numbers, instants and words must agree to the last digit; words by a sum of their hashes. Durations and shares are doubles that
were worked out in another order, so they may differ in the last digits. So may a logarithm: of ten million durations one or two lie so
close to the border of two buckets that libraries do not agree on which side.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import duckdb

from bench.pipeline.numbers import TABLES

RELATIVE = 1e-12
ROWS = "(rows)"
# What is about a batch or a way of saying it, and not about the lake.
LEFT_OUT = {"quality": ("batch", "example")}
KEYS = {
    "latency": ("hour", "queue", "client_dialect", "worker_dialect", "measure", "bucket"),
    "throughput": ("minute", "queue", "client_dialect"),
    "funnel": ("date", "queue", "client_dialect"),
    "crossings": ("date", "client_dialect", "worker_dialect"),
}

Digest = dict[str, Any]


def files_of(out: Path, table: str) -> str:
    """Where a table's rows are: the folder it was last stated in, else all of its own."""
    stated = out / "stated.json"
    folder = json.loads(stated.read_text()).get(table) if stated.exists() else None
    return f"{out}/{table}/{folder}/*.parquet" if folder else f"{out}/{table}/**/*.parquet"


def digests(out: Path) -> dict[str, Digest]:
    """Of each table, its rows and its columns' sums. Counts with the same keys are added up first, as their readers do."""
    found = {}
    with duckdb.connect() as base:
        base.execute("set timezone = 'UTC'")
        for table in TABLES:
            frame = f"read_parquet('{files_of(out, table)}', hive_partitioning = false)"
            described = base.execute(f"describe from {frame}").fetchall()
            columns = {name: kind for name, kind, *_ in described if name not in LEFT_OUT.get(table, ())}
            if keys := KEYS.get(table):
                sums = ", ".join(f"sum({name}) as {name}" for name in columns if name not in keys)
                frame = f"(select {', '.join(keys)}, {sums} from {frame} group by all)"
            asked = ", ".join(f'count("{name}"), {_summed(name, kind)}' for name, kind in columns.items())
            row = base.execute(f"select count(*), {asked} from {frame}").fetchone()
            assert row is not None
            pairs = zip(columns, zip(row[1::2], row[2::2], strict=True), strict=True)
            found[table] = {ROWS: row[0]} | {name: list(pair) for name, pair in pairs}
    return found


def _summed(name: str, kind: str) -> str:
    quoted = f'"{name}"'
    if kind.startswith("TIMESTAMP"):
        return f"sum(epoch_us({quoted})::hugeint)::varchar"
    if kind == "DATE":
        return f"sum({quoted} - date '1970-01-01')::varchar"
    if kind in ("DOUBLE", "FLOAT") or kind.startswith("DECIMAL"):
        return f"fsum({quoted}::double)"
    if kind == "BOOLEAN":
        return f"count(*) filter ({quoted})::varchar"
    if kind.endswith(("INT", "INTEGER")):
        return f"sum({quoted}::hugeint)::varchar"
    return f"sum(hash({quoted}::varchar)::hugeint)::varchar"


def differences(ours: dict[str, Digest], theirs: dict[str, Digest]) -> list[str]:
    """What is not the same, in words; empty when they agree."""
    found = []
    for table in TABLES:
        one, other = ours[table], theirs[table]
        for name in sorted({*one, *other}):
            is_same = _is_near if (table, name) == ("latency", "bucket") else _is_same
            if not is_same(one.get(name), other.get(name)):
                found.append(f"{table}.{name}: {one.get(name)} and {other.get(name)}")
    return found


def _is_near(one: Any, other: Any) -> bool:
    """Buckets, as a count and their sum: of each million one may lie on the other side of its border."""
    (rows, total), (other_rows, other_total) = one, other
    return bool(rows == other_rows and abs(int(total) - int(other_total)) <= math.ceil(rows / 1_000_000))


def _is_same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list):
        return all(_is_same(*pair) for pair in zip(one, other, strict=True))
    if isinstance(one, float) and isinstance(other, float):
        return math.isclose(one, other, rel_tol=RELATIVE, abs_tol=1e-9)
    return bool(one == other)
