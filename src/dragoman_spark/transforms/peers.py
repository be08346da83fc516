"""Workers: when each was connected, and which queues it served."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman.lake.schema import REASONS
from dragoman_spark.tables import PEERS
from dragoman_spark.transforms.instants import span_ms
from dragoman_spark.transforms.life.kinds import STARTED, WORKER_JOINED, WORKER_LEFT

_BROKER_STARTED: Final = next(number for number, word in REASONS.items() if word == "broker_started")
_PRINTABLE: Final = r"^\P{C}+$"
# `weight queue` each, tab separated; a name may have tabs itself, so it extends to the next weight.
_SERVED: Final = r"(?s)(?:^|\t)-?\d+ ((?:(?!\t-?\d+ ).)*)"


def peers(events: DataFrame, now: Column | datetime) -> DataFrame:
    """One row per worker that joined. It joins again when it serves other queues: the span begins with the first joining, the queues are
    those of the last. A worker without a leaving fact left at the next start of its broker, at the latest."""
    left_at = F.coalesce("said_left_at", F.col("start.at"))
    reason = F.when(F.col("said_left_at").isNotNull(), F.col("said_reason")).when(
        F.col("start").isNotNull(), F.lit(_BROKER_STARTED)
    )
    parts = F.split("text", "\t", 4)
    spans = (
        _spans(events)
        .join(F.broadcast(_starts(events)), "broker_id", "left")
        .withColumn("start", F.array_min(F.filter("starts", lambda start: start["lsn"] > F.col("joined_lsn"))))
        .withColumn("left_at", left_at)
        .withColumn("reason", reason)
        .withColumn("listener", F.get(parts, 0))
        .withColumn("remote", F.get(parts, 1))
        .withColumn("identity", _as_text(F.get(parts, 2)))
        .withColumn("queues", _served(F.get(parts, 3)))
        .withColumn("connected_ms", span_ms(F.col("joined_at"), F.coalesce("left_at", F.lit(now))))
    )
    return PEERS.select(spans)


def _spans(events: DataFrame) -> DataFrame:
    is_joined, is_left = F.col("kind") == WORKER_JOINED, F.col("kind") == WORKER_LEFT
    joined_lsn, left_lsn = F.when(is_joined, F.col("lsn")), F.when(is_left, F.col("lsn"))
    return (
        events.where(is_joined | is_left)
        .groupBy("broker_id", "worker_no")
        .agg(
            F.min(joined_lsn).alias("joined_lsn"),
            F.min_by("at", joined_lsn).alias("joined_at"),
            F.max_by("worker_dialect", joined_lsn).alias("worker_dialect"),
            F.max_by("text", joined_lsn).alias("text"),
            F.min_by("at", left_lsn).alias("said_left_at"),
            F.min_by("reason", left_lsn).alias("said_reason"),
        )
        .where(F.col("joined_lsn").isNotNull())
    )


def _starts(events: DataFrame) -> DataFrame:
    started = events.where(F.col("kind") == STARTED)
    return started.groupBy("broker_id").agg(F.collect_list(F.struct("lsn", "at")).alias("starts"))


def _as_text(identity_hex: Column) -> Column:
    """Identities as text where they are printable; most are names a person chose. Null: an anonymous peer."""
    text = F.try_validate_utf8(F.unhex(identity_hex).cast("string"))
    shown = F.when(text.rlike(_PRINTABLE), text).otherwise(identity_hex)
    return F.when(identity_hex != "", shown)


def _served(rest: Column) -> Column:
    queues = F.regexp_extract_all(F.coalesce(rest, F.lit("")), F.lit(_SERVED), F.lit(1))
    return F.transform(
        queues, lambda queue: F.coalesce(queue, F.lit(""))
    )  # marks the names as not null, as in the table
