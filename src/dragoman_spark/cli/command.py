"""`dragoman pipeline`: run, watch, backfill, check, report, compact.

Exit codes: 0 done; 1 failed, an expectation of the quality gates is not met, or `check` found a difference; 2 bad usage;
3 no Spark reachable.
"""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Final

import click

from dragoman_spark.cli.call import Call, call_options, hold_option
from dragoman_spark.cli.show import show_differences, show_summary
from dragoman_spark.cli.work import Work, at_work, facts_are_there, tables_are_there
from dragoman_spark.jobs.options import TRIGGER_S, Summary

NOT_AS_IT_SHOULD_BE: Final = 1


@click.group()
def pipeline() -> None:
    """Make tables and answers from the lake's facts, on Spark.

    Needs `pip install 'dragoman[spark]'`; Spark runs in this machine unless --master or --remote names another.
    """


@pipeline.command()
@click.option(
    "--report", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write the report, too."
)
@hold_option
@call_options
def run(call: Call, report: Path | None) -> None:
    """Take what is new in the lake into the tables, answer, and end: for cron."""
    facts_are_there(call)
    with at_work(call, "pipeline run") as work:
        from dragoman_spark.jobs import stream

        summary = stream.run(work.session, call.lake, call.out, call.options, work.progress)
        written = _report(call, work, report) if report else None
    show_summary(summary, call.as_json, **({"report": written} if written else {}))
    _judge(summary)


@pipeline.command()
@click.option(
    "--trigger",
    type=click.FloatRange(0.1, 3600),
    default=TRIGGER_S,
    show_default=True,
    metavar="SECONDS",
    help="From the beginning of one batch to that of the next.",
)
@hold_option
@call_options
def watch(call: Call) -> None:
    """Take facts into the tables as they are sealed, until it is interrupted or terminated."""
    with at_work(call, "pipeline watch") as work, stopping() as stop:
        from dragoman_spark.jobs import stream

        summary = stream.watch(work.session, call.lake, call.out, call.options, work.progress, stop)
    show_summary(summary, call.as_json)
    _judge(summary)


@pipeline.command()
@click.option("--date", type=click.DateTime(["%Y-%m-%d"]), metavar="DAY", help="Only this day (UTC), as 2026-03-31.")
@call_options
def backfill(call: Call, date: datetime | None) -> None:
    """Make the tables anew from the lake: a day, or everything that was taken so far."""
    facts_are_there(call)
    tables_are_there(call)
    with at_work(call, "pipeline backfill") as work:
        from dragoman_spark.jobs.backfill import backfill as recompute

        day = date.date() if date else None
        summary = recompute(work.session, call.lake, call.out, call.options, day, work.progress)
    show_summary(summary, call.as_json)
    _judge(summary)


@pipeline.command()
@call_options
def check(call: Call) -> None:
    """Compare the tables with those made anew from the lake; a difference ends it with 1."""
    facts_are_there(call)
    tables_are_there(call)
    with at_work(call, "pipeline check") as work:
        from dragoman_spark.jobs.check import check as compare

        found = compare(work.session, call.lake, call.out, call.options, work.progress)
    show_differences(found, call.as_json)
    if found.rows:
        click.get_current_context().exit(NOT_AS_IT_SHOULD_BE)


@pipeline.command()
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to; plots lie beside it.  [default: DATA/report.html]",
)
@call_options
def report(call: Call, to: Path | None) -> None:
    """Write the report: one HTML file that needs nothing else, and its plots as PNGs."""
    tables_are_there(call)
    with at_work(call, "pipeline report") as work:
        written = _report(call, work, to or call.report)
    if call.as_json:
        click.echo(json.dumps({"report": str(written)}))
    else:
        click.echo(f"report: {written}")


@pipeline.command()
@call_options
def compact(call: Call) -> None:
    """Fold the tables' many small batches into few files. Readers may go on meanwhile."""
    tables_are_there(call)
    with at_work(call, "pipeline compact") as work:
        from dragoman_spark.jobs.tables.compact import compact as fold

        summary = fold(work.session, call.out, call.options, work.progress)
    show_summary(summary, call.as_json)


def _report(call: Call, work: Work, to: Path) -> Path:
    from dragoman_spark.report import write_report

    return write_report(work.session, call.out, to, call.options, work.progress)


def _judge(summary: Summary) -> None:
    if summary.quality_failures:
        click.get_current_context().exit(NOT_AS_IT_SHOULD_BE)


@contextmanager
def stopping() -> Iterator[threading.Event]:
    """An event that the first SIGINT or SIGTERM sets, so that the current batch is finished; a second one interrupts."""
    stop = threading.Event()

    def ask(number: int, frame: object) -> None:
        if stop.is_set():
            raise KeyboardInterrupt
        stop.set()

    before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
