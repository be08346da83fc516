"""Gold tables of facts made up by chance, against DuckDB's answers to the same questions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.schemas import FACTS, Table
from dragoman_spark.tables import CROSSINGS, FUNNEL, LATENCY, THROUGHPUT
from dragoman_spark.transforms.events import events
from dragoman_spark.transforms.life.attempts import attempts
from dragoman_spark.transforms.life.messages import messages
from dragoman_spark.transforms.peers import peers
from dragoman_spark.transforms.queues import queues
from dragoman_spark.transforms.volume.counts import counts
from dragoman_spark.transforms.volume.crossings import crossings
from dragoman_spark.transforms.volume.funnel import funnel
from dragoman_spark.transforms.volume.latency import latency
from dragoman_spark.transforms.volume.throughput import throughput
from dragoman_spark.transforms.workers import workers
from tests.spark.judge_gold import Answer, Judge
from tests.spark.lives_by_chance import facts_by_chance, to_parquet

SEEDS = {7: 411, 8: 412}  # two brokers whose queues have the same names


@dataclass
class Lake:
    facts: DataFrame
    judge: Judge

    @property
    def queues(self) -> DataFrame:
        return queues(events(self.facts))


@pytest.fixture(scope="module")
def lake(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lake]:
    root = tmp_path_factory.mktemp("gold")
    files = [
        to_parquet(facts_by_chance(seed, moves=1500, broker_id=broker_id), root / f"{broker_id}.parquet")
        for broker_id, seed in SEEDS.items()
    ]
    facts = spark.read.schema(FACTS).parquet(*[str(file) for file in files]).cache()
    yield Lake(facts, Judge(files))
    facts.unpersist()


def agree(table: Table, made: DataFrame, judged: list[Answer]) -> None:
    assert len(judged) > 1, f"nothing to compare; seeds {SEEDS}"
    expected = made.sparkSession.createDataFrame(judged, table.struct())
    # The two brokers share their queues' names: their rows add up, as those of batches do.
    assertDataFrameEqual(table.merged(made), expected, ignoreNullable=True, rtol=1e-12, atol=0)


def test_latency_agrees_with_the_judge(lake: Lake) -> None:
    agree(LATENCY, latency(messages(lake.facts), lake.queues), lake.judge.latency())


def test_throughput_agrees_with_the_judge(lake: Lake) -> None:
    agree(THROUGHPUT, throughput(counts(lake.facts), lake.queues), lake.judge.throughput())


def test_the_funnel_agrees_with_the_judge(lake: Lake) -> None:
    agree(FUNNEL, funnel(counts(lake.facts), lake.queues), lake.judge.funnel())


def test_crossings_agree_with_the_judge(lake: Lake) -> None:
    agree(CROSSINGS, crossings(messages(lake.facts)), lake.judge.crossings())


def test_busy_time_is_the_length_of_the_union_of_all_a_worker_held(lake: Lake) -> None:
    now = lake.facts.agg({"at": "max"}).first()[0]
    made = workers(attempts(lake.facts), peers(events(lake.facts), now)).collect()
    busy_ms = {(row.broker_id, row.worker_no): row.busy_ms for row in made if row.attempts}
    assert busy_ms == pytest.approx(lake.judge.busy_ms(), rel=1e-12), f"seeds {SEEDS}"
    assert all(0 <= row.utilisation <= 1 for row in made if row.connected_ms)


@pytest.mark.parametrize("table", [LATENCY, THROUGHPUT, FUNNEL, CROSSINGS], ids=lambda table: table.name)
def test_two_halves_merged_are_the_whole(lake: Lake, table: Table) -> None:
    def make(facts: DataFrame) -> DataFrame:
        if table is LATENCY:
            return latency(messages(facts), lake.queues)
        if table is CROSSINGS:
            return crossings(messages(facts))
        return (throughput if table is THROUGHPUT else funnel)(counts(facts), lake.queues)

    # Odd and even: neither half is a period of its own, so that nearly every key is in both.
    odd, even = make(lake.facts.where("lsn % 2 = 1")), make(lake.facts.where("lsn % 2 = 0"))
    whole = table.merged(make(lake.facts))
    assertDataFrameEqual(table.merged(odd.unionAll(even)), whole, ignoreNullable=True, rtol=1e-12, atol=0)
