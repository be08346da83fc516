"""Facts that fit no life: one frame of facts, one message per case, so that Spark runs once for them all."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, Row, SparkSession

from dragoman_spark.transforms.life.lives import lives
from dragoman_spark.transforms.life.orphans import orphans
from tests.spark.frames import at, facts
from tests.spark.life_facts import accepted, begins, by_number, closed, leased, nothing, plain, released

PLAIN = 100


@pytest.fixture(scope="module")
def told(spark: SparkSession) -> DataFrame:
    return facts(
        spark,
        *plain(PLAIN),
        *[leased(1), closed(1, accepted_at=at(-9))],
        *[accepted(2), accepted(2), leased(2), closed(2)],
        *[*plain(3), closed(3)],
        *[*plain(4), leased(4, 2)],
        *[leased(5), accepted(5), leased(5, 2), closed(5, 2)],
        *[*plain(6), {"kind": "delivered", "message_no": 6, "worker_no": 50}],
        *[*plain(7), {"kind": "requeued", "message_no": 7}],
        *[*plain(8), leased(8, 2), released(8, 2)],
        *[leased(9), closed(9, accepted_at=at(9))],
    )


@pytest.fixture(scope="module")
def found(spark: SparkSession, told: DataFrame) -> dict[int, Row]:
    return by_number(orphans(lives(nothing(spark), told), begins(spark)))


def test_a_whole_life_is_none(found: dict[int, Row]) -> None:
    assert PLAIN not in found


@pytest.mark.parametrize(
    ("message_no", "why"),
    [
        (1, "no_accepted"),
        (2, "accepted_twice"),
        (3, "closed_twice"),
        (4, "after_closed"),
        (5, "before_accepted"),
        (6, "after_closed"),
        (7, "after_closed"),
        (8, "after_closed"),
    ],
)
def test_facts_that_fit_no_life_say_why(found: dict[int, Row], message_no: int, why: str) -> None:
    assert found[message_no].why == why


def test_an_orphan_tells_how_many_facts_name_it_and_where(found: dict[int, Row]) -> None:
    row = found[2]
    assert (row.facts, row.first_lsn, row.last_lsn) == (4, 6, 9)


def test_a_life_that_began_before_the_lake_is_no_fault(spark: SparkSession, told: DataFrame) -> None:
    """Message 1 says it was accepted before the lake's first fact, message 9 after it."""
    found = by_number(orphans(lives(nothing(spark), told), begins(spark, first_lsn=500, first_at=at(1))))
    assert (found[1].why, found[9].why, found[2].why) == ("before_lake", "no_accepted", "accepted_twice")
