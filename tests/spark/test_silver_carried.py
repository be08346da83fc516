"""Lives go on from batch to batch, wherever they are cut."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.testing import assertDataFrameEqual

from dragoman_spark.schemas import FACTS
from dragoman_spark.tables import OPEN
from dragoman_spark.transforms.life.lives import lives
from dragoman_spark.transforms.life.open_messages import open_messages
from dragoman_spark.transforms.life.orphans import orphans
from dragoman_spark.transforms.life.sieve import sieve
from tests.spark.frames import BROKER, at, facts, rows_of
from tests.spark.life_facts import accepted, begins, by_number, closed, leased, nothing, plain, released
from tests.spark.lives_by_chance import facts_by_chance, to_parquet


@pytest.fixture(scope="module")
def carried(spark: SparkSession) -> DataFrame:
    common = {"broker_id": BROKER, "queue_no": 3, "client_dialect": 1, "accepted_at": at(0), "accepted_lsn": 1}
    common |= {"state": "waiting", "attempts": 0, "last_at": at(0), "last_lsn": 9, "priority": 4, "body_size": 10}
    held = {"state": "leased", "attempts": 1, "worker_no": 50}
    rows = [
        {"message_no": 1},
        {"message_no": 2, **held},
        {"message_no": 3, **held},
        {"message_no": 4, "due_at": at(60)},
        {"message_no": 5},
        {"message_no": 6, **held, "state": "quarantined", "last_reason": 13},
        {"message_no": 7, "attempts": 1, "worker_no": 50, "last_reason": 2, "due_at": at(60)},
    ]
    return rows_of(spark, OPEN, *[{**common, **row} for row in rows])


@pytest.fixture(scope="module")
def batch(spark: SparkSession) -> DataFrame:
    rows = [leased(1), closed(1), closed(2), released(3, due_at=at(70)), leased(4), accepted(5)]
    rows += [{"kind": "requeued", "message_no": 6}, leased(6, 2), closed(6, 2), {"kind": "requeued", "message_no": 7}]
    return facts(spark, *[{**row, "lsn": lsn} for lsn, row in enumerate(rows, start=10)])


@pytest.fixture(scope="module")
def told(carried: DataFrame, batch: DataFrame) -> Iterator[DataFrame]:
    frame = lives(carried, batch).persist()
    yield frame
    frame.unpersist()


def test_a_message_accepted_in_an_earlier_batch_goes_on(told: DataFrame) -> None:
    found = by_number(open_messages(told))
    assert set(found) == {3, 4, 5, 7}, "1, 2 and 6 were settled in this batch"
    assert (found[3].state, found[3].attempts, found[3].last_reason) == ("waiting", 1, 2)
    assert (found[4].state, found[4].attempts, found[4].queue_no) == ("leased", 1, 3)
    assert found[4].due_at is not None
    assert (found[4].accepted_lsn, found[4].last_lsn) == (1, 14)
    assert (found[7].state, found[7].due_at) == ("waiting", None), "the operator did not wait for its backoff"


def test_a_message_that_was_open_cannot_be_accepted_again(spark: SparkSession, told: DataFrame) -> None:
    found = by_number(orphans(told, begins(spark)))
    assert {number: row.why for number, row in found.items()} == {5: "accepted_twice"}


def test_what_no_fact_names_stays_as_it_was(spark: SparkSession, carried: DataFrame) -> None:
    nothing_new = spark.createDataFrame([], FACTS)
    assertDataFrameEqual(open_messages(lives(carried, nothing_new)), carried)


def test_only_lives_that_are_not_whole_leave_the_sieve(spark: SparkSession) -> None:
    """64 neighbours share a row; 70 whole lives of one, two or no attempts leave none, an open one shows by its bit."""
    rows = [fact for number in range(70) for fact in plain(number)]
    rows += [accepted(70), leased(70), released(70), leased(70, 2), closed(70, 2)]
    rows += [accepted(71), closed(71, 0, leased_at=None), accepted(130)]
    found = sieve(nothing(spark), facts(spark, *rows)).collect()
    assert [(row.pack_no, row.bits) for row in found] == [(2, 1 << 2)]


def test_lives_cut_anywhere_go_on_as_if_uncut(spark: SparkSession, tmp_path: Path) -> None:
    """Each cut is a broker of its own: broker n had its first batch end with fact n, and its second one 20 facts later."""
    seed = 33
    told = facts_by_chance(seed, moves=160)
    cuts = range(len(told) + 1)
    path = to_parquet([{**fact, "broker_id": cut} for cut in cuts for fact in told], tmp_path / "facts.parquet")
    everything = spark.read.schema(FACTS).parquet(str(path))
    lsn, cut = F.col("lsn"), F.col("broker_id")
    carried = nothing(spark)
    for batch, part in enumerate((lsn <= cut, (lsn > cut) & (lsn <= cut + 20), lsn > cut + 20)):
        lives(carried, everything.where(part)).write.parquet(str(tmp_path / f"lives{batch}"))
        life = spark.read.parquet(str(tmp_path / f"lives{batch}"))
        assert life.where("why is not null").isEmpty(), f"seed {seed}"
        carried = open_messages(life)
    uncut = open_messages(lives(nothing(spark), everything)).collect()
    assert {row.state for row in uncut} == {"waiting", "leased", "quarantined"}, f"seed {seed} leaves too little open"
    assertDataFrameEqual(carried, uncut)
