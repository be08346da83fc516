"""One message: its history from the facts, why it does not progress, and the frames of each hop."""

from __future__ import annotations

import base64
import shlex
from pathlib import Path
from typing import Any, Final

from dragoman.dialects.description import Fact, Frame
from dragoman.errors import AdminRefused
from dragoman.model.phrases import duration, number_text, size
from dragoman.runtime.search.trace import Life, end_line
from dragoman.web.desk import Context, Desk, Query
from dragoman.web.display import hops
from dragoman.web.display.lives import body_of, lives_of
from dragoman.web.display.timeline import ends, timeline
from dragoman.web.display.words import body_lines, plain

PREVIEW_SIZE: Final = 16 * 1024


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    number = query.get("life", "")
    # The broker first: a message that settles between the two queries then still shows as open here, and the next beat shows its end.
    view = await open_view(desk, number or key)
    notes: list[str] = []
    lives = await lives_of(desk.journal, key, await desk.lake(), notes)
    life = life_of(lives, view, number)
    if life is None and view is None:
        raise AdminRefused("NOT_FOUND", f"no open message and no kept fact answers to {key!r}")
    if life is not None and not life.queue:
        life.queue = next((q["queue"] for q in desk.sampler.queues if q["queue_no"] == life.queue_no), "")
    message_id = number_text(life.number) if life is not None else str(view["id"] if view is not None else key)
    with_body = query.get("body") == "1"
    facts, left_out = ends(life.facts if life is not None else [], is_lease)
    return {
        "title": key,
        "id": message_id,
        "client_id": life.client_id if life is not None else view["client_id"] if view is not None else "",
        "queue": view["queue"] if view is not None else life.queue if life is not None else "",
        "view": view,
        "state": state_of(view, life),
        "is_settled": view is None,
        "is_begun": life is None or life.is_begun,
        "notes": notes,
        "lines": await explained(desk, view, life, message_id),
        "hops": told(life, facts, await worker_dialect(desk, view)) if life is not None else [],
        "left_out": left_out,
        "timeline": timeline(life.facts, desk.now_ns) if life is not None else None,
        "others": [number_text(one.number) for one in lives if life is None or one.number != life.number],
        "key": key,
        "with_body": with_body,
        "body": await preview(desk, view, life) if with_body else None,
        "test_command": export_command(desk.data, message_id),
        "now_ns": desk.now_ns,
        "is_still": view is None and life is not None and life.end is not None,
    }


def export_command(data: Path, message_id: str) -> str:
    """The shell command that exports this message as a test. The path is absolute because the reader's directory is unknown; it is omitted
    if the broker uses the default directory."""
    where = "" if data == Path("data") else f"--data {shlex.quote(str(data.absolute()))} "
    return f"dragoman export-test {where}--id {shlex.quote(message_id)} --out test_incident.py"


def life_of(lives: list[Life], view: dict[str, Any] | None, number: str) -> Life | None:
    """Choose among several messages with one id: the open one; else the requested one, or the newest. None if no facts are kept."""
    wanted = str(view["id"]) if view is not None else number
    found = next((one for one in lives if number_text(one.number) == wanted), None)
    return lives[0] if found is None and view is None and lives else found


def is_lease(fact: Fact) -> bool:
    return bool(fact["fact"] == "leased")


async def open_view(desk: Desk, key: str) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = await desk.link.ask("message", id=key)
    except AdminRefused as refused:
        if refused.refusal != "NOT_FOUND":
            raise
        return None
    return found


def state_of(view: dict[str, Any] | None, life: Life | None) -> str:
    if view is not None:
        return "delayed" if view["is_delayed"] else str(view["state"])
    end = life.end if life is not None else None
    return str(end["outcome"]) if end is not None else "unknown"


async def explained(desk: Desk, view: dict[str, Any] | None, life: Life | None, message_id: str) -> list[str]:
    if view is not None:
        try:
            found: list[str] = (await desk.link.ask("explain", of=message_id))["lines"]
        except AdminRefused:
            return []  # settled between two queries
        return found
    return [end_line(life)] if life is not None and life.end is not None else []


async def worker_dialect(desk: Desk, view: dict[str, Any] | None) -> str:
    """Dialect of the worker that leases the message now: the facts name it only after the lease has ended."""
    if view is None or not view["worker"]:
        return ""
    try:
        return str((await desk.link.ask("worker", worker=view["worker"]))["dialect"])
    except AdminRefused:
        return ""


