"""`dragoman quarantine`: messages set aside because they seem to kill their workers, have no retries left, or have damaged records."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import clock, print_json, print_lines, print_page, progress_bar
from dragoman.model.phrases import count_of, size

F = TypeVar("F", bound=Callable[..., Any])


def filter_options(command: F) -> F:
    """Options that filter messages; all given ones must match."""
    for decorate in (
        click.option(
            "--older-than",
            "older_than_s",
            type=click.FloatRange(0),
            default=0.0,
            metavar="SECONDS",
            help="Only messages accepted so long ago.",
        ),
        click.option("--dialect", default="", help="Only messages of clients of this dialect."),
        click.option("--reason", default="", help="Only messages set aside for this reason (workers_died, failed …)."),
        click.option("--queue", default="", help="Only messages of this queue."),
    ):
        command = decorate(command)
    return command


def which_options(command: F) -> F:
    """Options and ids that select the messages to change; at least one is required."""
    command = click.option("--all", "every", is_flag=True, help="All there are.")(command)
    return click.argument("ids", nargs=-1, metavar="[ID]...")(filter_options(command))


def evidence(message: dict[str, Any]) -> str:
    died_with = message["died_with"]
    return f"died with {', '.join(died_with)}" if died_with else str(message.get("damage", ""))


@click.group()
def quarantine() -> None:
    """Show, retry or drop messages that were set aside."""


@quarantine.command("list")
@filter_options
@page_options
@data_option
@json_option
def list_(limit: int, offset: int, data: Path, as_json: bool, **which: Any) -> None:
    """Show quarantined messages with the evidence, oldest first."""
    found = ask(data, "quarantine_list", limit=limit, offset=offset, **which)
    rows = [
        (
            message["id"],
            message["client_id"],
            message["queue"],
            message["last_reason"],
            message["attempt"],
            evidence(message),
            clock(message["accepted_ns"]),
            size(message["body_size"]),
        )
        for message in found["messages"]
    ]
    columns = ["id", "client id", "queue", "reason", ">attempts", "evidence", "accepted", ">body"]
    print_page(found, offset, "messages", columns, rows, as_json)


@quarantine.command()
@which_options
@data_option
@json_option
def retry(ids: tuple[str, ...], every: bool, data: Path, as_json: bool, **which: Any) -> None:
    """Put quarantined messages back into their queues; their count of dead workers begins anew."""
    check_which(ids, which, every)
    with progress_bar("retrying", as_json) as progress:
        answer = ask(data, "quarantine_retry", progress, ids=ids, all=every, **which)
    print_json(answer) if as_json else print_lines([f"{count_of(answer['retried'], 'message')} back in their queues"])


@quarantine.command()
@which_options
@data_option
@json_option
def drop(ids: tuple[str, ...], every: bool, data: Path, as_json: bool, **which: Any) -> None:
    """End quarantined messages for good; their facts stay in the journal."""
    check_which(ids, which, every)
    with progress_bar("dropping", as_json) as progress:
        answer = ask(data, "quarantine_drop", progress, ids=ids, all=every, **which)
    print_json(answer) if as_json else print_lines([f"{count_of(answer['dropped'], 'message')} dropped"])


def check_which(ids: tuple[str, ...], which: dict[str, Any], every: bool) -> None:
    if bool(ids) + any(which.values()) + every != 1:
        raise click.UsageError("say which: IDs; what they have in common (--queue NAME …); or --all (one of these)")
