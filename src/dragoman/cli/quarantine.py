"""`dragoman quarantine`: messages that were set aside because they seem to kill whoever takes them."""

from __future__ import annotations

from pathlib import Path

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import clock, more_line, print_json, print_lines, print_table, progress_bar, size
from dragoman.core.phrases import count_of


@click.group()
def quarantine() -> None:
    """Show, retry or drop messages that were set aside."""


@quarantine.command("list")
@click.option("--queue", default="", help="Only messages of this queue.")
@page_options
@data_option
@json_option
def list_(queue: str, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show quarantined messages with the evidence, oldest first."""
    found = ask(data, "quarantine_list", queue=queue, limit=limit, offset=offset)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            message["id"],
            message["client_id"],
            message["queue"],
            message["last_reason"],
            message["attempt"],
            ", ".join(message["died_with"]),
            clock(message["accepted_ns"]),
            size(message["body_size"]),
        )
        for message in found["messages"]
    ]
    columns = ["id", "client id", "queue", "reason", ">attempts", "died with", "accepted", ">body"]
    print_table("", columns, rows)
    print_lines(more_line(len(rows), offset, found["total"], "messages"))


@quarantine.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--queue", default="", help="All of this queue.")
@click.option("--all", "every", is_flag=True, help="All there are.")
@data_option
@json_option
def retry(ids: tuple[str, ...], queue: str, every: bool, data: Path, as_json: bool) -> None:
    """Put quarantined messages back into their queues; their count of dead workers begins anew."""
    check_which(ids, queue, every)
    with progress_bar("retrying", as_json) as progress:
        answer = ask(data, "quarantine_retry", progress, ids=ids, queue=queue, all=every)
    print_json(answer) if as_json else print_lines([f"{count_of(answer['retried'], 'message')} back in their queues"])


@quarantine.command()
@click.argument("ids", nargs=-1, metavar="[ID]...")
@click.option("--queue", default="", help="All of this queue.")
@click.option("--all", "every", is_flag=True, help="All there are.")
@data_option
@json_option
def drop(ids: tuple[str, ...], queue: str, every: bool, data: Path, as_json: bool) -> None:
    """End quarantined messages for good; the journal still tells of them."""
    check_which(ids, queue, every)
    with progress_bar("dropping", as_json) as progress:
        answer = ask(data, "quarantine_drop", progress, ids=ids, queue=queue, all=every)
    print_json(answer) if as_json else print_lines([f"{count_of(answer['dropped'], 'message')} dropped"])


def check_which(ids: tuple[str, ...], queue: str, every: bool) -> None:
    if bool(ids) + bool(queue) + every != 1:
        raise click.UsageError("say which: IDs, --queue NAME or --all (one of them)")
