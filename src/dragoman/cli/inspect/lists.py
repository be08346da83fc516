"""`dragoman queues`, `workers`, `schedules` and `quarantine`: lists, and the commands that change their rows."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Final

import click
from click import argument, option

from dragoman.cli.admin_client import ask
from dragoman.cli.options import all_options, common_options, page_options
from dragoman.cli.show import ago, clock, print_lines, print_page, print_result, progress_bar
from dragoman.core.queries.schedule_words import job_text, when_text
from dragoman.model.phrases import count_of, duration, size

JOB_TEXT_MAX: Final = 80
QUEUE_COUNTS: Final = ("waiting", "delayed", "leased", "quarantined", "workers", "slots_free", "done", "failed")
WORKER_COUNTS: Final = ("leased", "slots_free", "settled", "failed")


@click.group(invoke_without_command=True)
@option("--prefix", default="", help="Only queues whose names begin so.")
@page_options
@common_options
@click.pass_context
def queues(context: click.Context, prefix: str, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show queues; pause, drain, resume, purge or forget one."""
    if context.invoked_subcommand is not None:
        return
    found = ask(data, "queues", prefix=prefix, limit=limit, offset=offset)
    rows = [
        (
            queue["queue"] + switch_note(queue),
            *(queue[name] for name in QUEUE_COUNTS),
            duration(queue["wait_mean_ns"]) if queue["wait_mean_ns"] else "",
        )
        for queue in found["queues"]
    ]
    counts = [">waiting", ">delayed", ">leased", ">quar.", ">workers", ">free", ">done", ">failed", ">wait"]
    print_page(found, offset, "queues", ["queue", *counts], rows, as_json)


def switch_note(queue: dict[str, Any]) -> str:
    """Whether an operator paused or drains the queue."""
    return " (paused)" if queue["is_paused"] else " (draining)" if queue["is_draining"] else ""


@queues.command()
@argument("queue")
@common_options
def pause(queue: str, data: Path, as_json: bool) -> None:
    """Give nothing of QUEUE to workers any more; it still takes messages. Survives restarts."""
    print_result(ask(data, "pause", queue=queue), as_json, f"{queue} is paused")


@queues.command()
@argument("queue")
@common_options
def drain(queue: str, data: Path, as_json: bool) -> None:
    """Take no new messages for QUEUE and give out what waits; `resume` ends it. Survives restarts.

    Clients that send to it are refused with QUEUE_CLOSED. Retries and quarantined messages of the queue go on; schedules make nothing in it.
    """
    answer = ask(data, "drain_queue", queue=queue)
    left = f"{count_of(answer['waiting'], 'message')} to give out, {answer['leased']} leased"
    print_result(answer, as_json, f"{queue} drains: {left}")


@queues.command()
@argument("queue")
@common_options
def resume(queue: str, data: Path, as_json: bool) -> None:
    """End a pause or a drain of QUEUE."""
    print_result(ask(data, "resume", queue=queue), as_json, f"{queue} goes on")


@queues.command()
@argument("queue")
@option("--delayed", is_flag=True, help="Also what is delayed or in backoff.")
@option("--yes", is_flag=True, help="Do not ask.")
@common_options
def purge(queue: str, delayed: bool, yes: bool, data: Path, as_json: bool) -> None:
    """Cancel everything that waits in QUEUE; what workers have leased goes on."""
    if not yes:
        click.confirm(f"Cancel every waiting message of {queue}?", abort=True, err=True)
    with progress_bar("purging", as_json) as progress:
        answer = ask(data, "purge", progress, queue=queue, delayed=delayed)
    print_result(answer, as_json, f"{count_of(answer['purged'], 'message')} of {queue} cancelled")


@queues.command()
@argument("queue", required=False, default="")
@option("--prefix", default="", help="All queues whose names begin so and that nothing refers to.")
@option("--all", "all_", is_flag=True, help="All queues that nothing refers to.")
@option("--yes", is_flag=True, help="Do not ask.")
@common_options
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
    in_use = f", {count_of(answer['kept'], 'queue')} in use" if answer["kept"] else ""
    line = f"{queue} is forgotten" if queue else f"{count_of(answer['forgotten'], 'queue')} forgotten{in_use}"
    print_result(answer, as_json, line)


