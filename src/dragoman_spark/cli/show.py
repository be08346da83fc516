"""Output of a job's results, for people and for scripts."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from dragoman.printable import printable, printable_json
from dragoman_spark.jobs.options import Differences, Summary


def show_summary(summary: Summary, as_json: bool, **further: Any) -> None:
    if as_json:
        click.echo(printable_json(json.dumps(_as_document(summary) | further, indent=2, default=str)))
        return
    click.echo(f"{counted(summary.facts, 'fact')} in {counted(summary.batches, 'batch')}, {pace(summary)}")
    show_rows(summary.rows_by_table)
    if summary.quality_failures:
        failed = counted(summary.quality_failures, "expectation")
        click.echo(f"quality: {failed} not met; the table `quality` says which", err=True)
    for name, value in further.items():
        click.echo(f"{name}: {value}")


def show_differences(found: Differences, as_json: bool) -> None:
    if as_json:
        document = {
            "rows": found.rows,
            "rows_by_table": found.rows_by_table,
            "examples_by_table": found.examples_by_table,
            "facts": found.facts,
            "seconds": round(found.seconds, 3),
        }
        click.echo(printable_json(json.dumps(document, indent=2, default=str)))
        return
    tables = counted(len(found.rows_by_table), "table")
    if not found.rows:
        click.echo(f"no difference: {tables} made anew from {counted(found.facts, 'fact')} have the same rows")
        return
    click.echo(
        f"{counted(found.rows, 'row')} of {tables} differ from those made anew from {counted(found.facts, 'fact')}"
    )
    show_rows({name: rows for name, rows in found.rows_by_table.items() if rows})
    for name, examples in found.examples_by_table.items():
        for example in examples:
            click.echo(f"  {name}: {printable(example)}")


def show_rows(rows_by_table: Mapping[str, int]) -> None:
    width = max((len(name) for name in rows_by_table), default=0)
    for name, rows in rows_by_table.items():
        click.echo(f"  {name:<{width}}  {spaced(rows):>14}")


def pace(summary: Summary) -> str:
    if summary.seconds <= 0 or not summary.facts:
        return f"{summary.seconds:.1f} s"
    return f"{summary.seconds:.1f} s, {spaced(round(summary.facts / summary.seconds))} facts a second"


def counted(number: int, noun: str) -> str:
    """`1 fact`, `12 000 facts`, `3 batches`."""
    plural = noun + ("es" if noun.endswith("ch") else "s")
    return f"{spaced(number)} {noun if number == 1 else plural}"


def spaced(number: int) -> str:
    """`12 000`: digits in groups of three."""
    return f"{number:,}".replace(",", " ")


def _as_document(summary: Summary) -> dict[str, Any]:
    return {
        "batches": summary.batches,
        "facts": summary.facts,
        "rows_by_table": summary.rows_by_table,
        "quality_failures": summary.quality_failures,
        "seconds": round(summary.seconds, 3),
    }
