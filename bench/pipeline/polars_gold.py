"""The gold tables in Polars, from the silver ones where they say enough. Counts are by number, and named when they are few."""

from __future__ import annotations

from datetime import datetime, timedelta

import polars as pl

from bench.pipeline.numbers import (
    BUCKETS_PER_OCTAVE,
    DAY_HOURS,
    DIALECTS,
    ENDS,
    FAILURES,
    KIND,
    LN_2,
    OUTCOME,
    REASON,
    REASONS,
    WEEK_HOURS,
    WINDOWS,
)
from bench.pipeline.polars_silver import WHO, at, is_of, kind_no, us
from dragoman_spark.transforms.checks.objectives import DEFAULTS, shares

HOUR_US = 3_600_000_000


def worded(column: str, words: dict[int, str]) -> pl.Expr:
    number = pl.col(column)
    unknown = pl.lit("unknown_") + number.cast(pl.String)
    return number.replace_strict(words, default=unknown, return_dtype=pl.String).alias(column)


def named(counts: pl.LazyFrame, queues: pl.LazyFrame) -> pl.LazyFrame:
    number = pl.lit("#") + pl.col("queue_no").cast(pl.String)
    return counts.join(
        queues.select("broker_id", "queue_no", "queue"), on=["broker_id", "queue_no"], how="left"
    ).with_columns(pl.coalesce("queue", number).alias("queue"))


def instant(number: str, length_s: int, name: str) -> pl.Expr:
    return (
        pl.from_epoch(pl.col(number).cast(pl.Int64) * length_s * 1_000_000, time_unit="us")
        .dt.replace_time_zone("UTC")
        .alias(name)
    )


def bucket(measure: str) -> pl.Expr:
    duration_us = (pl.col(f"{measure}_ms") * 1000).round()
    number = (duration_us.log() / LN_2 * BUCKETS_PER_OCTAVE).floor() + 1
    return pl.when(duration_us < 1).then(0).when(duration_us >= 1).then(number).cast(pl.Int32).alias(measure)


