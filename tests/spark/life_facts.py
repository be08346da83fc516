"""The facts of lives, short enough to write one life in one line."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession

from dragoman_spark.tables import OPEN
from tests.spark.frames import BROKER, at
from tests.spark.lives_by_chance import REASON


def accepted(message_no: int, **columns: Any) -> dict[str, Any]:
    asked = {"queue_no": 3, "client_dialect": 1, "priority": 4, "body_size": 10}
    return {"kind": "accepted", "message_no": message_no, **asked, **columns}


def leased(message_no: int, attempt: int = 1, worker_no: int = 50) -> dict[str, Any]:
    return {"kind": "leased", "message_no": message_no, "attempt": attempt, "worker_no": worker_no}


def released(message_no: int, attempt: int = 1, reason: int = 2, due_at: datetime | None = None) -> dict[str, Any]:
    ended = {"attempt": attempt, "worker_no": 50, "leased_at": at(0), "reason": reason, "due_at": due_at}
    return {"kind": "released", "message_no": message_no, **ended}


def quarantined(message_no: int, attempt: int = 1) -> dict[str, Any]:
    return {**released(message_no, attempt, REASON["workers_died"]), "kind": "quarantined"}


def closed(message_no: int, attempt: int = 1, **columns: Any) -> dict[str, Any]:
    timing = {
        "accepted_at": at(0),
        "leased_at": at(0) if attempt else None,
        "attempt": attempt,
        "outcome": 3,
        "reason": 1,
    }
    return {"kind": "closed", "message_no": message_no, **timing, **columns}


def plain(message_no: int) -> list[dict[str, Any]]:
    return [accepted(message_no), leased(message_no), closed(message_no)]


def nothing(spark: SparkSession) -> DataFrame:
    return spark.createDataFrame([], OPEN.struct())


def begins(spark: SparkSession, first_lsn: int = 1, first_at: datetime | None = None) -> DataFrame:
    return spark.createDataFrame([(BROKER, first_lsn, first_at)], "broker_id long, first_lsn long, first_at timestamp")


def by_number(frame: DataFrame) -> dict[int, Row]:
    rows = frame.collect()
    assert len({row.message_no for row in rows}) == len(rows)
    return {row.message_no: row for row in rows}
