"""Incomplete lives: messages whose facts are not simply accepted … closed, each with all that its facts contain.

Lives continue from batch to batch: `open_before` is what the batch before left open, and such a message counts as accepted. A whole
history is one batch with nothing before it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman_spark.transforms.life.kinds import (
    ACCEPTED,
    CLOSED,
    LEASED,
    LIFE,
    QUARANTINED,
    RELEASED,
    REQUEUED,
)
from dragoman_spark.transforms.life.sieve import sieve, sifted

# Columns that only the accepted fact has.
_ASKED = ("queue_no", "client_dialect", "expires_at", "priority", "body_size")


def lives(open_before: DataFrame, facts: DataFrame) -> DataFrame:
    """One row per message that is open (`is_open`) or whose facts fit no life (`why`, else null), both for `open_messages` and `orphans`.
    The rows are few and read twice: worth caching."""
    packs = sieve(open_before, facts)
    steps = sifted(_of_facts(facts), packs).unionByName(sifted(_of_open(open_before), packs))
    told = _told(steps)
    return told.withColumn("is_open", _is_open()).withColumn("why", _why()).where("is_open or why is not null")


def _of_facts(facts: DataFrame) -> DataFrame:
    kind, lsn, at = F.col("kind"), F.col("lsn"), F.col("at")
    is_accepted = kind == ACCEPTED
    return facts.where(kind.isin(*LIFE) & F.col("message_no").isNotNull()).select(
        "broker_id",
        "message_no",
        "lsn",
        "at",
        "kind",
        *_ASKED,
        "due_at",
        "worker_no",
        "reason",
        "accepted_at",
        F.col("attempt").alias("attempts"),
        F.when(is_accepted, lsn).alias("accepted_lsn"),
        F.when(is_accepted, at).alias("begun_at"),
        F.when(kind == CLOSED, lsn).alias("closed_lsn"),
        F.when(kind == LEASED, lsn).alias("leased_lsn"),
        F.when(kind.isin(RELEASED, QUARANTINED), lsn).alias("released_lsn"),
        F.when(kind.isin(ACCEPTED, RELEASED, REQUEUED), lsn).alias("due_lsn"),
        F.lit(1).cast("long").alias("facts"),
    )


def _of_open(open_before: DataFrame) -> DataFrame:
    """An open message as a step: its state is expressed by the kind of fact that leads there, and all its values count as its last fact's."""
    lsn = F.col("last_lsn")
    return open_before.select(
        "broker_id",
        "message_no",
        lsn.alias("lsn"),
        F.col("last_at").alias("at"),
        F.when(F.col("state") == "leased", LEASED)
        .when(F.col("state") == "quarantined", QUARANTINED)
        .otherwise(RELEASED)
        .cast("byte")
        .alias("kind"),
        *_ASKED,
        "due_at",
        "worker_no",
        F.col("last_reason").alias("reason"),
        "accepted_at",
        "attempts",
        "accepted_lsn",
        F.col("accepted_at").alias("begun_at"),
        F.lit(None).cast("long").alias("closed_lsn"),
        F.when(F.col("worker_no").isNotNull(), lsn).alias("leased_lsn"),
        F.when(F.col("last_reason").isNotNull(), lsn).alias("released_lsn"),
        lsn.alias("due_lsn"),
        F.lit(0).cast("long").alias("facts"),
    )


def _told(steps: DataFrame) -> DataFrame:
    return steps.groupBy("broker_id", "message_no").agg(
        *[F.min_by(name, "accepted_lsn").alias(name) for name in _ASKED],
        F.min("begun_at").alias("accepted_at"),
        F.min("accepted_lsn").alias("accepted_lsn"),
        F.max("accepted_at").alias("said_accepted_at"),
        F.min("closed_lsn").alias("closed_lsn"),
        F.count("accepted_lsn").alias("begins"),
        F.count("closed_lsn").alias("ends"),
        F.max_by("due_at", "due_lsn").alias("due_at"),
        F.max_by("worker_no", "leased_lsn").alias("worker_no"),
        F.max_by("reason", "released_lsn").alias("last_reason"),
        F.max_by("kind", "lsn").alias("last_kind"),
        F.coalesce(F.max("attempts"), F.lit(0)).alias("attempts"),
        F.sum("facts").alias("facts"),
        F.min("lsn").alias("first_lsn"),
        F.max("lsn").alias("last_lsn"),
        F.min("at").alias("first_at"),
        F.max("at").alias("last_at"),
    )


def _is_open() -> Column:
    return (F.col("begins") > 0) & (F.col("ends") == 0)


def _why() -> Column:
    return (
        F.when(F.col("begins") == 0, "no_accepted")
        .when(F.col("begins") > 1, "accepted_twice")
        .when(F.col("ends") > 1, "closed_twice")
        .when(F.col("last_lsn") > F.col("closed_lsn"), "after_closed")
        .when(F.col("first_lsn") < F.col("accepted_lsn"), "before_accepted")
    )
