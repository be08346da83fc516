"""Finds the few messages whose lives are not complete, without a shuffle of all facts.

Message numbers have no large gaps, so 64 neighbours share one row, a *pack*, with one bit per message. Each fact sets or
flips its message's bit in some of a pack's words, and a complete life leaves its bits like this:

    begun     or   accepted, or carried over as open
    ended     or   closed                                            = begun
    named     or   any fact                                          = begun
    held      xor  leased; the ends of attempts                      = 0: every lease has its end
    tried     xor  leased; closed after an odd number of attempts    = 0: closed has the number of leases
    stirred   xor  quarantined, requeued; delivered, closed with a   = 0, except for messages dropped from quarantine, requeued out of a
                   delivery                                            backoff or delivered in an earlier attempt: checked, and
                                                                       found complete
    begins, ends   sums: how many                                    = how many bits are begun, ended

So ten million facts send some fifty thousand rows through the shuffle. Every open message is found, and every one that lacks
a fact or has one too many. Two such faults in one message that cancel out stay undetected, and so does a complete life in a
wrong order: `quality` detects that by the instants.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from dragoman_spark.transforms.life.kinds import (
    ACCEPTED,
    ATTEMPT_ENDS,
    CLOSED,
    DELIVERED,
    LEASED,
    LIFE,
    QUARANTINED,
    REQUEUED,
)


def sieve(open_before: DataFrame, facts: DataFrame) -> DataFrame:
    """`broker_id, pack_no, bits`: the messages of a pack whose lives are not simply complete. No row for a pack of complete lives."""
    # Spark processes the rows of a union one by one, so the many facts are packed before the union.
    packs = _packed(_packed(_of_facts(facts)).unionByName(_packed(_of_open(open_before))))
    has_twins = (F.col("begins") != F.bit_count("begun")) | (F.col("ends") != F.bit_count("ended"))
    odd = F.expr("(begun ^ ended) | (begun ^ named) | held | tried | stirred")
    every_bit = F.lit(-1).cast("long")
    return packs.select("broker_id", "pack_no", F.when(has_twins, every_bit).otherwise(odd).alias("bits")).where(
        F.col("bits") != 0
    )


def sifted(frame: DataFrame, packs: DataFrame) -> DataFrame:
    """The rows of `frame` whose message is in `packs`, which are few even with a long backlog: they are broadcast."""
    found = frame.withColumn("pack_no", _pack_no()).join(F.broadcast(packs), ["broker_id", "pack_no"])
    return found.where(F.col("bits").bitwiseAND(_bit()) != 0).drop("pack_no", "bits")


def _packed(words: DataFrame) -> DataFrame:
    """One row per pack. Packs may be packed again: or, xor and sum can be computed in any number of steps."""
    return words.groupBy("broker_id", "pack_no").agg(
        *[F.bit_or(name).alias(name) for name in ("begun", "ended", "named")],
        *[F.bit_xor(name).alias(name) for name in ("held", "tried", "stirred")],
        *[F.sum(name).alias(name) for name in ("begins", "ends")],
    )


def _of_facts(facts: DataFrame) -> DataFrame:
    kind = F.col("kind")
    ends_attempt = kind.isin(*ATTEMPT_ENDS) & F.col("leased_at").isNotNull()
    is_odd = F.col("attempt").bitwiseAND(1) == 1
    is_delivered_end = (kind == CLOSED) & F.col("delivered_at").isNotNull()
    life = facts.where(kind.isin(*LIFE) & F.col("message_no").isNotNull()).withColumn("bit", _bit())
    return life.select(
        "broker_id",
        _pack_no().alias("pack_no"),
        _bit_if(kind == ACCEPTED, "begun"),
        _bit_if(kind == CLOSED, "ended"),
        F.col("bit").alias("named"),
        _bit_if((kind == LEASED) | ends_attempt, "held"),
        _bit_if((kind == LEASED) | ((kind == CLOSED) & is_odd), "tried"),
        _bit_if(kind.isin(QUARANTINED, REQUEUED, DELIVERED) | is_delivered_end, "stirred"),
        (kind == ACCEPTED).cast("long").alias("begins"),
        (kind == CLOSED).cast("long").alias("ends"),
    )


def _of_open(open_before: DataFrame) -> DataFrame:
    state = F.col("state")
    return open_before.withColumn("bit", _bit()).select(
        "broker_id",
        _pack_no().alias("pack_no"),
        F.col("bit").alias("begun"),
        F.lit(0).cast("long").alias("ended"),
        F.col("bit").alias("named"),
        _bit_if(state == "leased", "held"),
        _bit_if(F.col("attempts").bitwiseAND(1) == 1, "tried"),
        _bit_if(state == "quarantined", "stirred"),
        F.lit(1).cast("long").alias("begins"),
        F.lit(0).cast("long").alias("ends"),
    )


def _pack_no() -> Column:
    return F.shiftright("message_no", 6)


def _bit() -> Column:
    return F.expr("shiftleft(1L, int(message_no & 63))")


def _bit_if(condition: Column, name: str) -> Column:
    return F.when(condition, F.col("bit")).otherwise(F.lit(0).cast("long")).alias(name)
