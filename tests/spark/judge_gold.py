"""The counted tables once more, in DuckDB's SQL, from the facts alone: no line is shared with what it judges."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb

from dragoman.lake.schema import DIALECTS
from dragoman_spark.schemas import Table
from dragoman_spark.tables import CROSSINGS, FUNNEL, LATENCY, THROUGHPUT

# Instants of Parquet are read as UTC wall time: naive, so that no time zone of the machine is asked.
_PREPARE = """
    SET TimeZone = 'UTC';
    CREATE VIEW facts AS SELECT * REPLACE ({instants}), "at"::TIMESTAMP AS happened_at FROM read_parquet({files});
    CREATE VIEW named AS
        SELECT facts.*, coalesce(name, '#' || facts.queue_no) AS queue, coalesce(word, 'unknown_' || client_dialect) AS client
        FROM facts
        LEFT JOIN (
            SELECT broker_id, queue_no, arg_min(text, lsn) AS name FROM facts WHERE kind = 2 GROUP BY ALL
        ) AS names ON names.broker_id = facts.broker_id AND names.queue_no = facts.queue_no
        LEFT JOIN dialects ON dialects.number = client_dialect;
    CREATE VIEW ended AS
        SELECT named.*, dialects.word AS worker,
            CASE WHEN due_at IS NULL OR due_at < accepted_at THEN accepted_at WHEN due_at > happened_at THEN happened_at ELSE due_at END AS ready_at,
            epoch_us(first_leased_at) - epoch_us(ready_at) AS wait_us,
            CASE WHEN worker_no IS NOT NULL THEN epoch_us(happened_at) - epoch_us(leased_at) END AS work_us,
            epoch_us(happened_at) - epoch_us(ready_at) AS total_us
        FROM named LEFT JOIN dialects ON dialects.number = worker_dialect
        WHERE kind = 9;
"""
_INSTANTS = ("due_at", "accepted_at", "first_leased_at", "leased_at", "delivered_at")

_LATENCY = """
    WITH long AS (
        SELECT 'wait' AS measure, wait_us AS us, * FROM ended
        UNION ALL SELECT 'work', work_us, * FROM ended
        UNION ALL SELECT 'total', total_us, * FROM ended
    )
    SELECT date_trunc('hour', happened_at) AS hour, queue, client, worker, measure,
        CASE WHEN us = 0 THEN 0 ELSE 1 + floor(32 * log2(us))::INT END AS bucket, count(*) AS messages
    FROM long WHERE us IS NOT NULL GROUP BY ALL
"""

_THROUGHPUT = """
    WITH ends AS (
        SELECT date_trunc('minute', happened_at) AS minute, queue, client,
            count(*) FILTER (outcome = 3) AS done, count(*) FILTER (outcome = 4) AS rejected,
            count(*) FILTER (outcome = 5) AS expired, count(*) FILTER (outcome = 6) AS cancelled,
            count(wait_us) AS waited, coalesce(sum(wait_us), 0) AS wait_us,
            count(work_us) AS worked, coalesce(sum(work_us), 0) AS work_us, coalesce(sum(reply_size), 0) AS reply_bytes
        FROM ended GROUP BY ALL
    ), others AS (
        SELECT date_trunc('minute', happened_at) AS minute, queue, client,
            count(*) FILTER (kind = 5) AS accepted, count(*) FILTER (kind = 8) AS released,
            count(*) FILTER (kind = 10) AS quarantined, coalesce(sum(body_size), 0) AS body_bytes
        FROM named WHERE kind IN (5, 8, 10) GROUP BY ALL
    )
    SELECT minute, queue, client, coalesce(accepted, 0), coalesce(done, 0), coalesce(rejected, 0), coalesce(expired, 0),
        coalesce(cancelled, 0), coalesce(released, 0), coalesce(quarantined, 0), coalesce(waited, 0), coalesce(wait_us, 0) / 1000,
        coalesce(worked, 0), coalesce(work_us, 0) / 1000, coalesce(body_bytes, 0), coalesce(reply_bytes, 0)
    FROM ends FULL JOIN others USING (minute, queue, client)
