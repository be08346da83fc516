"""The silver tables in Polars: lazy frames over the lake's files, run by its streaming engine."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import polars as pl

from bench.pipeline.numbers import (
    ATTEMPT_ENDS,
    DIALECTS,
    ENDS,
    KIND,
    KINDS,
    LIFE,
    OUTCOME,
    REASON,
    REASONS,
    numbers,
)

kind_no, lsn, at = pl.col("kind"), pl.col("lsn"), pl.col("at")
WHO = ["broker_id", "worker_no"]
WHICH = ["broker_id", "message_no"]


def us(name: str) -> pl.Expr:
    return pl.col(name).dt.epoch("us")


def span_ms(begin: pl.Expr, end: pl.Expr) -> pl.Expr:
    return (end.dt.epoch("us") - begin.dt.epoch("us")) / 1000


def is_of(*words: str) -> pl.Expr:
    return kind_no.is_in(numbers(*words))


def events(facts: pl.LazyFrame) -> pl.LazyFrame:
    return facts.filter(~is_of(*LIFE)).select(
        "broker_id", "lsn", "kind", "at", "worker_no", "queue_no", "schedule_no", "message_no", "worker_dialect", "reason",
        "due_at", "count", "text",
    )  # fmt: skip


def messages(facts: pl.LazyFrame) -> pl.LazyFrame:
    due = pl.when(pl.col("due_at") > at).then(at).otherwise(pl.col("due_at"))
    ready = pl.max_horizontal("accepted_at", due)
    worked = pl.col("worker_no").is_not_null()
    return facts.filter(kind_no == KIND["closed"]).select(
        "broker_id", "message_no", "queue_no", "client_dialect", "worker_dialect", "worker_no",
        pl.col("attempt").alias("attempts"), "outcome", "reason", "accepted_at", "due_at", "first_leased_at", "leased_at",
        "delivered_at", at.alias("closed_at"), span_ms(ready, pl.col("first_leased_at")).alias("wait_ms"),
        pl.when(worked).then(span_ms(pl.col("leased_at"), at)).alias("work_ms"), span_ms(ready, at).alias("total_ms"),
        "body_size", "reply_size", "lsn", at.dt.date().alias("date"),
    )  # fmt: skip


def attempts(facts: pl.LazyFrame) -> pl.LazyFrame:
    died = (kind_no == KIND["quarantined"]) & (pl.col("reason") == REASON["workers_died"])
    return facts.filter(is_of(*ATTEMPT_ENDS) & pl.col("leased_at").is_not_null()).select(
        "broker_id", "message_no", "attempt", "queue_no", pl.coalesce("holder_no", "worker_no").alias("worker_no"),
        "client_dialect", pl.when(pl.col("holder_no").is_null()).then(pl.col("worker_dialect")).alias("worker_dialect"),
        "leased_at", at.alias("ended_at"), span_ms(pl.col("leased_at"), at).alias("held_ms"), kind_no.alias("ended_by"),
        "outcome", "reason", pl.coalesce("is_death", died).alias("is_death"), "lsn", at.dt.date().alias("date"),
    )  # fmt: skip


def queues(events: pl.LazyFrame) -> pl.LazyFrame:
    named, switched = kind_no == KIND["queue_named"], is_of("paused", "resumed")
    kept = events.filter(named | switched).sort("lsn")
    told = kept.group_by("broker_id", "queue_no").agg(
        pl.col("text").filter(named).first().alias("name"),
        at.filter(named).min().alias("named_at"),
        (kind_no.filter(switched).last() == KIND["paused"]).fill_null(False).alias("is_paused"),
    )
    unnamed = pl.lit("#") + pl.col("queue_no").cast(pl.String)
    return told.select("broker_id", "queue_no", pl.coalesce("name", unnamed).alias("queue"), "named_at", "is_paused")


def peers(events: pl.LazyFrame, now: datetime) -> pl.LazyFrame:
    joined, left = kind_no == KIND["worker_joined"], kind_no == KIND["worker_left"]
    spans = (
        events.filter(joined | left)
        .sort("lsn")
        .group_by(WHO)
        .agg(
            lsn.filter(joined).first().alias("joined_lsn"),
            at.filter(joined).first().alias("joined_at"),
            pl.col("worker_dialect").filter(joined).last(),
            pl.col("text").filter(joined).last().str.split("\t").alias("parts"),
            at.filter(left).first().alias("said_left_at"),
            pl.col("reason").filter(left).first().alias("said_reason"),
        )
        .filter(pl.col("joined_lsn").is_not_null())
    )
    starts = events.filter(kind_no == KIND["started"]).select("broker_id", "lsn", at.alias("start_at")).sort("lsn")
    parts = pl.col("parts").list
    reason = (
        pl.when(pl.col("said_left_at").is_not_null())
        .then(pl.col("said_reason"))
        .when(pl.col("start_at").is_not_null())
        .then(pl.lit(REASON["broker_started"], pl.Int8))
    )
    return (
        spans.sort("joined_lsn")
        .join_asof(
            starts,
            left_on="joined_lsn",
            right_on="lsn",
            by="broker_id",
            strategy="forward",
            allow_exact_matches=False,
            check_sortedness=False,
        )
        .select(
            *WHO,
            "worker_dialect",
            parts.get(0, null_on_oob=True).alias("listener"),
            parts.get(1, null_on_oob=True).alias("remote"),
            parts.get(2, null_on_oob=True).map_elements(_as_text, return_dtype=pl.String).alias("identity"),
            parts.slice(3).list.eval(pl.element().str.replace(r"^-?\d+ ", "")).alias("queues"),
            "joined_at",
            pl.coalesce("said_left_at", "start_at").alias("left_at"),
            reason.alias("reason"),
        )
        .with_columns(
            span_ms(pl.col("joined_at"), pl.coalesce("left_at", pl.lit(now))).alias("connected_ms"),
        )
    )


def _as_text(identity_hex: str) -> str | None:
    if not identity_hex:
        return None
    try:
        text = bytes.fromhex(identity_hex).decode()
    except UnicodeDecodeError:
        return identity_hex
    return text if text.isprintable() else identity_hex


def lives(facts: pl.LazyFrame) -> pl.LazyFrame:
    """Lives that are not plainly accepted … closed: found by what is cheap to count, told from all their facts."""
    life = facts.filter(is_of(*LIFE) & pl.col("message_no").is_not_null())
    accepted, closed = kind_no == KIND["accepted"], kind_no == KIND["closed"]
    odd = (
        life.group_by(WHICH)
        .agg(
            pl.len().alias("facts"),
            lsn.min().alias("first_lsn"),
            lsn.max().alias("last_lsn"),
            accepted.sum().alias("begins"),
            closed.sum().alias("ends"),
            pl.when(accepted).then(lsn).min().alias("accepted_lsn"),
            pl.when(closed).then(lsn).min().alias("closed_lsn"),
        )
        .filter(
            (pl.col("begins") != 1)
            | (pl.col("ends") != 1)
            | (pl.col("last_lsn") != pl.col("closed_lsn"))
            | (pl.col("first_lsn") != pl.col("accepted_lsn"))
        )
    )
    told = (
        life.join(odd.select(WHICH), on=WHICH, how="semi")
        .sort("lsn")
        .group_by(WHICH)
        .agg(
            *[
                pl.col(name).filter(accepted).first()
                for name in ("queue_no", "client_dialect", "expires_at", "priority", "body_size")
            ],
            at.filter(accepted).min().alias("accepted_at"),
            pl.col("due_at").filter(is_of("accepted", "released")).last(),
            pl.col("worker_no").filter(is_of("leased")).last(),
            pl.col("reason").filter(is_of("released", "quarantined")).last().alias("last_reason"),
            kind_no.last().alias("last_kind"),
            pl.col("attempt").max().fill_null(0).alias("attempts"),
            at.min().alias("first_at"),
            at.max().alias("last_at"),
        )
    )
    return odd.join(told, on=WHICH)


def open_messages(lives: pl.LazyFrame) -> pl.LazyFrame:
    last = pl.col("last_kind")
    state = (
        pl.when(last.is_in(numbers("leased", "delivered")))
        .then(pl.lit("leased"))
        .when(last == KIND["quarantined"])
        .then(pl.lit("quarantined"))
        .otherwise(pl.lit("waiting"))
    )
    return lives.filter((pl.col("begins") > 0) & (pl.col("ends") == 0)).select(
        *WHICH, "queue_no", "client_dialect", "accepted_at", "due_at", "expires_at", state.alias("state"), "attempts",
        "worker_no", "last_reason", "last_at", "priority", "body_size", "accepted_lsn", "last_lsn",
    )  # fmt: skip


def orphans(lives: pl.LazyFrame) -> pl.LazyFrame:
    why = (
        pl.when(pl.col("begins") == 0)
        .then(pl.lit("no_accepted"))
        .when(pl.col("begins") > 1)
        .then(pl.lit("accepted_twice"))
        .when(pl.col("ends") > 1)
        .then(pl.lit("closed_twice"))
        .when(pl.col("last_lsn") > pl.col("closed_lsn"))
        .then(pl.lit("after_closed"))
        .when(pl.col("first_lsn") < pl.col("accepted_lsn"))
        .then(pl.lit("before_accepted"))
    )
    faulty = lives.with_columns(why.alias("why")).filter(pl.col("why").is_not_null())
    return faulty.select(*WHICH, "why", pl.col("facts").cast(pl.Int64), "first_lsn", "last_lsn", "first_at")


def _lacks(kinds: tuple[str, ...], *columns: str) -> pl.Expr:
    return is_of(*kinds) & pl.any_horizontal(pl.col(column).is_null() for column in columns)


def _broken() -> dict[str, tuple[bool, pl.Expr]]:
    """By expectation: whether it is fatal, and what breaks it."""
    closed = kind_no == KIND["closed"]
    leased_at, first_leased_at = pl.col("leased_at"), pl.col("first_leased_at")
    due = pl.when(pl.col("due_at") > at).then(at).otherwise(pl.col("due_at"))
    ends = [OUTCOME[word] for word in ENDS]
    dialects = list(DIALECTS)
    missing = [
        pl.any_horizontal(pl.col(name).is_null() for name in ("broker_id", "lsn", "kind", "at")),
        _lacks(LIFE, "message_no"),
        _lacks(("accepted", "closed"), "queue_no", "client_dialect"),
        _lacks(("leased", "delivered", "released", "worker_joined", "worker_left"), "worker_no"),
        _lacks(("leased", "released", "closed"), "attempt"),
        _lacks(("closed",), "outcome"),
        _lacks(ATTEMPT_ENDS, "reason"),
        _lacks(("queue_named",), "queue_no", "text"),
    ]
    return {
        "unknown_kind": (True, ~kind_no.is_in(list(KINDS))),
        "unknown_outcome": (True, closed & ~pl.col("outcome").is_in(ends)),
        "unknown_reason": (False, ~pl.col("reason").is_in(list(REASONS))),
        "unknown_dialect": (
            False,
            ~pl.col("client_dialect").is_in(dialects) | ~pl.col("worker_dialect").is_in(dialects),
        ),
        "missing_value": (True, pl.any_horizontal(missing)),
        "closed_without_accepted_at": (True, closed & pl.col("accepted_at").is_null()),
        "attempt_without_begin": (False, is_of("released", "quarantined") & leased_at.is_null()),
        "attempt_zero": (
            True,
            (pl.col("attempt") < 1) & (is_of("leased", "released", "quarantined") | leased_at.is_not_null()),
        ),
        "ended_before_begun": (
            True,
            pl.any_horizontal(
                at < pl.col(name) for name in ("accepted_at", "first_leased_at", "leased_at", "delivered_at")
            ),
        ),
        "negative_duration": (
            True,
            (first_leased_at < pl.max_horizontal("accepted_at", due))
            | (leased_at < first_leased_at)
            | (pl.col("delivered_at") < leased_at),
        ),
    }


def quality(facts: pl.LazyFrame, orphan_rows: int) -> pl.DataFrame:
    """Counts of all conditions in one pass; time in runs of 1024 facts, as the pipeline has it."""
    broken = _broken()
    runs = facts.group_by("broker_id", (lsn // 1024).alias("run")).agg(
        at.min().alias("earliest"),
        at.max().alias("latest"),
        at.sort_by("lsn").first().alias("first"),
        at.sort_by("lsn").last().alias("last"),
        pl.len().alias("facts"),
        lsn.min().alias("lowest"),
        lsn.max().alias("highest"),
    )
    counts, in_runs = pl.collect_all(
        [facts.select(condition.sum().alias(name) for name, (_, condition) in broken.items()), runs], engine="streaming"
    )
    steps = in_runs.sort("broker_id", "run").with_columns(pl.col("latest").shift(1).over("broker_id").alias("before"))
    back = (
        (pl.col("first") != pl.col("earliest"))
        | (pl.col("last") != pl.col("latest"))
        | (pl.col("earliest") < pl.col("before"))
    )
    spans = in_runs.group_by("broker_id").agg(
        (pl.col("highest").max() - pl.col("lowest").min() + 1 - pl.col("facts").sum()).alias("missing")
    )
    rows: list[tuple[str, Any, bool]] = [(name, counts[name][0], fatal) for name, (fatal, _) in broken.items()]
    rows += [("orphan", orphan_rows, True), ("time_backwards", steps.select(back.sum()).item(), True)]
    rows += [("gap", spans["missing"].sum(), True), ("schema_version", 0, True)]
    judged = pl.DataFrame(
        rows, schema={"expectation": pl.String, "rows": pl.Int64, "is_fatal": pl.Boolean}, orient="row"
    )
    return judged.select(
        pl.lit(0, pl.Int64).alias("batch"), "expectation", "rows", "is_fatal", pl.lit(None, pl.String).alias("example")
    )
