"""One Spark session for all of these tests that a process runs. Each of them is marked `spark`: they run once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from dragoman_spark.jobs.spark.session import open_session

HERE = Path(__file__).parent
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    # Tiny frames: compiling well costs more than it gains, and a suite of them takes half the time without.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(HERE):
            item.add_marker(pytest.mark.spark)
            # The first test waits for Spark to start, which takes a minute where many share a machine.
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(600))


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    with open_session("tests", master="local[2]", conf=SETTINGS) as session:
        yield session
