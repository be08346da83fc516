"""Stuck messages: those open longest, and why."""

from __future__ import annotations

from typing import Final

from pyspark.sql import functions as F

from dragoman_spark.report import words
from dragoman_spark.report.period import Period
from dragoman_spark.report.section import Grid, Reader, Section

NAME: Final = "stuck"
LABEL: Final = "Stuck"
SHOWN_MAX: Final = 20
WHY_LENGTH_MAX: Final = 160  # characters


def section(read: Reader, period: Period, open_messages: int) -> Section:
    rows = read("stuck").orderBy(F.desc("age_ms"), "message_no").limit(SHOWN_MAX).collect()
    if not rows:
        return Section(NAME, LABEL, "No message is open." if not open_messages else "No open message stands out.")
    cells = tuple(
        (
            row["message"] or str(row["message_no"]),
            words.name(row["queue"]),
            row["client_dialect"] or words.NOTHING,
            row["state"] or words.NOTHING,
            words.duration(row["age_ms"]),
            words.count(row["attempts"]),
            _cut(row["why"]),
        )
        for row in rows
    )
    heads = ("message", "queue", "client", "state", "# open for", "# attempts", "why")
    return Section(
        NAME,
        LABEL,
        f"The oldest open message has been open for {words.duration(rows[0]['age_ms'])}",
        f"The longest open of {words.several(open_messages, 'open message')}, and what each waits for. dragoman explain MESSAGE "
        "asks the running broker, dragoman trace MESSAGE tells the whole story.",
        grids=(Grid("Open longest", heads, cells, is_open=True),),
    )


def _cut(text: str | None) -> str:
    if text is None:
        return words.NOTHING
    return text if len(text) <= WHY_LENGTH_MAX else text[: WHY_LENGTH_MAX - 1] + "…"
