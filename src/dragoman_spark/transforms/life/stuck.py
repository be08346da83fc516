"""Stuck messages: those open longest, and why."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman.lake.schema import DIALECTS, REASONS
from dragoman_spark.schemas import worded
from dragoman_spark.tables import STUCK
from dragoman_spark.transforms.instants import span_ms

STUCK_MAX: Final = 100
_COUNT_BITS: Final = 40


def stuck(
    open: DataFrame,  # noqa: A002 - the table's name
    peers: DataFrame,
    queues: DataFrame,
    now: Column | datetime,
    limit: int = STUCK_MAX,
) -> DataFrame:
    """The messages open longest, the longest first. A message that was never tried counts from when it was due; one that was tried counts
    from its acceptance, because a retry makes it no younger."""
    instant = F.lit(now)
    since = F.when(F.col("attempts") > 0, F.col("accepted_at")).otherwise(F.greatest("accepted_at", "due_at"))
    age_ms = F.greatest(span_ms(since, instant), F.lit(0.0))
    # Sorted by age before any lookup: the rest handles about a hundred rows, however many wait.
    oldest = open.withColumn("age_ms", age_ms).orderBy(*_longest_first()).limit(limit)
    known = (
        _named(oldest, queues)
        .join(_holders(peers), ["broker_id", "worker_no"], "left")
        .join(_service(peers), ["broker_id", "queue"], "left")
        .join(_ahead(open, oldest, instant), ["broker_id", "message_no"], "left")
    )
    told = (
        known.withColumn("why", _why(instant))
        .withColumn("message", numbered(F.col("message_no")))
        .withColumn("client_dialect", worded("client_dialect", DIALECTS))
        # Repeating the limit saves a shuffle for the order.
        .orderBy(*_longest_first())
        .limit(limit)
    )
    return STUCK.select(told)


def numbered(number: Column) -> Column:
    """A message's or worker's number in its displayed form: boot.count."""
    boot = F.shiftright(number, _COUNT_BITS)
    count = number.bitwiseAND(F.lit((1 << _COUNT_BITS) - 1))
    return F.concat_ws(".", boot.cast("string"), count.cast("string"))


def _longest_first() -> list[Column]:
    return [F.desc("age_ms"), F.col("accepted_at"), F.col("broker_id"), F.col("message_no")]


def _named(oldest: DataFrame, queues: DataFrame) -> DataFrame:
    """As in `names`, plus whether the queue is paused, in one join."""
    known = F.broadcast(queues.select("broker_id", "queue_no", "queue", "is_paused"))
    number = F.concat(F.lit("#"), F.col("queue_no").cast("string"))
    return oldest.join(known, ["broker_id", "queue_no"], "left").withColumn("queue", F.coalesce("queue", number))


def _holders(peers: DataFrame) -> DataFrame:
    """The worker that has, or last had, a message: by its identity, else by its address."""
    return peers.select("broker_id", "worker_no", F.coalesce("identity", "remote").alias("holder"))


def _service(peers: DataFrame) -> DataFrame:
    """One row per queue that a worker ever served: how many do now, and which left last."""
    served = peers.select("broker_id", F.explode("queues").alias("queue"), "left_at", "reason")
    left = served.groupBy("broker_id", "queue").agg(
        F.count_if(F.col("left_at").isNull()).alias("workers_now"),
        F.max("left_at").alias("last_left_at"),
        F.max_by("reason", "left_at").alias("left_reason"),
    )
    return left.withColumn("left_because", worded("left_reason", REASONS))


def _ahead(open: DataFrame, oldest: DataFrame, now: Column) -> DataFrame:  # noqa: A002 - the table's name
    """The number of messages that wait before each of the oldest in its queue: those of a higher priority, and those accepted earlier."""
    asked = (
        oldest.where(F.col("state") == "waiting")
        .select("broker_id", "queue_no", F.struct(_priority(), "accepted_lsn", "message_no").alias("asked"))
        .groupBy("broker_id", "queue_no")
        .agg(
            F.collect_list("asked").alias("all_asked"),
            F.max("asked.accepted_lsn").alias("last_lsn_asked"),
            F.min("asked.priority").alias("least_priority_asked"),
        )
    )
    # Most of a long queue is behind all of the oldest: it is filtered out before each is compared with each.
    may_be_before = (F.col("accepted_lsn") < F.col("last_lsn_asked")) | (_priority() > F.col("least_priority_asked"))
    is_before = (F.col("priority") > F.col("asked.priority")) | (
        (F.col("priority") == F.col("asked.priority")) & (F.col("accepted_lsn") < F.col("asked.accepted_lsn"))
    )
    return (
        open.where((F.col("state") == "waiting") & ~_is_delayed(now))
        .select("broker_id", "queue_no", _priority(), "accepted_lsn")
        .join(F.broadcast(asked), ["broker_id", "queue_no"])
        .where(may_be_before)
        .select("broker_id", "priority", "accepted_lsn", F.explode("all_asked").alias("asked"))
        .where(is_before)
        .groupBy("broker_id", F.col("asked.message_no").alias("message_no"))
        .agg(F.count("*").alias("ahead"))
    )


def _priority() -> Column:
    return F.coalesce("priority", F.lit(0)).alias("priority")


def _why(now: Column) -> Column:
    """The first condition that holds, in words."""
    waits, attempts = F.col("state") == "waiting", F.col("attempts")
    reason = F.coalesce(worded("last_reason", REASONS), F.lit("none"))
    tried = F.concat(F.lit(" after "), _plural(attempts, "attempt"))
    is_paused, workers_now = F.coalesce("is_paused", F.lit(False)), F.coalesce("workers_now", F.lit(0))
    return (
        F.when(F.col("state") == "quarantined", F.concat(F.lit("quarantined ("), reason, F.lit(")"), tried))
        .when(
            waits & _is_delayed(now) & (attempts > 0),
            F.concat(
                F.lit("attempt "),
                attempts.cast("string"),
                F.lit(" ended ("),
                reason,
                F.lit("); delayed until "),
                _utc("due_at"),
            ),
        )
        .when(waits & _is_delayed(now), F.concat(F.lit("delayed until "), _utc("due_at")))
        .when(~waits, _held(now))
        .when(is_paused, F.lit("the queue is paused"))
        .when(F.col("workers_now").isNull(), F.lit("no worker ever served the queue"))
        .when(
            workers_now == 0,
            F.concat(
                F.lit("no worker serves the queue now: the last one left at "),
                _utc("last_left_at"),
                F.coalesce(F.concat(F.lit(" ("), F.col("left_because"), F.lit(")")), F.lit("")),
            ),
        )
        .otherwise(
            F.concat(
                F.when(workers_now == 1, F.lit("1 worker serves")).otherwise(
                    F.concat(workers_now.cast("string"), F.lit(" workers serve"))
                ),
                F.lit(" the queue: waits for its turn behind "),
                _plural(F.coalesce("ahead", F.lit(0)), "other"),
            )
        )
    )


def _held(now: Column) -> Column:
    """The worker and the duration: the latest fact of a leased message is its lease, or its worker's confirmation that it has begun."""
    worker = F.concat(F.lit("w"), numbered(F.col("worker_no")))
    return F.concat(
        F.lit("held by worker "),
        F.coalesce(worker, F.lit("unknown")),
        F.coalesce(F.concat(F.lit(" ("), F.col("holder"), F.lit(")")), F.lit("")),
        F.lit(" for "),
        _duration(span_ms(F.col("last_at"), now) / 1000),
        F.lit(", attempt "),
        F.coalesce(F.col("attempts"), F.lit(1)).cast("string"),
    )


