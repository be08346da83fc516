"""Spark's part: the product itself, `dragoman pipeline run` on a history, with the session it would have here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from dragoman_spark.jobs.options import SILENT, Options
from dragoman_spark.jobs.spark.session import open_session
from dragoman_spark.jobs.stream import run as run_stream

MASTER = "local[2]"


@contextmanager
def session(conf: dict[str, str] | None = None) -> Iterator[SparkSession]:
    with open_session("bench", master=MASTER, conf=conf or {}) as opened:
        yield opened


def run(lake: Path, out: Path) -> None:
    """Make every table. The session is that of the process."""
    opened = SparkSession.getActiveSession()
    assert opened is not None
    run_stream(opened, str(lake), str(out), Options(), SILENT)
