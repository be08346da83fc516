"""The report: the pipeline's tables as one HTML file, with the same figures as PNGs beside it.

A section answers one question: it queries Spark for as few rows as a figure has marks, states the finding in words, and draws it. `page`
makes HTML of all of them. The tables come through a reader (a name → a DataFrame), so that tests need no files.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession

from dragoman_spark.jobs.options import SILENT, Options, Progress
from dragoman_spark.jobs.tables.root import TableRoot
from dragoman_spark.jobs.tables.table_store import TableStore
from dragoman_spark.report import render
from dragoman_spark.report.page import page
from dragoman_spark.report.period import survey
from dragoman_spark.report.section import Reader, Section
from dragoman_spark.report.sections import (
    anomalies,
    capacity,
    crossings,
    funnel,
    latency,
    quality,
    slo,
    stuck,
    throughput,
    waits,
    workers,
)
from dragoman_spark.report.sections.headline import balance, headline
from dragoman_spark.report.timings import timings

__all__ = ["write_report"]

STAGE: Final = "report"


def write_report(
    session: SparkSession,
    out: str,
    path: Path,
    options: Options | None = None,
    progress: Progress = SILENT,
    *,
    read: Reader | None = None,
) -> Path:
    """Write the report on the tables in `out` to `path`, and its figures to the folder `<path>.files`. Return the path."""
    read = read or _shelf(session, out)
    with render.drawing():
        period = survey(read)
        books, times, expectations = balance(read), timings(read, period), quality.broken(read)
        questions: list[Callable[[], Section]] = [
            lambda: latency.section(read, period, times),
            lambda: waits.section(times),
            lambda: throughput.section(read, period),
            lambda: funnel.section(read, period, books.open),
            lambda: crossings.section(read, period),
            lambda: workers.section(read, period),
            lambda: slo.section(read, period),
            lambda: capacity.section(read, period),
            lambda: anomalies.section(read, period),
            lambda: stuck.section(read, period, books.open),
            lambda: quality.section(expectations, books.orphans),
        ]
        sections = []
        for done, question in enumerate(questions):
            progress.step(STAGE, done, len(questions))
            sections.append(question())
        drawings = {s.name: render.svg(s.figure, s.name) for s in sections if s.figure is not None}
        _write_figures(sections, path)
    path.write_text(page(headline(period, books, times, expectations), sections, drawings), encoding="utf-8")
    progress.step(STAGE, len(questions), len(questions))
    return path


def _write_figures(sections: list[Section], path: Path) -> None:
    """Write one PNG for each figure; PNGs of an earlier report without a figure now are removed as outdated."""
    folder = path.with_name(path.name + ".files")
    folder.mkdir(parents=True, exist_ok=True)
    for section in sections:
        file = folder / f"{section.name}.png"
        if section.figure is not None:
            file.write_bytes(render.png(section.figure))
        else:
            file.unlink(missing_ok=True)


def _shelf(session: SparkSession, out: str) -> Reader:
    """A reader with one view of the tables, so that a batch committed meanwhile does not make sections disagree."""
    store = TableStore(TableRoot(out))

    def read(name: str) -> DataFrame:
        return store.read(session, name)

    return read
