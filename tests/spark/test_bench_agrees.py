"""The bench's other contenders write what the pipeline writes: else it would compare apples with pears."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from bench.pipeline import in_duckdb, in_spark, lakes
from bench.pipeline.agree import differences, digests


@pytest.mark.timeout(600)
def test_duckdb_writes_every_row_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    lake = lakes.lake(tmp_path / "lakes", 20_000, False, lambda _: None)
    in_spark.run(lake, tmp_path / "spark")
    in_duckdb.run(lake, tmp_path / "duckdb")
    assert differences(digests(tmp_path / "spark"), digests(tmp_path / "duckdb")) == []
