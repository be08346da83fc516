"""`dragoman workers`: list workers, and dismiss or admit one."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from dragoman.cli.admin_client import ask
from dragoman.cli.options import data_option, json_option, page_options
from dragoman.cli.show import ago, clock, more_line, print_json, print_lines, print_table
from dragoman.model.phrases import count_of


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
    if as_json:
        print_json(found)
        return
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
    print_table("", columns, rows)
    print_lines(more_line(len(rows), offset, found["total"], "workers"))
    for one in found["kept_out"]:
        print_lines([kept_out_line(one, now_ns)])


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
