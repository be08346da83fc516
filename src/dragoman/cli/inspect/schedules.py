"""`dragoman schedules`: list and remove durable schedules."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import clock, more_line, print_json, print_lines, print_table
from dragoman.core.queries.schedule_words import job_text, when_text

JOB_TEXT_MAX: Final = 80


def when(cron: str, interval_s: float) -> str:
    said = when_text(cron, interval_s)
    return f"{said} ({cron})" if cron else said


@click.group(invoke_without_command=True)
@page_options
@data_option
@json_option
@click.pass_context
def schedules(context: click.Context, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show durable schedules; remove one."""
    if context.invoked_subcommand is not None:
        return
    found = ask(data, "schedules", limit=limit, offset=offset)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            schedule["id"],
            schedule["queue"],
            when(schedule["cron"], schedule["interval_s"]),
            clock(schedule["next_due_ns"]),
            clock(schedule["last_due_ns"]),
            schedule["fired"],
            schedule["runs_left"] if schedule["runs_left"] >= 0 else "",
            job_text(schedule["body"])[:JOB_TEXT_MAX],
        )
        for schedule in found["schedules"]
    ]
    print_table("", ["id", "queue", "when", "next", "last", ">fired", ">runs left", "job"], rows)
    print_lines(more_line(len(rows), offset, found["total"], "schedules"))


@schedules.command()
@click.argument("id_", metavar="ID")
@data_option
@json_option
def remove(id_: str, data: Path, as_json: bool) -> None:
    """Forget schedule ID (as the list shows it); messages it already made go on."""
    answer = ask(data, "unschedule", id=id_)
    print_json(answer) if as_json else print_lines([f"schedule {answer['unscheduled']['id']} is removed"])
