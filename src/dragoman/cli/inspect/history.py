"""`dragoman trace`, `find` and `explain`: the history of a message, messages by their properties, and why something does not progress."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click import IntRange, argument, option

from dragoman.cli.options import common_options, lake_option
from dragoman.cli.show import clock, print_json, print_lines, print_result, print_table, progress_bar
from dragoman.errors import AdminRefused, AdminUnreachable, TraceNotFound
from dragoman.model.phrases import count_of, duration, number_text, read_number, size

if TYPE_CHECKING:
    from dragoman.runtime.search.finding import Answer, Question
    from dragoman.runtime.search.naming import Naming
    from dragoman.runtime.search.trace import MessageHistory

JOURNAL = "journal"
LAKE = "lake"


@click.command()
@argument("id_", metavar="ID")
@lake_option
@common_options
def trace(id_: str, lake: str | None, data: Path, as_json: bool) -> None:
    """Print the whole life of message ID: its client's id, its number in either form, or the id that a worker was given.

    Reads the journal's files: works beside a running broker and without one. What the journal no longer keeps is read from the
    lake. An id that was used several times has several lives.
    """
    notes: list[str] = []
    lives = read_lives(data, id_, as_json, lake, notes)
    if as_json:
        print_json({"id": id_, "lives": [life_view(life) for life in lives], "notes": notes})
        return
    for life in lives:
        print_life(life)
    print_lines(notes)


def read_lives(
    data: Path, key: str, is_quiet: bool, lake: str | None = None, notes: list[str] | None = None
) -> list[MessageHistory]:
    """All messages with this id. What could not be read is added to `notes`, or to the error if nothing was found."""
    from dragoman.runtime.search.trace import find_lives

    directory = data / JOURNAL
    if not directory.is_dir():
        raise TraceNotFound(f"{directory} is not there: no journal to read")
    notes = notes if notes is not None else []
    with progress_bar("reading facts", is_quiet) as progress:
        lives = find_lives(str(directory), key, progress, lake or partial(lake_root, data), notes)
    if not lives:
        raise TraceNotFound("; ".join([f"no fact in {directory} tells of message {key!r}", *notes]))
    name_queues(data, lives)
    return lives


def lake_root(data: Path) -> str:
    """The running broker's lake; if no broker with a lake runs, the one that `up` would use here. Empty: there is none."""
    from dragoman.cli.admin_client import ask
    from dragoman.runtime.config import load

    try:
        lake = ask(data, "status")["lake"]
    except AdminUnreachable:
        lake = None
    root = str(lake["root"]) if lake else load(None, os.environ).lake.root or str(data / LAKE)
    return root if "://" in root or Path(root).is_dir() else ""


def name_queues(data: Path, lives: list[MessageHistory]) -> None:
    """Fill in missing queue names. A queue named before the oldest stored fact has only a number in the facts; a running broker or the
    journal's newest checkpoint knows its name."""
    nameless = [life for life in lives if life.queue_no and not life.queue]
    if not nameless:
        return
    from dragoman.cli.admin_client import queue_names
    from dragoman.journal.segment_views import segment_views
    from dragoman.runtime.search.naming import checkpoint_queue_names

    names = queue_names(data) or checkpoint_queue_names(segment_views(str(data / JOURNAL)))
    for life in nameless:
        life.queue = names.get(life.queue_no, f"queue {life.queue_no}")


def life_view(life: MessageHistory) -> dict[str, Any]:
    names = ("client_id", "worker_id", "queue")
    view = {"number": life.number, "id": number_text(life.number), **{name: getattr(life, name) for name in names}}
    return view | {"is_complete": life.is_begun, "is_settled": life.end is not None, "facts": life.facts}


def print_life(life: MessageHistory) -> None:
    title = f"message {number_text(life.number)}"
    title += f" ({life.client_id})" if life.client_id else ""
    title += f" in {life.queue}" if life.queue else ""
    rows = []
    before_ns = life.facts[0]["time_ns"]
    for fact in life.facts:
        at_ns, worker_no = fact["time_ns"], fact.get("worker_no", 0)
        rows.append(
            (
                clock(at_ns) + f".{at_ns // 1_000_000 % 1000:03d}",
                f"+{duration(at_ns - before_ns)}" if at_ns != before_ns else "",
                fact["fact"],
                fact.get("attempt", ""),
                f"w{number_text(worker_no)} {fact.get('worker', '')}".strip() if worker_no else "",
                note(fact),
            )
        )
        before_ns = at_ns
    print_table(title, ["time", ">after", "fact", ">attempt", "worker", ""], rows)
    from_lake = [fact["lsn"] for fact in life.facts if fact["source"] == LAKE]
    if from_lake:
        lsns = f"{from_lake[0]} to {from_lake[-1]}" if len(from_lake) > 1 else str(from_lake[0])
        count = count_of(len(from_lake), "fact")
        print_lines([f"the journal no longer keeps {count} of these ({lsns}): read from the lake"])
    if not life.is_begun:
        print_lines(["its beginning is older than what is stored"])
    if life.end is None:
        print_lines([f"not settled; `dragoman explain {life.client_id or number_text(life.number)}` says why"])


