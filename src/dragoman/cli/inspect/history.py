"""`dragoman trace` and `dragoman explain`: the history of a message, and why something does not progress."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dragoman.cli.options import data_option, json_option, lake_option
from dragoman.cli.show import clock, print_json, print_lines, print_table, progress_bar
from dragoman.errors import AdminRefused, AdminUnreachable, TraceNotFound
from dragoman.model.phrases import count_of, duration, number_text, read_number, size

if TYPE_CHECKING:
    from dragoman.runtime.search.trace import Life

JOURNAL = "journal"
LAKE = "lake"


@click.command()
@click.argument("id_", metavar="ID")
@lake_option
@data_option
@json_option
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
) -> list[Life]:
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
        told = ask(data, "status")["lake"]
    except AdminUnreachable:
        told = None
    root = str(told["root"]) if told else load(None, os.environ).lake.root or str(data / LAKE)
    return root if "://" in root or Path(root).is_dir() else ""


def name_queues(data: Path, lives: list[Life]) -> None:
    """Fill in missing queue names. A queue named before the oldest kept fact has only a number in the facts; a running broker or the
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


def life_view(life: Life) -> dict[str, Any]:
    return {
        "number": life.number,
        "id": number_text(life.number),
        "client_id": life.client_id,
        "worker_id": life.worker_id,
        "queue": life.queue,
        "is_complete": life.is_begun,
        "is_settled": life.end is not None,
        "facts": life.facts,
    }


def print_life(life: Life) -> None:
    title = f"message {number_text(life.number)}"
    if life.client_id:
        title += f" ({life.client_id})"
    if life.queue:
        title += f" in {life.queue}"
    rows = []
    before_ns = life.facts[0]["time_ns"]
    for fact in life.facts:
        step_ns = fact["time_ns"] - before_ns
        before_ns = fact["time_ns"]
        rows.append(
            (
                clock(fact["time_ns"]) + f".{fact['time_ns'] // 1_000_000 % 1000:03d}",
                f"+{duration(step_ns)}" if step_ns else "",
                fact["fact"],
                fact.get("attempt", ""),
                worker_text(fact),
                note(fact),
            )
        )
    print_table(title, ["time", ">after", "fact", ">attempt", "worker", ""], rows)
    from_lake = [fact["lsn"] for fact in life.facts if fact["source"] == LAKE]
    if from_lake:
        lsns = f"{from_lake[0]} to {from_lake[-1]}" if len(from_lake) > 1 else str(from_lake[0])
        print_lines(
            [f"the journal no longer keeps {count_of(len(from_lake), 'fact')} of these ({lsns}): read from the lake"]
        )
    if not life.is_begun:
        print_lines(["its beginning is older than what is kept"])
    if life.end is None:
        print_lines([f"not settled; `dragoman explain {life.client_id or number_text(life.number)}` says why"])


def worker_text(fact: dict[str, Any]) -> str:
    number = fact.get("worker_no", 0)
    if not number:
        return ""
    return f"w{number_text(number)} {fact.get('worker', '')}".strip()


def note(fact: dict[str, Any]) -> str:
    """The other fields of a fact, in a few words."""
    name = fact["fact"]
    if name in ("accepted", "carried"):
        parts = [f"{fact['dialect']}, {size(fact['body_size'])}", *fact["flags"]]
        if fact["priority"]:
            parts.append(f"priority {fact['priority']}")
        if fact["due_ns"]:
            parts.append(f"not before {clock(fact['due_ns'])}")
        if fact["expires_ns"]:
            parts.append(f"expires {clock(fact['expires_ns'])}")
        if fact["schedule_no"]:
            parts.append(f"made by schedule s{number_text(fact['schedule_no'])}")
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
    if name == "late":
        return "an answer came after the end: dropped"
    return ""


@click.command()
@click.argument("what", metavar="ID|QUEUE|WORKER")
@lake_option
@data_option
@json_option
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
        found = explain_absentee(data, what)
        if found is None:
            if what.startswith("worker:"):
                raise
            found = explain_from_journal(data, what, error, as_json, lake)
    if as_json:
        print_json(found)
    else:
        print_lines(found["lines"])


def explain_absentee(data: Path, what: str) -> dict[str, Any] | None:
    """Explain a worker that has disconnected, or whose broker does not run; None if this is no worker's number or nothing is known of it."""
    from dragoman.runtime.search.departed_workers import absentee_lines

    key = what.removeprefix("worker:")
    if (key == what and not is_worker_id(key)) or not (data / JOURNAL).is_dir():
        return None
    lines = absentee_lines(str(data / JOURNAL), key, time.time_ns())
    return {"of": what, "kind": "worker", "lines": lines} if lines else None


def is_worker_id(text: str) -> bool:
    return text.startswith("w") and read_number(text.removeprefix("w")) > 0


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
        raise TraceNotFound(f"message {key!r} is not open, and no kept fact tells of it: unknown") from not_found
    settled = [life for life in lives if life.end is not None]
    if not settled:
        if isinstance(error, AdminUnreachable):
            line = "waits: the broker does not run; it goes on where it was at the next start"
            return {"of": key, "kind": "message", "lines": [line]}
        raise error
    return {"of": key, "kind": "message", "lines": [end_line(life) for life in settled]}
