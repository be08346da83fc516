"""Tables that a report can be made of: two weeks of a small but lively broker, from a seed. No pipeline is asked for them."""

from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.report.section import Reader
from dragoman_spark.schemas import Table
from dragoman_spark.tables import BY_NAME

Rows = dict[str, list[dict[str, Any]]]

FIRST = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)  # a Monday
# Busiest first; foreign text in all its beauty.
QUEUES = (
    "mail.send", "thumbs", "<script>alert(1)</script>", "billing.invoices", "$\\frac{1}{2}$", "_private", "webhooks & hooks",
    "a-queue-with-a-name-so-long-that-no-label-could-ever-hold-all-of-it", "search.index", "geo", "推送",
)  # fmt: skip
DIALECTS = ("scale0", "pingpong", "emqp", "ebus", "rq")
OPEN = 37

_ARROW = {
    "byte": pa.int8(), "short": pa.int16(), "int": pa.int32(), "long": pa.int64(), "double": pa.float64(), "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"), "date": pa.date32(), "string": pa.string(), "binary": pa.binary(),
    "strings": pa.list_(pa.string()),
}  # fmt: skip


def tables(seed: int, days: int = 14) -> Rows:
    """Every table's rows, whose sums fit each other: what was accepted has ended or is open."""
    chance = np.random.default_rng(seed)
    rows: Rows = {name: [] for name in BY_NAME}
    waits = Counter[tuple[Any, ...]]()
    for hour_no in range(24 * days):
        hour = FIRST + dt.timedelta(hours=hour_no)
        busy = (0.25 + np.exp(-(((hour.hour - 13) / 5) ** 2))) * (0.4 if hour.weekday() > 4 else 1.0)
        for place, queue in enumerate(QUEUES):
            _hour_of(
                rows,
                waits,
                chance,
                hour,
                queue,
                busy * 40 / (1 + place),
                slow=hour.hour in (9, 10) and hour.weekday() == 0,
            )
    rows["latency"] = [
        dict(zip(BY_NAME["latency"].names, (*key, number), strict=True))
        for key, number in sorted(waits.items(), key=str)
    ]
    # What is open was accepted too.
    rows["throughput"][0]["accepted"] += OPEN
    rows["funnel"][0]["accepted"] += OPEN
    _workers(rows, chance, days)
    _answers(rows, chance, days)
    _the_rest(rows, days)
    return rows


def _hour_of(
    rows: Rows,
    waits: Counter[Any],
    chance: np.random.Generator,
    hour: dt.datetime,
    queue: str,
    rate: float,
    *,
    slow: bool,
) -> None:
    number = int(chance.poisson(rate))
    ends = [int(n) for n in chance.multinomial(number, (0.962, 0.02, 0.012, 0.006))]
    done, rejected, expired, cancelled = ends
    client, worker = (str(word) for word in chance.choice(DIALECTS, 2, p=(0.3, 0.1, 0.35, 0.1, 0.15)))
    released = int(chance.binomial(number, 0.03))
    wait_ms = chance.lognormal(3.0 + (3.5 if slow else 0.0), 1.1, number)
    work_ms = chance.lognormal(4.0, 0.8, number)
    share = {"done": done, "rejected": rejected, "expired": expired, "cancelled": cancelled}
    rows["throughput"].append({
        "minute": hour + dt.timedelta(minutes=int(chance.integers(60))), "queue": queue, "client_dialect": client, "accepted": number,
        **share, "released": released, "quarantined": released // 9, "waited": number, "wait_ms": float(wait_ms.sum()),
        "worked": done, "work_ms": float(work_ms[:done].sum()), "body_bytes": number * 300, "reply_bytes": done * 80,
    })  # fmt: skip
    rows["funnel"].append({
        "date": hour.date(), "queue": queue, "client_dialect": client, "accepted": number, "leased": number - expired,
        "delivered": number // 5, **share, "quarantined": released // 9, "requeued": 0, "retried": released, "retries": released + 1,
    })  # fmt: skip
    settled = done + rejected
    for side, some in ((worker, settled), (None, number - settled)):
        rows["crossings"].append({
            "date": hour.date(), "client_dialect": client, "worker_dialect": side, "messages": some, "done": min(done, some),
            "wait_ms": some * 30.0, "work_ms": some * 70.0, "total_ms": some * 100.0, "body_bytes": 0, "reply_bytes": 0,
        })  # fmt: skip
    for measure, values in (("wait", wait_ms), ("work", work_ms), ("total", wait_ms + work_ms)):
        for value in values:
            waits[hour, queue, client, worker, measure, int(np.floor(np.log2(value * 1000) * 32)) + 1] += 1


