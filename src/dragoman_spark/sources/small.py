"""A few local rows as a frame. Made with Arrow: Spark's optimizer then sees them, and plans nothing for empty ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T


def small_frame(session: SparkSession, rows: Iterable[Sequence[Any]], struct: T.StructType) -> DataFrame:
    """Rows in the order of the struct's fields; they are embedded in the plan."""
    import pyarrow as pa
    from pyspark.sql.pandas.types import to_arrow_schema

    schema = to_arrow_schema(struct, timezone="UTC")
    named = [dict(zip(struct.names, row, strict=True)) for row in rows]
    return session.createDataFrame(pa.Table.from_pylist(named, schema=schema), struct)