def told(life: Life, facts: list[Fact], holder_dialect: str) -> list[Context]:
    """Each of these facts as one hop: time, time since the previous one, a sentence, and the frames."""
    begin = next((fact for fact in facts if fact["fact"] in ("accepted", "carried")), None)
    before_ns = facts[0]["time_ns"] if facts else 0
    found: list[Context] = []
    for at, fact in enumerate(facts):
        found.append(
            {
                "fact": fact["fact"],
                "at_ns": fact["time_ns"],
                "after_ns": fact["time_ns"] - before_ns,
                "words": sentence(fact),
                "worker": f"w{number_text(fact['worker_no'])}" if fact.get("worker_no") else "",
                "worker_name": fact.get("worker", ""),
                "frames": frames(fact, life, facts[at + 1 :], begin, holder_dialect),
                "lsn": fact["lsn"],
            }
        )
        before_ns = fact["time_ns"]
    return found


def frames(fact: Fact, life: Life, later: list[Fact], begin: Fact | None, holder_dialect: str) -> list[Frame]:
    name = fact["fact"]
    if name in ("accepted", "carried"):
        return hops.asked(fact, life.queue)
    if name == "leased" and begin is not None:
        return hops.told(begin, life.queue, dialect_of(later, fact["attempt"]) or holder_dialect, life.worker_id)
    if name == "closed" and fact["reason"] in ("answered", "answered_late", "failed", "refused_by_worker"):
        return hops.answered(fact["worker_dialect"], fact["reply_size"])
    return []


def dialect_of(later: list[Fact], attempt: int) -> str:
    """Dialect of a lease's worker, taken from the fact that ends the lease; empty while the lease is open."""
    for fact in later:
        if fact["fact"] in ("released", "closed", "quarantined") and fact.get("attempt") == attempt:
            return str(fact.get("worker_dialect", ""))
    return ""


def sentence(fact: Fact) -> str:
    name = fact["fact"]
    if name in ("accepted", "carried"):
        wishes = [plain(flag) for flag in fact["flags"]]
        if fact["priority"]:
            wishes.append(f"priority {fact['priority']}")
        if fact["retries_left"] >= 0:
            wishes.append(f"{fact['retries_left']} retries")
        if fact["timeout_ns"]:
            wishes.append(f"at most {duration(fact['timeout_ns'])} per attempt")
        who = "made by a schedule" if fact["schedule_no"] else f"from a client that speaks {fact['dialect']}"
        return ", ".join([f"{who}, {size(fact['body_size'])}", *wishes])
    if name == "leased":
        return f"given to a worker, attempt {fact['attempt']}"
    if name == "delivered":
        return "the worker says that it has it"
    if name == "released":
        due = f", again after {duration(fact['due_ns'] - fact['time_ns'])}" if fact["due_ns"] > fact["time_ns"] else ""
        left = f", {fact['retries_left']} retries left" if fact["retries_left"] >= 0 else ""
        return f"back to its queue: {plain(fact['reason'])}{due}{left}"
    if name == "closed":
        answer = f", answer of {size(fact['reply_size'])}" if fact["worker_no"] else ""
        return f"{fact['outcome']}: {plain(fact['reason'])}{answer}"
    if name == "quarantined":
        return f"set aside: {plain(fact['reason'])}" + (f" ({fact['damage']})" if "damage" in fact else "")
    if name == "requeued":
        return "an operator let it try again"
    if name == "started":
        return f"the broker started again (boot {fact['boot_no']}): the lease ended"
    if name == "fired":
        return f"made by schedule s{number_text(fact['schedule_no'])}"
    if name == "late":
        return "an answer came after the end and was dropped"
    return ""


async def preview(desk: Desk, view: dict[str, Any] | None, life: Life | None) -> list[str]:
    """The beginning of the body, only on request because bodies may be private."""
    body: bytes | None = None
    if view is not None:
        try:
            found = await desk.link.ask("body", id=view["id"], size_max=PREVIEW_SIZE)
            body = base64.b64decode(found["body"])
        except AdminRefused:
            pass  # settled between two queries: the journal may have it
    if body is None and life is not None:
        body = await body_of(desk.journal, life, PREVIEW_SIZE)
    return body_lines(body) if body is not None else ["(the journal no longer keeps it)"]