def _workers(rows: Rows, chance: np.random.Generator, days: int) -> None:
    for n in range(90):
        joined = FIRST + dt.timedelta(hours=float(chance.uniform(0, 24 * days - 1)))
        stay_ms = float(min(chance.lognormal(17.5, 1.6), 86_400_000.0 * days))
        use = float(chance.beta(2, 3))
        left = None if n % 5 == 0 else joined + dt.timedelta(milliseconds=stay_ms)
        rows["workers"].append({
            "broker_id": 7, "worker_no": n, "worker": f"worker-{n:02}", "worker_dialect": DIALECTS[n % 5], "joined_at": joined, "left_at": left,
            "left_because": None if left is None else ("connection_ended", "heartbeat_lost", "worker_left")[n % 3],
            "connected_ms": stay_ms, "busy_ms": stay_ms * use, "idle_ms": stay_ms * (1 - use), "utilisation": use, "held_mean": use * 1.4,
            "attempts": n * 40, "done": n * 38, "failed": n, "deaths": int(n % 7 == 0), "work_ms_mean": 71.5,
        })  # fmt: skip


def _answers(rows: Rows, chance: np.random.Generator, days: int) -> None:
    for objective, queue, rates in (
        ("answers", "*", (0.4, 0.7, 0.9)),
        ("mail is quick", "mail.send", (14.2, 3.1, 0.8)),
        ("thumbs", "thumbs", (None, 0.2, 0.3)),
    ):
        for window, rate in zip(("1h", "6h", "3d"), rates, strict=True):
            good = None if rate is None else 1 - rate * 0.01
            rows["slo"].append({
                "objective": objective, "queue": queue, "window": window, "measure": "success" if queue == "*" else "total",
                "threshold_ms": None if queue == "*" else 250.0, "target": 0.99, "messages": 0 if rate is None else 5000,
                "good": 0 if good is None else int(5000 * good), "share": good, "burn_rate": rate, "is_met": None if good is None else good >= 0.99,
            })  # fmt: skip
    for n in range(168):
        hour = FIRST + dt.timedelta(days=days, hours=n)
        busy = 0.3 + np.exp(-(((hour.hour - 13) / 5) ** 2))
        for place, queue in enumerate(QUEUES):
            needed = int(np.ceil(busy * 12 / (1 + place)))
            rows["capacity"].append({
                "hour": hour, "queue": queue, "arrivals_per_s": busy * 40 / (1 + place), "service_ms": 71.0, "load_erlangs": needed * 0.8,
                "wait_objective_ms": 100.0, "workers_needed": needed, "wait_ms": 42.0, "wait_probability": 0.2, "weeks": days // 7,
            })  # fmt: skip
    for n in range(30):
        metric = ("accepted", "failed", "wait_ms")[n % 3]
        score = float(chance.choice((-1, 1)) * chance.uniform(4, 20))
        rows["anomalies"].append({
            "hour": FIRST + dt.timedelta(hours=int(chance.integers(24 * days))), "queue": QUEUES[n % len(QUEUES)], "metric": metric,
            "value": 900.0, "expected": 120.0, "spread": 30.0, "score": score, "season": "hour_of_day",
        })  # fmt: skip


def _the_rest(rows: Rows, days: int) -> None:
    ended = sum(row[end] for row in rows["throughput"] for end in ("done", "rejected", "expired", "cancelled"))
    last = FIRST + dt.timedelta(days=days)
    for broker in (7, 8):
        rows["events"].append({"broker_id": broker, "lsn": 1, "kind": 1, "at": FIRST, "text": "1.0"})
        rows["messages"].append(
            {"broker_id": broker, "message_no": 1, "lsn": ended * broker, "closed_at": last, "date": FIRST.date()}
        )
    for n in range(OPEN):
        rows["open"].append(
            {"broker_id": 7, "message_no": 5000 + n, "accepted_lsn": 10 + n, "last_lsn": 20 + n, "state": "waiting"}
        )
        rows["stuck"].append({
            "broker_id": 7, "message_no": 5000 + n, "message": f"0.{5000 + n}", "queue": QUEUES[n % 4], "client_dialect": DIALECTS[n % 5],
            "state": "waiting", "age_ms": 90_000.0 * (n + 1), "attempts": n % 3,
            "why": ("no worker ever served the queue", "the queue is paused", "held by <worker> w1.17")[n % 3],
        })  # fmt: skip
    for name in ("orphans", "time_going_backwards", "negative_durations", "unknown_kinds", "schema_version"):
        for batch in (0, 1):
            rows["quality"].append({"batch": batch, "expectation": name, "rows": 0, "is_fatal": True, "example": None})
    rows["orphans"].append(
        {"broker_id": 8, "message_no": 3, "why": "before_lake", "facts": 1, "first_lsn": 2, "last_lsn": 2}
    )


def write_tables(folder: Path, rows: Rows) -> None:
    """One Parquet file for each table."""
    for name, listed in rows.items():
        table = BY_NAME[name]
        pq.write_table(pa.Table.from_pylist(listed, schema=_schema(table)), folder / f"{name}.parquet")


def reader(spark: SparkSession, folder: Path) -> Reader:
    """A name → the table of that name in the folder."""

    def read(name: str) -> DataFrame:
        return spark.read.schema(BY_NAME[name].struct()).parquet(str(folder / f"{name}.parquet"))

    return read


def broken(name: str, rows: int) -> dict[str, Any]:
    """A row of `quality` that says no."""
    return {"batch": 2, "expectation": name, "rows": rows, "is_fatal": True, "example": json.dumps({"text": "<b>&"})}


def _schema(table: Table) -> pa.Schema:
    return pa.schema([pa.field(column.name, _ARROW[column.type]) for column in table.columns])