@click.group(invoke_without_command=True)
@option("--queue", default="", help="Only workers that serve this queue.")
@page_options
@common_options
@click.pass_context
def workers(context: click.Context, queue: str, limit: int, offset: int, data: Path, as_json: bool) -> None:
    """Show connected workers: what they serve, have leased and have room for; dismiss or admit one.

    Dismissed workers that are not connected are listed below the others.
    """
    if context.invoked_subcommand is not None:
        return
    found = ask(data, "workers", queue=queue, limit=limit, offset=offset)
    now_ns = time.time_ns()
    rows = [
        (
            *(worker[name] for name in ("id", "name", "state")),
            ", ".join(f"{served['queue']} ({served['weight']})" for served in worker["queues"]),
            *(worker[name] for name in WORKER_COUNTS),
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
@argument("worker")
@common_options
def dismiss(worker: str, data: Path, as_json: bool) -> None:
    """Give WORKER (its id, number or identity) nothing new until it is admitted or restarted.

    It stays connected and finishes what it has leased; its answers count. It stays dismissed when it connects again, as far as it can be
    recognised (docs/howto/worker.md). Only a pingpong worker hears of it, by EXIT, if `pingpong.send_exit` allows, and `dragoman worker`
    over eMQP, which logs it.
    """
    answer = ask(data, "dismiss", worker=worker)
    leased = f"; it may finish {answer['leased']}" if answer["leased"] else ""
    print_result(answer, as_json, f"worker {worker} is dismissed{leased}")


@workers.command()
@argument("worker", required=False)
@option("--all", "is_all", is_flag=True, help="All dismissed workers.")
@common_options
def admit(worker: str | None, is_all: bool, data: Path, as_json: bool) -> None:
    """Let dismissed WORKER (its id, number or identity) work again, also if it is not connected at the moment."""
    if (worker is None) != is_all:
        raise click.UsageError("name one worker, or say --all")
    answer = ask(data, "admit", worker=worker or "", all=is_all)
    line = f"{count_of(len(answer['workers']), 'worker')} admitted" if is_all else f"worker {worker} is admitted"
    print_result(answer, as_json, line)


@click.group(invoke_without_command=True)
@page_options
@common_options
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
            when_text(schedule["cron"], schedule["interval_s"])
            + (f" ({schedule['cron']})" if schedule["cron"] else ""),
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
@argument("id_", metavar="ID")
@common_options
def remove(id_: str, data: Path, as_json: bool) -> None:
    """Forget schedule ID (as the list shows it); messages it already made go on."""
    answer = ask(data, "unschedule", id=id_)
    print_result(answer, as_json, f"schedule {answer['unscheduled']['id']} is removed")


# The filters of quarantined messages; all given ones must match.
filter_options = all_options(
    option("--queue", default="", help="Only messages of this queue."),
    option("--reason", default="", help="Only messages set aside for this reason (workers_died, failed …)."),
    option("--dialect", default="", help="Only messages of clients of this dialect."),
    option(
        "--older-than",
        "older_than_s",
        type=click.FloatRange(0),
        default=0.0,
        metavar="SECONDS",
        help="Only messages accepted so long ago.",
    ),
)
# The messages to change; at least one of these is required.
which_options = all_options(
    argument("ids", nargs=-1, metavar="[ID]..."),
    filter_options,
    option("--all", "every", is_flag=True, help="All there are."),
)


@click.group()
def quarantine() -> None:
    """Show, retry or drop messages that were set aside."""


@quarantine.command("list")
@filter_options
@page_options
@common_options
def list_(limit: int, offset: int, data: Path, as_json: bool, **which: Any) -> None:
    """Show quarantined messages, oldest first, each with the workers that died holding it, or where its record is damaged."""
    found = ask(data, "quarantine_list", limit=limit, offset=offset, **which)
    rows = [
        (
            *(message[name] for name in ("id", "client_id", "queue", "last_reason", "attempt")),
            f"died with {', '.join(message['died_with'])}" if message["died_with"] else message.get("damage", ""),
            clock(message["accepted_ns"]),
            size(message["body_size"]),
        )
        for message in found["messages"]
    ]
    columns = ["id", "client id", "queue", "reason", ">attempts", "evidence", "accepted", ">body"]
    print_page(found, offset, "messages", columns, rows, as_json)


@quarantine.command()
@which_options
@common_options
def retry(data: Path, as_json: bool, **which: Any) -> None:
    """Put quarantined messages back into their queues; their count of dead workers begins anew."""
    answer = change_quarantined("quarantine_retry", "retrying", data, as_json, **which)
    print_result(answer, as_json, f"{count_of(answer['retried'], 'message')} back in their queues")


@quarantine.command()
@which_options
@common_options
def drop(data: Path, as_json: bool, **which: Any) -> None:
    """End quarantined messages for good; their facts stay in the journal."""
    answer = change_quarantined("quarantine_drop", "dropping", data, as_json, **which)
    print_result(answer, as_json, f"{count_of(answer['dropped'], 'message')} dropped")


def change_quarantined(op: str, label: str, data: Path, as_json: bool, *, every: bool, **which: Any) -> Any:
    if bool(which["ids"]) + any(value for name, value in which.items() if name != "ids") + every != 1:
        raise click.UsageError("say which: IDs; what they have in common (--queue NAME …); or --all (one of these)")
    with progress_bar(label, as_json) as progress:
        return ask(data, op, progress, all=every, **which)