"""

_FUNNEL = """
    SELECT happened_at::DATE AS date, queue, client,
        count(*) FILTER (kind = 5), count(*) FILTER (kind = 9 AND first_leased_at IS NOT NULL),
        count(*) FILTER (kind = 9 AND delivered_at IS NOT NULL),
        count(*) FILTER (outcome = 3), count(*) FILTER (outcome = 4), count(*) FILTER (outcome = 5), count(*) FILTER (outcome = 6),
        count(*) FILTER (kind = 10), count(*) FILTER (kind = 11), count(*) FILTER (kind = 9 AND attempt > 1),
        coalesce(sum(attempt - 1) FILTER (kind = 9 AND attempt > 1), 0)
    FROM named WHERE kind IN (5, 9, 10, 11) GROUP BY ALL
"""

_CROSSINGS = """
    SELECT happened_at::DATE AS date, client, worker, count(*), count(*) FILTER (outcome = 3), coalesce(sum(wait_us), 0) / 1000,
        coalesce(sum(work_us), 0) / 1000, sum(total_us) / 1000, sum(body_size), coalesce(sum(reply_size), 0)
    FROM ended GROUP BY ALL
"""

# Busy time by another way than the product's: cut time at every instant at which the worker took or lost a message, and add up the
# pieces that lie within any of its attempts.
_BUSY = """
    WITH held AS (
        SELECT broker_id, coalesce(holder_no, worker_no) AS worker_no, epoch_us(leased_at) AS begin_us, epoch_us(happened_at) AS end_us
        FROM facts WHERE kind IN (8, 9, 10) AND leased_at IS NOT NULL
    ), cuts AS (
        SELECT broker_id, worker_no, begin_us AS cut_us FROM held UNION SELECT broker_id, worker_no, end_us FROM held
    ), pieces AS (
        SELECT *, lead(cut_us) OVER (PARTITION BY broker_id, worker_no ORDER BY cut_us) AS next_us FROM cuts
    )
    SELECT broker_id, worker_no, sum(next_us - cut_us) / 1000 AS busy_ms
    FROM pieces WHERE EXISTS (
        FROM held WHERE held.broker_id = pieces.broker_id AND held.worker_no = pieces.worker_no
            AND begin_us <= cut_us AND end_us >= next_us
    )
    GROUP BY ALL
"""


Answer = tuple[Any, ...]


class Judge:
    """DuckDB over some Parquet files of facts."""

    def __init__(self, files: list[Path]) -> None:
        self.base = duckdb.connect()
        self.base.execute("CREATE TABLE dialects (number TINYINT, word VARCHAR)")
        self.base.executemany(
            "INSERT INTO dialects VALUES (?, ?)", [[number, word] for number, word in DIALECTS.items()]
        )
        instants = ", ".join(f"{name}::TIMESTAMP AS {name}" for name in _INSTANTS)
        self.base.execute(_PREPARE.format(instants=instants, files=[str(file) for file in files]))

    def latency(self) -> list[Answer]:
        return self._rows(LATENCY, _LATENCY)

    def throughput(self) -> list[Answer]:
        return self._rows(THROUGHPUT, _THROUGHPUT)

    def funnel(self) -> list[Answer]:
        return self._rows(FUNNEL, _FUNNEL)

    def crossings(self) -> list[Answer]:
        return self._rows(CROSSINGS, _CROSSINGS)

    def busy_ms(self) -> dict[tuple[int, int], float]:
        """Of each (broker, worker), how long it had anything in hand."""
        rows = self.base.execute(_BUSY).fetchall()
        return {(broker_id, worker_no): float(busy_ms) for broker_id, worker_no, busy_ms in rows}

    def _rows(self, table: Table, query: str) -> list[Answer]:
        kinds = [column.type for column in table.columns]
        return [
            tuple(_as(kind, value) for kind, value in zip(kinds, row, strict=True))
            for row in self.base.execute(query).fetchall()
        ]


def _as(kind: str, value: Any) -> Any:
    """A value as Spark would hand it out."""
    if isinstance(value, datetime):
        return value.replace(tzinfo=UTC)
    if value is not None and kind in ("int", "long"):
        return int(value)
    return float(value) if kind == "double" else value
