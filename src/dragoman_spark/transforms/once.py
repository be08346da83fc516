"""A value that is used several times but computed once."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import Column
from pyspark.sql import functions as F


def once(value: Column, use: Callable[[Column], Column]) -> Column:
    """`use(value)`. Spark repeats an expression at each use, and does not see that two higher-order functions are the same; a lambda's
    argument is computed once."""
    return F.get(F.transform(F.array(value), use), 0)
