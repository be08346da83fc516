"""Latency histograms: where a duration falls, and how near the truth what is read back from them is."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.tables import LATENCY, MESSAGES, QUEUES
from dragoman_spark.transforms.volume.latency import bucket, latency, middle_ms, percentile_name, percentiles
from tests.spark.frames import BROKER, at, rows_of

ERROR_MAX = 0.012
SEED = 20260302
MESSAGES_COUNT = 200_000


def test_a_duration_falls_between_the_ends_of_its_bucket(spark: SparkSession) -> None:
    spans_us = [0, 1, 2, 3, 7, 1000, 1024, 999_999, 86_400_000_000, *[1 << n for n in range(45)]]
    frame = spark.createDataFrame([(us, us / 1000) for us in spans_us], "us long, span_ms double")
    rows = frame.select("us", bucket("span_ms").alias("n"), middle_ms(bucket("span_ms")).alias("middle_ms")).collect()
    assert {row.us: row.n for row in rows if row.us < 3} == {0: 0, 1: 1, 2: 33}
    for row in rows:
        if row.us:
            # An end in doubles is itself a rounded number.
            assert 2 ** ((row.n - 1) / 32) * (1 - 1e-15) <= row.us < 2 ** (row.n / 32), row
            assert abs(row.middle_ms * 1000 / row.us - 1) <= 0.011, row
        else:
            assert row.middle_ms == 0


def test_a_message_counts_once_in_each_measure_it_has(spark: SparkSession) -> None:
    ended = {"broker_id": BROKER, "queue_no": 1, "client_dialect": 3, "closed_at": at(3599.999999), "wait_ms": None}
    made = latency(
        rows_of(
            spark,
            MESSAGES,
            {**ended, "message_no": 1, "worker_dialect": 5, "wait_ms": 0.0, "work_ms": 0.001, "total_ms": 0.001},
            {**ended, "message_no": 2, "worker_dialect": 5, "wait_ms": 0.0, "work_ms": 0.002, "total_ms": 0.002},
            {**ended, "message_no": 3, "worker_dialect": None, "total_ms": 0.002},  # expired, never leased
            {**ended, "message_no": 4, "worker_dialect": None, "total_ms": 0.002, "closed_at": at(3600)},
        ),
        rows_of(spark, QUEUES, {"broker_id": BROKER, "queue_no": 1, "queue": "mail"}),
    )
    one_hour = {"hour": at(0), "queue": "mail", "client_dialect": "emqp"}
    assertDataFrameEqual(
        made,
        rows_of(
            spark,
            LATENCY,
            {**one_hour, "worker_dialect": "rq", "measure": "wait", "bucket": 0, "messages": 2},
            {**one_hour, "worker_dialect": "rq", "measure": "work", "bucket": 1, "messages": 1},
            {**one_hour, "worker_dialect": "rq", "measure": "work", "bucket": 33, "messages": 1},
            {**one_hour, "worker_dialect": "rq", "measure": "total", "bucket": 1, "messages": 1},
            {**one_hour, "worker_dialect": "rq", "measure": "total", "bucket": 33, "messages": 1},
            {**one_hour, "measure": "total", "bucket": 33, "messages": 1},
            {**one_hour, "measure": "total", "bucket": 33, "messages": 1, "hour": at(3600)},
        ),
        ignoreNullable=True,
    )


def test_a_percentile_is_reached_by_exactly_its_share(spark: SparkSession) -> None:
    """95 of 100 in the lower bucket: the 95th percentile is there, one more is not. Buckets come in pieces, from several hours."""
    rows = [(hour, queue, "wait", n, messages) for hour, queue, n, messages in (
        (0, "a", 33, 60), (1, "a", 33, 35), (1, "a", 65, 5), (0, "b", 33, 94), (1, "b", 65, 6), (0, "c", 0, 1),
    )]  # fmt: skip
    frame = rows_of(
        spark,
        LATENCY,
        *[
            {"hour": at(3600 * hour), "queue": queue, "measure": measure, "bucket": n, "messages": messages}
            for hour, queue, measure, n, messages in rows
        ],
    )
    found = {row.queue: row for row in percentiles(frame, ["queue"], (0.5, 0.95, 0.96)).collect()}
    low_ms, high_ms = 2 ** (32.5 / 32) / 1000, 2 ** (64.5 / 32) / 1000
    assert found["a"].asDict() == {
        "queue": "a", "measure": "wait", "p50_ms": low_ms, "p95_ms": low_ms, "p96_ms": high_ms, "messages": 100,
    }  # fmt: skip
    assert (found["b"].p50_ms, found["b"].p95_ms) == (low_ms, high_ms)
    assert (found["c"].p50_ms, found["c"].p96_ms, found["c"].messages) == (0.0, 0.0, 1)
    assert [percentile_name(p) for p in (0.5, 0.05, 0.999)] == ["p50_ms", "p05_ms", "p999_ms"]
    assert percentiles(frame, [], (0.5,)).collect()[0].messages == 201


def test_percentiles_are_within_their_bound_of_the_exact_ones(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(SEED)
    spans_us = [
        [round(chance.lognormvariate(mu, sigma)) for _ in range(MESSAGES_COUNT)]
        for mu, sigma in ((7, 2), (10, 1), (11, 0.3))
    ]
    columns = dict(
        zip(("wait_ms", "work_ms", "total_ms"), ([us / 1000 for us in spans] for spans in spans_us), strict=True)
    )
    ended = [
        at(0) + timedelta(milliseconds=n * 100) for n in range(MESSAGES_COUNT)
    ]  # over several hours, which are merged
    same = {"broker_id": (BROKER, pa.int64()), "queue_no": (1, pa.int32()), "client_dialect": (3, pa.int8())}
    repeated = {name: pa.repeat(pa.scalar(value, kind), MESSAGES_COUNT) for name, (value, kind) in same.items()}
    table = pa.table({"closed_at": pa.array(ended, pa.timestamp("us", "UTC")), **columns, **repeated})
    pq.write_table(table, tmp_path / "messages.parquet")

    messages = spark.read.schema(MESSAGES.struct()).parquet(str(tmp_path / "messages.parquet"))
    found = percentiles(latency(messages, rows_of(spark, QUEUES)), ["queue"]).collect()

    assert {row.measure for row in found} == {"wait", "work", "total"}
    for row in found:
        assert (row.queue, row.messages) == ("#1", MESSAGES_COUNT)
        for name, p in (("p50_ms", 0.5), ("p95_ms", 0.95), ("p99_ms", 0.99), ("p999_ms", 0.999)):
            exact_ms = duckdb.sql(
                f"SELECT min(ms) FROM (SELECT {row.measure}_ms AS ms, cume_dist() OVER (ORDER BY ms) AS share "
                f"FROM '{tmp_path}/messages.parquet') WHERE share >= {p}"
            ).fetchall()[0][0]
            assert abs(row[name] / exact_ms - 1) <= ERROR_MAX, (SEED, row.measure, name, row[name], exact_ms)
