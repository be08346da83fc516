"""A message's ends, by word, and counts of them. Only a closing fact has an outcome, so no other condition is needed."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from dragoman.lake import schema as lake

ENDS: Final = {
    word: number for number, word in lake.OUTCOMES.items() if word in ("done", "rejected", "expired", "cancelled")
}
DONE: Final = ENDS["done"]


def counts_of_ends() -> list[Column]:
    """The number of messages by end: one column per end, named by it."""
    return [F.count_if(F.col("outcome") == number).alias(word) for word, number in ENDS.items()]


def sum_or_0(column: Column) -> Column:
    """The sum of a column; 0 and not null if there is nothing to add."""
    return F.coalesce(F.sum(column), F.lit(0))
