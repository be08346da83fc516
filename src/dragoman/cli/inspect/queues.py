"""`dragoman queues`: list queues, and pause, drain, resume, purge or forget one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import more_line, print_json, print_lines, print_table, progress_bar
from dragoman.model.phrases import count_of, duration


@click.group(invoke_without_command=True)
@click.option("--prefix", default="", help="Only queues whose names begin so.")
@page_options
@data_option
@json_option
@click.pass_context
def queues(context: click.Context, prefix: str, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show queues; pause, drain, resume, purge or forget one."""
    if context.invoked_subcommand is not None:
        return
    found = ask(data, "queues", prefix=prefix, limit=limit, offset=offset)
    if as_json:
        print_json(found)
        return
    rows = [
        (
            queue["queue"] + switch_note(queue),
            queue["waiting"],
            queue["delayed"],
            queue["leased"],
            queue["quarantined"],
            queue["workers"],
            queue["slots_free"],
            queue["done"],
            queue["failed"],
            duration(queue["wait_mean_ns"]) if queue["wait_mean_ns"] else "",
        )
        for queue in found["queues"]
    ]
    counts = [">waiting", ">delayed", ">leased", ">quar.", ">workers", ">free", ">done", ">failed", ">wait"]
    print_table("", ["queue", *counts], rows)
    print_lines(more_line(len(rows), offset, found["total"], "queues"))


def switch_note(queue: dict[str, Any]) -> str:
    """Whether an operator paused or drains the queue."""
    if queue["is_paused"]:
        return " (paused)"
    return " (draining)" if queue["is_draining"] else ""


@queues.command()
@click.argument("queue")
@data_option
@json_option
def pause(queue: str, data: Path, as_json: bool) -> None:
    """Give nothing of QUEUE to workers any more; it still takes messages. Survives restarts."""
    answer = ask(data, "pause", queue=queue)
    print_json(answer) if as_json else print_lines([f"{queue} is paused"])


@queues.command()
@click.argument("queue")
@data_option
@json_option
def drain(queue: str, data: Path, as_json: bool) -> None:
    """Take no new messages for QUEUE and give out what waits; `resume` ends it. Survives restarts.

    Whoever sends to it is refused with QUEUE_CLOSED. Retries and quarantined messages of the queue go on; schedules make nothing in it.
    """
    answer = ask(data, "drain_queue", queue=queue)
    left = f"{count_of(answer['waiting'], 'message')} to give out, {answer['leased']} leased"
    print_json(answer) if as_json else print_lines([f"{queue} drains: {left}"])


@queues.command()
@click.argument("queue")
@data_option
@json_option
def resume(queue: str, data: Path, as_json: bool) -> None:
    """End a pause or a drain of QUEUE."""
    answer = ask(data, "resume", queue=queue)
    print_json(answer) if as_json else print_lines([f"{queue} goes on"])


@queues.command()
@click.argument("queue")
@click.option("--delayed", is_flag=True, help="Also what is delayed or in backoff.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def purge(queue: str, delayed: bool, yes: bool, data: Path, as_json: bool) -> None:
    """Cancel everything that waits in QUEUE; what workers hold goes on."""
    if not yes:
        click.confirm(f"Cancel every waiting message of {queue}?", abort=True, err=True)
    with progress_bar("purging", as_json) as progress:
        answer = ask(data, "purge", progress, queue=queue, delayed=delayed)
    print_json(answer) if as_json else print_lines([f"{count_of(answer['purged'], 'message')} of {queue} cancelled"])


@queues.command()
@click.argument("queue", required=False, default="")
@click.option("--prefix", default="", help="All queues whose names begin so and that nothing refers to.")
@click.option("--all", "all_", is_flag=True, help="All queues that nothing refers to.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@data_option
@json_option
def forget(queue: str, prefix: str, all_: bool, yes: bool, data: Path, as_json: bool) -> None:
    """Forget QUEUE, its counts and its name; who names it again makes a new one.

    Refused while anything refers to it: a message, a worker, a schedule, a dedupe key that still counts, a pause. The broker does the same by
    itself with queues that were not used for `queues.forget_s`.
    """
    if bool(queue) + bool(prefix) + all_ != 1:
        raise click.UsageError("name a QUEUE, or give --prefix or --all")
    if not queue and not yes:
        which = f"that begins with {prefix}" if prefix else "there is"
        click.confirm(f"Forget every queue {which} and that nothing refers to?", abort=True, err=True)
    with progress_bar("forgetting", as_json) as progress:
        answer = ask(data, "forget", progress, queue=queue, prefix=prefix, all=all_)
    kept = f", {count_of(answer['kept'], 'queue')} in use" if answer["kept"] else ""
    line = f"{queue} is forgotten" if queue else f"{count_of(answer['forgotten'], 'queue')} forgotten{kept}"
    print_json(answer) if as_json else print_lines([line])