def _is_delayed(now: Column) -> Column:
    return F.coalesce(F.col("due_at") > now, F.lit(False))


def _plural(number: Column, noun: str) -> Column:
    return F.concat(
        F.coalesce(number, F.lit(0)).cast("string"),
        F.when(number == 1, F.lit(f" {noun}")).otherwise(F.lit(f" {noun}s")),
    )


def _utc(column: str) -> Column:
    """To the second. Computed from numbers, so that the session's time zone does not matter."""
    seconds = F.unix_seconds(F.col(column))
    of_day = F.pmod(seconds, F.lit(86_400))
    day = F.date_from_unix_date(F.floor(seconds / 86_400).cast("int"))
    parts = (F.floor(of_day / 3_600), F.floor(of_day / 60) % 60, of_day % 60)
    clock = F.concat_ws(":", *[F.lpad(part.cast("string"), 2, "0") for part in parts])
    return F.concat(day.cast("string"), F.lit(" "), clock, F.lit(" UTC"))


def _duration(seconds: Column) -> Column:
    """In readable units: 12 s, 3 min, 2 h, 4 d."""
    whole = F.greatest(seconds, F.lit(0.0))
    steps = ((86_400 * 2, 86_400, "d"), (3_600 * 2, 3_600, "h"), (60 * 2, 60, "min"))
    said = F.concat(F.floor(whole).cast("string"), F.lit(" s"))
    for least, unit_s, unit in reversed(steps):
        said = F.when(whole >= least, F.concat(F.floor(whole / unit_s).cast("string"), F.lit(f" {unit}"))).otherwise(
            said
        )
    return said