def note(fact: dict[str, Any]) -> str:
    """The other fields of a fact, in a few words."""
    name = fact["fact"]
    if name in ("accepted", "carried"):
        parts = [f"{fact['dialect']}, {size(fact['body_size'])}", *fact["flags"]]
        parts += [f"priority {fact['priority']}"] if fact["priority"] else []
        parts += [f"not before {clock(fact['due_ns'])}"] if fact["due_ns"] else []
        parts += [f"expires {clock(fact['expires_ns'])}"] if fact["expires_ns"] else []
        parts += [f"made by schedule s{number_text(fact['schedule_no'])}"] if fact["schedule_no"] else []
        return ", ".join(parts)
    if name == "released":
        due = f", again at {clock(fact['due_ns'])}" if fact["due_ns"] > fact["time_ns"] else ""
        left = f", {fact['retries_left']} retries left" if fact["retries_left"] >= 0 else ""
        return f"{fact['reason']}{due}{left}"
    if name == "closed":
        waited = fact["first_leased_ns"] - fact["accepted_ns"] if fact["first_leased_ns"] else 0
        worked = fact["time_ns"] - fact["leased_ns"] if fact["leased_ns"] else 0
        times = f"; waited {duration(waited)}, last attempt {duration(worked)}" if worked or waited else ""
        return f"{fact['outcome']}: {fact['reason']}{times}, answer {size(fact['reply_size'])}"
    if name == "quarantined":
        return f"{fact['reason']}: {fact['damage']}" if "damage" in fact else str(fact["reason"])
    if name == "started":
        return f"the broker started again (boot {fact['boot_no']}): the lease ended"
    if name == "fired":
        return f"schedule s{number_text(fact['schedule_no'])}, due {clock(fact['due_ns'])}"
    return "an answer came after the end: dropped" if name == "late" else ""


@click.command()
@argument("what", metavar="ID|QUEUE|WORKER")
@lake_option
@common_options
def explain(what: str, lake: str | None, data: Path, as_json: bool) -> None:
    """Say why a message, a queue or a worker is not moving.

    A word that is the id of a message and the name of a queue means the message; `queue:NAME` and `worker:ID` are explicit. How a settled
    message ended is read from the journal or the lake; how a worker left (by its number, as w1.17), from the journal.
    """
    from dragoman.cli.admin_client import ask

    try:
        found = ask(data, "explain", of=what)
    except (AdminRefused, AdminUnreachable) as error:
        if what.startswith("queue:") or (isinstance(error, AdminRefused) and error.refusal != "NOT_FOUND"):
            raise
        found = explain_departed_worker(data, what)
        if found is None:
            if what.startswith("worker:"):
                raise
            found = explain_from_journal(data, what, error, as_json, lake)
    print_result(found, as_json, *found["lines"])


def explain_departed_worker(data: Path, what: str) -> dict[str, Any] | None:
    """Explain a worker that has disconnected, or whose broker does not run; None if this is no worker's number or nothing is known of it."""
    from dragoman.runtime.search.trace import departed_worker_lines

    key = what.removeprefix("worker:")
    is_worker_id = key != what or (key.startswith("w") and read_number(key.removeprefix("w")) > 0)
    if not is_worker_id or not (data / JOURNAL).is_dir():
        return None
    lines = departed_worker_lines(str(data / JOURNAL), key, time.time_ns())
    return {"of": what, "kind": "worker", "lines": lines} if lines else None


def explain_from_journal(
    data: Path, key: str, error: AdminRefused | AdminUnreachable, is_quiet: bool, lake: str | None
) -> dict[str, Any]:
    """Explain a settled message, or one of a broker that does not run."""
    from dragoman.runtime.search.trace import end_line

    try:
        lives = read_lives(data, key, is_quiet, lake)
    except TraceNotFound as not_found:
        if isinstance(error, AdminUnreachable):
            raise error from not_found
        raise TraceNotFound(f"message {key!r} is not open, and no stored fact tells of it: unknown") from not_found
    settled = [life for life in lives if life.end is not None]
    if not settled:
        if isinstance(error, AdminUnreachable):
            line = "waits: the broker does not run; it goes on where it was at the next start"
            return {"of": key, "kind": "message", "lines": [line]}
        raise error
    return {"of": key, "kind": "message", "lines": [end_line(life) for life in settled]}


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
