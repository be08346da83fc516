"""The headline: the period, how much, how fast, and whether anything is lost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pyspark.sql import Row
from pyspark.sql import functions as F

from dragoman_spark.report import words
from dragoman_spark.report.period import Period
from dragoman_spark.report.section import Headline, Reader, Tile, Tone
from dragoman_spark.report.timings import PERCENTS, Timings

ENDS: Final = ("done", "rejected", "expired", "cancelled")
BEFORE_LAKE: Final = "before_lake"  # of orphans: a life that began before the lake did; no fault


@dataclass(frozen=True, slots=True)
class Books:
    """The totals that must balance: each accepted message is settled or still open."""

    brokers: int = 0
    facts: int = 0
    open: int = 0
    orphans: dict[str, int] = field(default_factory=dict)  # by why

    @property
    def faults(self) -> int:
        return sum(n for why, n in self.orphans.items() if why != BEFORE_LAKE)


def balance(read: Reader) -> Books:
    """The totals. Lsns of a broker have no gaps, so the first and the last give the number of facts."""
    nothing, one = F.lit(0).alias("open"), F.lit(1)
    places = (
        read("events").select("broker_id", F.col("lsn").alias("first"), F.col("lsn").alias("last"), nothing)
        .unionAll(read("messages").select("broker_id", "lsn", "lsn", nothing))
        .unionAll(read("attempts").select("broker_id", "lsn", "lsn", nothing))
        .unionAll(read("open").select("broker_id", "accepted_lsn", "last_lsn", one))
    )  # fmt: skip
    span = F.max("last") - F.min("first") + 1
    brokers = places.groupBy("broker_id").agg(span.alias("facts"), F.sum("open").alias("open")).collect()
    orphans = {row["why"]: int(row["count"]) for row in read("orphans").groupBy("why").count().collect()}
    return Books(
        len(brokers), sum(int(row["facts"]) for row in brokers), sum(int(row["open"]) for row in brokers), orphans
    )


def headline(period: Period, kept: Books, times: Timings, expectations: list[Row]) -> Headline:
    if period.is_empty:
        return Headline(
            "No messages yet", (), "The tables hold no messages: run the pipeline on a lake first.", "plain"
        )
    accepted = period.totals["accepted"]
    ended = sum(period.totals[name] for name in ENDS)
    done = period.totals["done"]
    total = times.of_all.get("total")
    shown = [total[name] if total is not None else None for name in PERCENTS]
    tiles = (
        Tile(words.count(accepted), "messages", f"{words.count(ended)} ended, {words.count(kept.open)} open"),
        Tile(words.share(done, ended), "done", f"{words.count(done)} of {words.count(ended)} that ended"),
        Tile(words.duration(shown[0]), "median total", "half of all messages are faster"),
        Tile(words.duration(shown[1]), "p95 total", "95 of 100 are faster"),
        Tile(words.duration(shown[2]), "p99 total", "99 of 100 are faster"),
        Tile(words.count(kept.facts), "facts", f"of {words.several(kept.brokers, 'broker')}"),
    )
    verdict, tone = _verdict(accepted, ended, kept, expectations)
    span = f"{_minute(period.first_s)} – {_minute(period.last_s)} UTC"
    return Headline(f"{span} ({words.duration(period.seconds * 1000)})", tiles, verdict, tone)


def _minute(at_s: int) -> str:
    return f"{words.day(at_s)}, {words.clock(at_s)}"


def _verdict(accepted: int, ended: int, kept: Books, expectations: list[Row]) -> tuple[str, Tone]:
    failing = [row["expectation"] for row in expectations if row["rows"] and row["is_fatal"]]
    missing = accepted - ended - kept.open
    tone: Tone = "good"
    if missing > 0:
        tone = "bad"
        says = f"{words.several(missing, 'message')} {words.verb(missing, 'is', 'are')} neither settled nor open: look at the orphans."
    elif missing < 0:
        says = (
            f"0 messages are lost: each accepted one is settled or still open. {words.count(-missing)} of those settled or open had "
            "been accepted before the lake begins."
        )
    else:
        says = (
            f"0 messages are lost: all {words.count(accepted)} accepted ones are settled ({words.count(ended)}) or still open "
            f"({words.count(kept.open)})."
        )
    if kept.faults:
        tone = "bad"
        says += f" The facts of {words.several(kept.faults, 'message')} fit no life (orphans)."
    else:
        says += " There are 0 orphans: every fact fits the life of its message."
    if failing:
        tone = "bad"
        says += f" {words.several(len(failing), 'quality gate')} {words.verb(len(failing), 'is', 'are')} broken."
    elif expectations:
        says += f" {words.several(len(expectations), 'quality gate')} {words.verb(len(expectations), 'holds', 'hold')}."
    return says, tone