def latency(messages: pl.LazyFrame, queues: pl.LazyFrame) -> pl.LazyFrame:
    measures = ["wait", "work", "total"]
    keys = ["hour_no", "broker_id", "queue_no", "client_dialect", "worker_dialect"]
    hour_no = (us("closed_at") // HOUR_US).cast(pl.Int32).alias("hour_no")
    counts = (
        messages.select(hour_no, *keys[1:], *[bucket(measure) for measure in measures])
        .unpivot(on=measures, index=keys, variable_name="measure", value_name="bucket")
        .filter(pl.col("bucket").is_not_null())
        .group_by(*keys, "measure", "bucket")
        .agg(pl.len().cast(pl.Int64).alias("messages"))
    )
    return named(counts, queues).select(
        instant("hour_no", 3600, "hour"), "queue", worded("client_dialect", DIALECTS), worded("worker_dialect", DIALECTS),
        "measure", "bucket", "messages",
    )  # fmt: skip


def _ends() -> list[pl.Expr]:
    return [(pl.col("outcome") == OUTCOME[word]).sum().cast(pl.Int64).alias(word) for word in ENDS]


def _count(word: str) -> pl.Expr:
    return (kind_no == KIND[word]).sum().cast(pl.Int64).alias(word)


def throughput(facts: pl.LazyFrame, queues: pl.LazyFrame) -> pl.LazyFrame:
    wait_us = us("first_leased_at") - pl.max_horizontal("accepted_at", "due_at").dt.epoch("us")
    settled = (kind_no == KIND["closed"]) & pl.col("worker_no").is_not_null()
    keys = ["minute_no", "broker_id", "queue_no", "client_dialect"]
    steps = facts.filter(is_of("accepted", "released", "closed", "quarantined")).select(
        (us("at") // 60_000_000).cast(pl.Int32).alias("minute_no"), *keys[1:], "kind", "outcome", "body_size", "reply_size",
        wait_us.alias("wait_us"), pl.when(settled).then(us("at") - us("leased_at")).alias("work_us"),
    )  # fmt: skip
    counts = steps.group_by(keys).agg(
        _count("accepted"), *_ends(), _count("released"), _count("quarantined"),
        pl.col("wait_us").count().cast(pl.Int64).alias("waited"), (pl.col("wait_us").sum() / 1000).alias("wait_ms"),
        pl.col("work_us").count().cast(pl.Int64).alias("worked"), (pl.col("work_us").sum() / 1000).alias("work_ms"),
        pl.when(kind_no == KIND["accepted"]).then(pl.col("body_size")).cast(pl.Int64).sum().alias("body_bytes"),
        pl.col("reply_size").cast(pl.Int64).sum().alias("reply_bytes"),
    )  # fmt: skip
    return named(counts, queues).select(
        instant("minute_no", 60, "minute"), "queue", worded("client_dialect", DIALECTS), "accepted", *ENDS, "released",
        "quarantined", "waited", "wait_ms", "worked", "work_ms", "body_bytes", "reply_bytes",
    )  # fmt: skip


def funnel(facts: pl.LazyFrame, queues: pl.LazyFrame) -> pl.LazyFrame:
    retried = (kind_no == KIND["closed"]) & (pl.col("attempt") > 1)
    counts = (
        facts.filter(is_of("accepted", "closed", "quarantined", "requeued"))
        .group_by(at.dt.date().alias("date"), "broker_id", "queue_no", "client_dialect")
        .agg(
            _count("accepted"),
            pl.col("first_leased_at").count().cast(pl.Int64).alias("leased"),
            pl.col("delivered_at").count().cast(pl.Int64).alias("delivered"),
            *_ends(),
            _count("quarantined"),
            _count("requeued"),
            retried.sum().cast(pl.Int64).alias("retried"),
            pl.when(retried).then(pl.col("attempt") - 1).cast(pl.Int64).sum().alias("retries"),
        )
    )
    return named(counts, queues).select(
        "date", "queue", worded("client_dialect", DIALECTS), "accepted", "leased", "delivered", *ENDS, "quarantined",
        "requeued", "retried", "retries",
    )  # fmt: skip


def crossings(messages: pl.LazyFrame) -> pl.LazyFrame:
    sums = [
        ((pl.col(name) * 1000).round().cast(pl.Int64).sum() / 1000).alias(name)
        for name in ("wait_ms", "work_ms", "total_ms")
    ]
    return (
        messages.group_by("date", "client_dialect", "worker_dialect")
        .agg(
            pl.len().cast(pl.Int64).alias("messages"),
            (pl.col("outcome") == OUTCOME["done"]).sum().cast(pl.Int64).alias("done"),
            *sums,
            pl.col("body_size").cast(pl.Int64).sum().alias("body_bytes"),
            pl.col("reply_size").cast(pl.Int64).sum().alias("reply_bytes"),
        )
        .with_columns(worded("client_dialect", DIALECTS), worded("worker_dialect", DIALECTS))
    )


def workers(attempts: pl.LazyFrame, peers: pl.LazyFrame) -> pl.LazyFrame:
    left_us = us("joined_at") + (pl.col("connected_ms") * 1000).round().cast(pl.Int64)
    spans = peers.select(*WHO, us("joined_at").alias("joined_us"), left_us.alias("left_us"))
    done = (pl.col("outcome") == OUTCOME["done"]).fill_null(False) & pl.col("worker_dialect").is_not_null()
    failed = pl.col("reason").is_in([REASON[word] for word in FAILURES]) & ~pl.col("is_death")
    held = attempts.join(spans, on=WHO, how="left").select(
        *WHO, pl.max_horizontal(us("leased_at"), "joined_us").alias("begin_us"),
        pl.min_horizontal(us("ended_at"), "left_us").alias("end_us"), (us("ended_at") - us("leased_at")).alias("held_us"),
        done.alias("is_done"), failed.alias("is_failed"), "is_death", "worker_dialect",
    )  # fmt: skip
    latest = pl.col("end_us").cum_max().shift(1).over(WHO)
    beyond = pl.col("end_us") - pl.max_horizontal("begin_us", latest)
    did = (
        held.sort("begin_us")
        .with_columns(pl.max_horizontal(beyond, 0).alias("busy_us"))
        .group_by(WHO)
        .agg(
            pl.col("busy_us").sum(),
            pl.max_horizontal(pl.col("end_us") - pl.col("begin_us"), 0).sum().alias("clipped_us"),
            pl.col("held_us").sum(),
            pl.len().cast(pl.Int64).alias("attempts"),
            pl.col("is_done").sum().cast(pl.Int64).alias("done"),
            pl.col("is_failed").sum().cast(pl.Int64).alias("failed"),
            pl.col("is_death").sum().cast(pl.Int64).alias("deaths"),
            pl.col("worker_dialect").max().alias("dialect_seen"),
        )
    )
    busy_ms = pl.col("busy_us").fill_null(0) / 1000
    lasted_ms = pl.when(pl.col("connected_ms") > 0).then(pl.col("connected_ms"))
    return (
        peers.join(did, on=WHO, how="full", coalesce=True)
        .with_columns(pl.coalesce("worker_dialect", "dialect_seen").alias("worker_dialect"))
        .select(
            *WHO,
            pl.coalesce(
                _unless_empty("identity"), _unless_empty("remote"), pl.lit("w") + people_see("worker_no")
            ).alias("worker"),
            worded("worker_dialect", DIALECTS),
            "joined_at",
            "left_at",
            worded("reason", REASONS).alias("left_because"),
            "connected_ms",
            busy_ms.alias("busy_ms"),
            (pl.col("connected_ms") - busy_ms).alias("idle_ms"),
            (busy_ms / lasted_ms).alias("utilisation"),
            (pl.col("clipped_us").fill_null(0) / 1000 / lasted_ms).alias("held_mean"),
            *[pl.col(name).fill_null(0) for name in ("attempts", "done", "failed", "deaths")],
            (pl.col("held_us") / 1000 / pl.col("attempts")).alias("work_ms_mean"),
        )
    )


def people_see(column: str) -> pl.Expr:
    number = pl.col(column)
    return (number // 2**40).cast(pl.String) + "." + (number % 2**40).cast(pl.String)


def _unless_empty(column: str) -> pl.Expr:
    return pl.when(pl.col(column) != "").then(pl.col(column))


def slo(messages: pl.LazyFrame, queues: pl.LazyFrame, now: datetime) -> pl.DataFrame:
    ended = (
        messages.filter((pl.col("closed_at") > now - timedelta(hours=WINDOWS[-1][1])) & (pl.col("closed_at") <= now))
        .join(queues.select("broker_id", "queue_no", "queue"), on=["broker_id", "queue_no"], how="left")
        .select("queue", "closed_at", "outcome", "wait_ms", "work_ms", "total_ms")
        .collect(engine="streaming")
    )
    rows = []
    for objective in shares(DEFAULTS):
        good = pl.col("outcome") == OUTCOME["done"]
        if objective.threshold_ms is not None:
            good &= pl.col(f"{objective.measure}_ms") <= objective.threshold_ms
        for window, hours in WINDOWS:
            within = ended.filter(pl.col("closed_at") > now - timedelta(hours=hours))
            if objective.queue != "*":
                within = within.filter(pl.col("queue") == objective.queue)
            count, many = within.height, within.select(good.sum()).item()
            share = many / count if count else None
            assert objective.target is not None
            burn = None if share is None else (1 - share) / (1 - objective.target)
            is_met = None if share is None else share >= objective.target
            rows.append(
                (objective.name, objective.queue, window, objective.measure, objective.threshold_ms, objective.target, count,
                 many, share, burn, is_met)
            )  # fmt: skip
    names = ("threshold_ms", "target", "messages", "good", "share", "burn_rate", "is_met")
    kinds = (pl.Float64, pl.Float64, pl.Int64, pl.Int64, pl.Float64, pl.Float64, pl.Boolean)
    texts = dict.fromkeys(("objective", "queue", "window", "measure"), pl.String)
    return pl.DataFrame(rows, schema=texts | dict(zip(names, kinds, strict=True)), orient="row")


def hours(throughput: pl.LazyFrame) -> pl.DataFrame:
    """One row per queue and hour with traffic."""
    return (
        throughput.group_by("queue", (us("minute") // HOUR_US).alias("hour_no"))
        .agg(
            pl.col("minute").min().alias("first_minute"),
            pl.col("accepted", "waited", "wait_ms", "worked", "work_ms").sum(),
            (pl.col("rejected") + pl.col("expired") + pl.col("quarantined")).sum().alias("failed"),
        )
        .collect(engine="streaming")
    )


def season_of(seen_hours: int) -> int | None:
    if seen_hours >= 4 * WEEK_HOURS:
        return WEEK_HOURS
    return DAY_HOURS if seen_hours >= 4 * DAY_HOURS else None
