"""`dragoman find`: search for messages by properties other than their ids."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.options import data_option, json_option
from dragoman.cli.show import clock, print_json, print_lines, print_table, progress_bar
from dragoman.errors import AdminUnreachable, TraceNotFound
from dragoman.model.phrases import count_of, duration

if TYPE_CHECKING:
    from dragoman.runtime.search.finding import Answer, Question
    from dragoman.runtime.search.naming import Naming

JOURNAL = "journal"


@click.command()
@click.option("--queue", default="", metavar="NAME", help="Of this queue.")
@click.option(
    "--peer",
    default="",
    metavar="PEER",
    help="From a client of this identity, or leased to this worker: its identity, its address or its number (w1.17).",
)
@click.option(
    "--state", default="", metavar="STATE", help="open, ended, or one end: done, rejected, expired or cancelled."
)
@click.option("--dialect", default="", metavar="DIALECT", help="From a client that speaks this dialect.")
@click.option(
    "--from", "from_", metavar="INSTANT", help="2026-03-02T14:03, 14:03 or -15m. Default: the oldest kept fact."
)
@click.option("--to", metavar="INSTANT", help="As --from. Default: now.")
@click.option(
    "--before", type=click.IntRange(1), metavar="LSN", help="Continue from this lsn, which the page before printed."
)
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Show so many.")
@data_option
@json_option
def find(
    queue: str,
    peer: str,
    state: str,
    dialect: str,
    from_: str | None,
    to: str | None,
    before: int | None,
    limit: int,
    data: Path,
    as_json: bool,
) -> None:
    """List messages of the journal, open and ended, the newest first.

    All filters must match. The time is that of the message's acceptance or, where an end is asked for, of that; with a worker as
    peer, that of its work. Reads the journal's files: works beside a running broker and without one.

    Example: dragoman find --queue mail --state rejected --from -2h
    """
    from dragoman.cli.admin_client import shown
    from dragoman.runtime.search.finding import FOREVER, Question
    from dragoman.runtime.search.instants import read_instant

    now_ns = time.time_ns()
    question = Question(
        queue=shown(queue),
        peer=peer,
        state=state,
        dialect=dialect,
        from_ns=read_instant(from_, now_ns) if from_ else 0,
        to_ns=read_instant(to, now_ns) if to else FOREVER,
        before_lsn=before or FOREVER,
        limit=limit,
    )
    answer = read_answer(data, question, as_json)
    if as_json:
        print_json(answer_view(answer))
    else:
        print_answer(answer)


def read_answer(data: Path, question: Question, is_quiet: bool) -> Answer:
    """Search as far back as needed: a command continues the search where the web page would stop."""
    from dragoman.runtime.search.finding import find_messages

    directory = data / JOURNAL
    question.check()
    if not directory.is_dir():
        raise TraceNotFound(f"{directory} is not there: no journal to read")
    naming = running_names(data)
    with progress_bar("reading facts", is_quiet) as progress:
        answer = find_messages(str(directory), question, naming, progress)
        while answer.next_lsn and len(answer.rows) < question.limit:
            rest = question.limit - len(answer.rows)
            more = find_messages(
                str(directory), replace(question, before_lsn=answer.next_lsn, limit=rest), naming, progress
            )
            more.rows[:0] = answer.rows
            answer = more
    return answer


def running_names(data: Path) -> Naming:
    """Names that a running broker knows and the journal may no longer have."""
    from dragoman.cli.admin_client import ask, queue_names
    from dragoman.runtime.search.naming import Naming

    try:
        workers = ask(data, "workers", limit=1000)["workers"]
    except AdminUnreachable:
        return Naming()
    return Naming(queue_names(data), {one["number"]: [one["name"], one["remote"]] for one in workers})


def answer_view(answer: Answer) -> dict[str, Any]:
    return {
        "messages": [row.view() for row in answer.rows],
        "searched_from_ns": answer.searched_from_ns,
        "next_lsn": answer.next_lsn,
        "notes": answer.notes,
    }


def print_answer(answer: Answer) -> None:
    rows = []
    for view in (row.view() for row in answer.rows):
        took = view["ended_ns"] - view["accepted_ns"] if view["ended_ns"] and view["accepted_ns"] else 0
        rows.append(
            (
                clock(view["accepted_ns"]),
                view["id"],
                view["client_id"],
                view["queue"],
                f"{view['dialect']} {view['client']}".strip(),
                f"{view['worker']} {view['worker_name']}".strip(),
                f"{view['state']}: {view['reason']}" if view["reason"] else view["state"],
                duration(took) if view["ended_ns"] else "",
            )
        )
    if rows:
        print_table("", ["accepted", "message", "id", "queue", "client", "worker", "state", ">took"], rows)
    searched = (
        f"looked back to {clock(answer.searched_from_ns)}" if answer.searched_from_ns else "nothing to look through"
    )
    if answer.next_lsn:
        print_lines([f"{count_of(len(rows), 'message')}; {searched}, --before {answer.next_lsn} goes on"])
    else:
        print_lines([f"{count_of(len(rows), 'message') if rows else 'no message matches'}; {searched}"])
    print_lines(answer.notes)
