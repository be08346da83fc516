"""`dragoman queues`, `workers` and `schedules`: lists, and the commands that change one of their rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import ago, clock, print_json, print_lines, print_page, progress_bar
from dragoman.core.queries.schedule_words import job_text, when_text
from dragoman.model.phrases import count_of, duration

JOB_TEXT_MAX: Final = 80


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
    print_page(found, offset, "queues", ["queue", *counts], rows, as_json)


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

    Clients that send to it are refused with QUEUE_CLOSED. Retries and quarantined messages of the queue go on; schedules make nothing in it.
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


@click.group(invoke_without_command=True)
@click.option("--queue", default="", help="Only workers that serve this queue.")
@page_options
@data_option
@json_option
@click.pass_context
def workers(context: click.Context, queue: str, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show connected workers: what they serve, hold and have room for; dismiss or admit one.

    Dismissed workers that are not connected are listed below the others.
    """
    if context.invoked_subcommand is not None:
        return
    found = ask(data, "workers", queue=queue, limit=limit, offset=offset)
    now_ns = time.time_ns()
    rows = [
        (
            worker["id"],
            worker["name"],
            worker["state"],
            ", ".join(f"{served['queue']} ({served['weight']})" for served in worker["queues"]),
            worker["leased"],
            worker["slots_free"],
            worker["settled"],
            worker["failed"],
            ago(worker["last_sign_ns"], now_ns),
        )
        for worker in found["workers"]
    ]
    columns = ["id", "name", "state", "queues (weight)", ">leased", ">free", ">settled", ">failed", ">last sign"]
    print_page(found, offset, "workers", columns, rows, as_json)
    if not as_json:
        print_lines(kept_out_line(one, now_ns) for one in found["kept_out"])


def kept_out_line(one: dict[str, Any], now_ns: int) -> str:
    until = f"until {clock(one['until_ns'])}" if one["until_ns"] else "until it is restarted or admitted"
    return f"{one['id']} ({one['name']}) is kept out {until}: dismissed {ago(one['since_ns'], now_ns)}, not connected"


@workers.command()
@click.argument("worker")
@data_option
@json_option
def dismiss(worker: str, data: Path, as_json: bool) -> None:
    """Give WORKER (its id, number or identity) nothing new until it is admitted or restarted.

    It stays connected and finishes what it holds; its answers count. It stays dismissed when it connects again, as far as it can be
    recognised (docs/howto/worker.md). Only a pingpong worker hears of it, by EXIT, if `pingpong.send_exit` allows, and `dragoman worker`
    over eMQP, which logs it.
    """
    answer = ask(data, "dismiss", worker=worker)
    held = f"; it may finish {answer['leased']}" if answer["leased"] else ""
    print_json(answer) if as_json else print_lines([f"worker {worker} is dismissed{held}"])


@workers.command()
@click.argument("worker", required=False)
@click.option("--all", "is_all", is_flag=True, help="All dismissed workers.")
@data_option
@json_option
def admit(worker: str | None, is_all: bool, data: Path, as_json: bool) -> None:
    """Let dismissed WORKER (its id, number or identity) work again, also if it is not connected at the moment."""
    if (worker is None) != is_all:
        raise click.UsageError("name one worker, or say --all")
    answer = ask(data, "admit", worker=worker or "", all=is_all)
    line = f"{count_of(len(answer['workers']), 'worker')} admitted" if is_all else f"worker {worker} is admitted"
    print_json(answer) if as_json else print_lines([line])


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
    columns = ["id", "queue", "when", "next", "last", ">fired", ">runs left", "job"]
    print_page(found, offset, "schedules", columns, rows, as_json)


@schedules.command()
@click.argument("id_", metavar="ID")
@data_option
@json_option
def remove(id_: str, data: Path, as_json: bool) -> None:
    """Forget schedule ID (as the list shows it); messages it already made go on."""
    answer = ask(data, "unschedule", id=id_)
    print_json(answer) if as_json else print_lines([f"schedule {answer['unscheduled']['id']} is removed"])
