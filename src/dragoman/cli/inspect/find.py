"""`dragoman find`: search for messages by properties other than their ids."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import IntRange, option

from dragoman.cli.options import common_options
from dragoman.cli.show import clock, print_json, print_lines, print_table, progress_bar
from dragoman.errors import AdminUnreachable, TraceNotFound
from dragoman.model.phrases import count_of, duration

if TYPE_CHECKING:
    from dragoman.runtime.search.finding import Answer, Question
    from dragoman.runtime.search.naming import Naming

JOURNAL = "journal"


@click.command()
@option("--queue", default="", metavar="NAME", help="Of this queue.")
@option(
    "--peer",
    default="",
    metavar="PEER",
    help="From a client of this identity, or leased to this worker: its identity, its address or its number (w1.17).",
)
@option("--state", default="", metavar="STATE", help="open, ended, or one end: done, rejected, expired or cancelled.")
@option("--dialect", default="", metavar="DIALECT", help="From a client that speaks this dialect.")
@option("--from", "from_", metavar="INSTANT", help="2026-03-02T14:03, 14:03 or -15m. Default: the oldest stored fact.")
@option("--to", metavar="INSTANT", help="As --from. Default: now.")
@option("--before", type=IntRange(1), metavar="LSN", help="Continue from this lsn, which the page before printed.")
@option("--limit", type=IntRange(1, 1000), default=50, show_default=True, help="Show so many.")
@common_options
def find(from_: str | None, to: str | None, before: int | None, data: Path, as_json: bool, **filters: Any) -> None:
    """List messages of the journal, open and ended, the newest first.

    All filters must match. The time is that of the message's acceptance or, where --state is an end, of that; with a worker as
    peer, that of its work. Reads the journal's files: works beside a running broker and without one.

    Example: dragoman find --queue mail --state rejected --from -2h
    """
    from dragoman.cli.admin_client import shown
    from dragoman.runtime.search.finding import FOREVER, Question
    from dragoman.runtime.search.instants import read_instant

    now_ns = time.time_ns()
    filters["queue"] = shown(filters["queue"])
    from_ns, to_ns = (read_instant(from_, now_ns) if from_ else 0), (read_instant(to, now_ns) if to else FOREVER)
    question = Question(**filters, from_ns=from_ns, to_ns=to_ns, before_lsn=before or FOREVER)
    answer = read_answer(data, question, as_json)
    if as_json:
        names = ("searched_from_ns", "next_lsn", "notes")
        rows = [row.view() for row in answer.rows]
        print_json({"messages": rows, **{name: getattr(answer, name) for name in names}})
    else:
        print_answer(answer)


def read_answer(data: Path, question: Question, is_quiet: bool) -> Answer:
    """Search as far back as needed: a command continues the search where the web page would stop."""
    from dragoman.runtime.search.finding import find_messages

    directory, limit = data / JOURNAL, question.limit
    question.check()
    if not directory.is_dir():
        raise TraceNotFound(f"{directory} is not there: no journal to read")
    naming = running_names(data)
    rows: list[Any] = []
    with progress_bar("reading facts", is_quiet) as progress:
        while True:
            answer = find_messages(str(directory), question, naming, progress)
            rows += answer.rows
            if not answer.next_lsn or len(rows) >= limit:
                break
            question = replace(question, before_lsn=answer.next_lsn, limit=limit - len(rows))
    answer.rows = rows
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


def print_answer(answer: Answer) -> None:
    rows = []
    for view in (row.view() for row in answer.rows):
        took = view["ended_ns"] - view["accepted_ns"] if view["ended_ns"] and view["accepted_ns"] else 0
        rows.append(
            (
                clock(view["accepted_ns"]),
                *(view[name] for name in ("id", "client_id", "queue")),
                f"{view['dialect']} {view['client']}".strip(),
                f"{view['worker']} {view['worker_name']}".strip(),
                f"{view['state']}: {view['reason']}" if view["reason"] else view["state"],
                duration(took) if view["ended_ns"] else "",
            )
        )
    if rows:
        print_table("", ["accepted", "message", "id", "queue", "client", "worker", "state", ">took"], rows)
    from_ns = answer.searched_from_ns
    searched = f"looked back to {clock(from_ns)}" if from_ns else "nothing to look through"
    found = count_of(len(rows), "message") if rows or answer.next_lsn else "no message matches"
    more = f", --before {answer.next_lsn} goes on" if answer.next_lsn else ""
    print_lines([f"{found}; {searched}{more}", *answer.notes])
