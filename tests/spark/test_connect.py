"""The pipeline through a Spark Connect server gives what it gives in one process."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from dragoman_spark.tables import TABLES
from tests.spark.clusters import asked, connect_server, pipeline, spark_home
from tests.spark.tables_on_disk import in_words, rows_of_all

# Where many share a machine, Spark takes minutes to start.
pytestmark = pytest.mark.timeout(900)


def test_a_connect_server_gives_the_same_tables_and_polars_can_read_them(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    answer = asked(spark, tmp_path_factory.getbasetemp())
    home, out = spark_home(tmp_path), tmp_path / "tables"
    with connect_server(home) as address:
        where = ["--lake", answer.lake, "--out", out, "--remote", address]
        summary = pipeline(home, "run", *where, "--format", "delta")
    assert summary["facts"] == answer.facts
    assert rows_of_all(out) == answer.rows
    for table in TABLES:
        rows = pl.read_delta(str(out / table.name)).to_dicts()
        assert in_words(table, rows) == answer.rows[table.name], table.name
