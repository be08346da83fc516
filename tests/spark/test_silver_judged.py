"""A few thousand lawful facts by chance, and some spoiled ones: Spark and DuckDB give the same rows."""

from __future__ import annotations

import random
from datetime import datetime
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.schemas import FACTS
from dragoman_spark.tables import OPEN
from dragoman_spark.transforms.life.attempts import attempts
from dragoman_spark.transforms.life.lives import lives
from dragoman_spark.transforms.life.messages import messages
from dragoman_spark.transforms.life.open_messages import open_messages
from dragoman_spark.transforms.life.orphans import orphans
from tests.spark import judge
from tests.spark.lives_by_chance import KIND, Fact, facts_by_chance, to_parquet

SEED = 20260302


@pytest.fixture(scope="module")
def lawful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two brokers that number their messages alike."""
    facts = facts_by_chance(SEED, moves=4000, broker_id=7) + facts_by_chance(SEED + 1, moves=1500, broker_id=8)
    return to_parquet(facts, tmp_path_factory.mktemp("lawful") / "facts.parquet")


def read(spark: SparkSession, path: Path) -> DataFrame:
    return spark.read.schema(FACTS).parquet(str(path))


def lives_of(spark: SparkSession, facts: DataFrame) -> DataFrame:
    return lives(spark.createDataFrame([], OPEN.struct()), facts)


def begins(spark: SparkSession, first_lsn: int = 1, first_at: datetime | None = None) -> DataFrame:
    rows = [(broker_id, first_lsn, first_at) for broker_id in (7, 8)]
    return spark.createDataFrame(rows, "broker_id long, first_lsn long, first_at timestamp")


def test_messages_are_what_the_whole_lives_say(spark: SparkSession, lawful: Path) -> None:
    answer = judge.judged(judge.MESSAGES, lawful)
    assert answer.num_rows > 500
    assert judge.differences(messages(read(spark, lawful)), answer) == []


def test_attempts_are_each_lease_with_its_end(spark: SparkSession, lawful: Path) -> None:
    answer = judge.judged(judge.ATTEMPTS, lawful)
    assert answer.num_rows > 500
    assert judge.differences(attempts(read(spark, lawful)), answer) == []


def test_open_messages_are_those_without_an_end(spark: SparkSession, lawful: Path) -> None:
    answer = judge.judged(judge.OPEN, lawful)
    assert set(answer["state"].to_pylist()) == {"waiting", "leased", "quarantined"}
    assert judge.differences(open_messages(lives_of(spark, read(spark, lawful))), answer) == []


def test_lawful_facts_have_no_orphans(spark: SparkSession, lawful: Path) -> None:
    assert judge.judged(judge.ORPHANS, lawful).num_rows == 0
    assert orphans(lives_of(spark, read(spark, lawful)), begins(spark)).isEmpty()


def test_every_fact_too_many_or_too_few_makes_an_orphan(spark: SparkSession, tmp_path: Path) -> None:
    path = to_parquet(spoiled(facts_by_chance(SEED + 2, moves=3000), SEED), tmp_path / "facts.parquet")
    answer = judge.judged(judge.ORPHANS, path)
    assert set(answer["why"].to_pylist()) == {
        "no_accepted", "accepted_twice", "closed_twice", "after_closed", "before_accepted"
    }  # fmt: skip
    assert judge.differences(orphans(lives_of(spark, read(spark, path)), begins(spark)), answer) == []


def spoiled(facts: list[Fact], seed: int) -> list[Fact]:
    """Take out some accepted facts, double some, and let some come again after the end or before the beginning."""
    chance = random.Random(seed)
    ended = [fact["message_no"] for fact in facts if fact["kind"] == KIND["closed"]]
    faults = dict.fromkeys(chance.sample(ended, 70))
    for n, number in enumerate(faults):
        faults[number] = ("lost", "doubled", "ended_again", "leased", "delivered", "requeued", "too_early")[n % 7]
    told: list[Fact] = []
    for fact in facts:
        fault, is_accepted = faults.get(fact.get("message_no")), fact["kind"] == KIND["accepted"]
        copy = dict(fact)
        if is_accepted and fault == "too_early":
            told.append({**copy, "kind": KIND["delivered"]})
        if not (is_accepted and fault == "lost"):
            told.append(fact)
        if is_accepted and fault == "doubled":
            told.append(copy)
        if fact["kind"] == KIND["closed"] and fault == "ended_again":
            told.append(copy)
        if fact["kind"] == KIND["closed"] and fault in ("leased", "delivered", "requeued"):
            told.append({**copy, "kind": KIND[fault], "leased_at": None})
    return [{**fact, "lsn": lsn} for lsn, fact in enumerate(told, start=1)]
