"""The pipeline on executors of their own gives what it gives in one process. `test_connect` has the shorter version of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.spark.clusters import (
    LOCAL_CLUSTER,
    SETTINGS,
    Asked,
    asked,
    executors,
    pipeline,
    said,
    spark_home,
    two_workers,
)
from tests.spark.tables_on_disk import rows_of_all

# Up to five Java processes start here, one after the other; where many share a machine that takes minutes.
pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]


@pytest.fixture
def answer(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return asked(spark, tmp_path_factory.getbasetemp())


def test_a_cluster_of_two_processes_gives_the_same_tables(answer: Asked, tmp_path: Path) -> None:
    home, out = spark_home(tmp_path), tmp_path / "tables"
    where = ["--lake", answer.lake, "--out", out, "--master", LOCAL_CLUSTER]
    summary = pipeline(home, "run", *where, *said(SETTINGS))
    assert summary["facts"] == answer.facts
    assert executors(home) == 2
    assert rows_of_all(out) == answer.rows


def test_a_master_with_two_workers_gives_the_same_tables(answer: Asked, tmp_path: Path) -> None:
    home, out = spark_home(tmp_path), tmp_path / "tables"
    with two_workers(home) as address:
        where = ["--lake", answer.lake, "--out", out, "--master", address]
        summary = pipeline(home, "run", *where, *said(SETTINGS))
    assert summary["facts"] == answer.facts
    assert executors(home) == 2
    assert rows_of_all(out) == answer.rows
