"""The session's settings, where they can be seen, and Spark's failures in words."""

from __future__ import annotations

import os
import socket
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyarrow import parquet
from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from dragoman.errors import BadSparkConf, LakeDamaged, PipelineFailed, SparkUnreachable
from dragoman_spark.jobs.spark.errors import in_words, readable, readable_at_start, reason_in
from dragoman_spark.jobs.spark.session import MEMORY_MAX, cores_of, memory_for_driver, open_session, settings_for


def test_answers_do_not_depend_on_where_they_are_made(spark: SparkSession) -> None:
    assert spark.conf.get("spark.sql.session.timeZone") == "UTC"
    noon = spark.createDataFrame([(datetime(2026, 3, 2, 12, tzinfo=UTC),)], "at timestamp")
    assert noon.select(F.hour("at"), F.date_format("at", "HH:mm")).first() == (12, "12:00")


def test_the_session_listens_to_nobody_and_shows_no_page(spark: SparkSession) -> None:
    assert spark.conf.get("spark.ui.enabled") == "false"
    assert spark.sparkContext.uiWebUrl is None
    assert spark.conf.get("spark.driver.host") == "127.0.0.1"
    assert spark.conf.get("spark.driver.bindAddress") == "127.0.0.1"


def test_what_is_written_has_microseconds_and_is_packed_with_zstd(spark: SparkSession, tmp_path: Path) -> None:
    instant = spark.createDataFrame([(datetime(2026, 3, 2, tzinfo=UTC),)], "at timestamp")
    instant.coalesce(1).write.parquet(str(tmp_path / "out"))
    (file,) = (tmp_path / "out").glob("*.parquet")
    metadata = parquet.read_metadata(file)
    assert metadata.row_group(0).column(0).compression == "ZSTD"
    assert metadata.schema.to_arrow_schema().field("at").type.unit == "us"


def test_a_second_session_is_the_first_one_and_leaves_it_running(spark: SparkSession) -> None:
    with open_session("another") as session:
        assert session is spark
    assert spark.range(3).count() == 3


def test_a_local_session_has_bounded_memory_and_a_few_tasks_for_each_core() -> None:
    settings = settings_for("local[3]", {})
    assert settings["spark.sql.shuffle.partitions"] == "6"
    assert settings["spark.driver.memory"] == f"{memory_for_driver() // 2**20}m"
    assert 0 < memory_for_driver() <= MEMORY_MAX
    assert settings["spark.sql.adaptive.enabled"] == "true"


def test_a_clusters_own_settings_are_left_alone() -> None:
    settings = settings_for("spark://somewhere:7077", {})
    assert not {"spark.driver.host", "spark.driver.memory", "spark.sql.shuffle.partitions"} & set(settings)
    assert settings["spark.sql.session.timeZone"] == "UTC"


def test_what_the_user_says_stands_above_everything() -> None:
    settings = settings_for("local[2]", {"spark.driver.memory": "7g", "spark.driver.extraJavaOptions": "-Xss8m"})
    assert settings["spark.driver.memory"] == "7g"
    assert settings["spark.driver.extraJavaOptions"].endswith("-XX:+UseParallelGC -Xss8m")


@pytest.mark.parametrize(
    ("master", "cores"),
    [("local", 1), ("local[1]", 1), ("local[4]", 4), ("local[4,2]", 4), ("local-cluster[2,3,1024]", 6)],
)
def test_cores_are_read_from_the_master(master: str, cores: int) -> None:
    assert cores_of(master) == cores


def test_all_cores_are_those_of_the_machine() -> None:
    assert cores_of("local[*]") == os.cpu_count()


def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("scheme", ["sc", "spark"])
def test_an_address_at_which_nothing_listens_is_refused_at_once(scheme: str) -> None:
    from dragoman_spark.jobs.spark.session import _reach

    address = f"{scheme}://127.0.0.1:{unused_port()}"
    with pytest.raises(SparkUnreachable, match="Connection refused") as raised:
        _reach(address, f"{scheme}://", 15002)
    assert raised.value.exit_code == 3
    assert address in str(raised.value)


def test_of_several_masters_one_has_to_be_there() -> None:
    from dragoman_spark.jobs.spark.session import _reach

    with socket.create_server(("127.0.0.1", 0)) as server:
        _reach(f"spark://127.0.0.1:{unused_port()},127.0.0.1:{server.getsockname()[1]}", "spark://", 7077)


def test_a_missing_file_is_reported_in_one_line(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PipelineFailed) as raised, readable():
        spark.read.parquet(str(tmp_path / "nothing"))
    assert "PATH_NOT_FOUND" in str(raised.value)
    assert str(tmp_path / "nothing") in str(raised.value)
    assert "\n" not in str(raised.value)
    assert isinstance(raised.value.__cause__, AnalysisException)


def test_a_failure_inside_a_task_is_reported_by_its_innermost_cause(spark: SparkSession) -> None:
    with pytest.raises(PipelineFailed) as raised, readable():
        spark.range(1).select(F.raise_error(F.lit("row 7 is odd"))).collect()
    assert "row 7 is odd" in str(raised.value)
    assert "\n" not in str(raised.value)
    assert "\tat " not in str(raised.value)


def test_a_setting_that_spark_refuses_is_bad_usage(spark: SparkSession) -> None:
    with pytest.raises(BadSparkConf, match="many") as raised, readable_at_start("local"):
        spark.conf.set("spark.sql.shuffle.partitions", "many")
    assert raised.value.exit_code == 2


def test_our_own_errors_pass_as_they_are_and_those_of_python_stay_bugs() -> None:
    with pytest.raises(LakeDamaged), readable():
        raise LakeDamaged("x.parquet", "it is torn")
    with pytest.raises(ZeroDivisionError), readable():
        _ = 1 / 0


def test_an_error_of_ours_that_went_through_java_comes_back_with_its_code() -> None:
    text = (
        "[STREAM_FAILED] Query [id = 1] terminated with exception: An exception was raised by the Python Proxy. Return Message: "
        'Traceback (most recent call last):\n  File "stream.py", line 7, in take\n    raise LakeDamaged(name, problem)\n'
        "dragoman.errors.operators.LakeDamaged: x.parquet is torn\n\n\tat py4j.Protocol.getReturnValue(Protocol.java:476)\n"
    )
    found = in_words(RuntimeError(text))
    assert (type(found), found.code, str(found)) == (LakeDamaged, "LAKE_DAMAGED", "x.parquet is torn")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[X] plain words\n\tat a.b.C", "[X] plain words"),
        (
            "An error occurred while calling o12.load.\n: java.lang.IllegalArgumentException: no such thing\n\tat a.b",
            "no such thing",
        ),
        (
            "An error occurred\n: a.Outer: failed\nCaused by: b.Inner: java.io.IOException: No space left on device",
            "No space left on device",
        ),
        ("x\nCaused by: java.lang.OutOfMemoryError", "OutOfMemoryError"),
        ("", ""),
    ],
)
def test_the_innermost_reason_is_found_in_a_trace(text: str, reason: str) -> None:
    assert reason_in(text) == reason
