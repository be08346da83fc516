"""The pipeline through a Spark Connect server, with executors of its own, gives what it gives in one process."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

from dragoman_spark.tables import TABLES
from tests.spark.clusters import LOCAL_CLUSTER, asked, connect_server, executors, pipeline, spark_home
from tests.spark.tables_on_disk import in_words, rows_of_all

# Where many share a machine, Spark takes minutes to start.
pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize("master", [LOCAL_CLUSTER, pytest.param("local[2]", marks=pytest.mark.soak)])
def test_a_connect_server_gives_the_same_tables_and_polars_can_read_them(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, master: str
) -> None:
    answer = asked(spark, tmp_path_factory.getbasetemp())
    home, out = spark_home(tmp_path), tmp_path / "tables"
    with connect_server(home, master) as address:
        where = ["--lake", answer.lake, "--out", out, "--remote", address]
        summary = pipeline(home, "run", *where, "--format", "delta")
    assert summary["facts"] == answer.facts
    assert executors(home) == (2 if master == LOCAL_CLUSTER else 0)
    assert rows_of_all(out) == answer.rows
    for table in TABLES:
        rows = pl.read_delta(str(out / table.name)).to_dicts()
        assert in_words(table, rows) == answer.rows[table.name], table.name
