"""One message: its history from the facts, also as bars on one time axis; why it does not progress; and the protocol frames of each hop.

The frames are reconstructed from the facts, which store everything but the bodies of replies, in the dialect of that hop. docs/reference has a
page for each dialect; the frames in its description are those of its tables.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from dragoman.dialects.description import Fact, Frame
from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminRefused
from dragoman.model.phrases import duration, number_text, size
from dragoman.runtime.search.lives import BEGINNINGS, MessageHistory
from dragoman.runtime.search.trace import end_line
from dragoman.web.dashboard import NOT_FOUND, Context, Dashboard, Query
from dragoman.web.formatting import body_lines, plain
from dragoman.web.journal_search import body_of, lives_of

PREVIEW_SIZE: Final = 16 * 1024
# Reasons of a close that follows a reply.
REPLIES: Final = ("answered", "answered_late", "failed", "refused_by_worker")
SENTENCES: Final = {
    "leased": "given to a worker, attempt {attempt}",
    "delivered": "the worker confirmed that it has it",
    "requeued": "an operator requeued it",
    "started": "the broker started again (boot {boot_no}): the lease ended",
    "late": "an answer came after the end and was dropped",
}

ROWS_MAX: Final = 12  # attempts drawn; the list below shows the first and last attempts of a message that has more
ENDS_SHOWN: Final = 50  # attempts listed at either end of a history: ten thousand would overload the browser
WAIT: Final = "waits"
WORK: Final = "works"
DELAY: Final = "delayed"
ASIDE: Final = "aside"
WAIT_BEGINS: Final = ("accepted", "carried", "requeued", "released", "started")

View = dict[str, Any]  # an open message, from the broker
Item = TypeVar("Item")


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    number = query.get("life", "")
    # The broker first: a message that settles between the two queries then still shows as open here, and the next beat shows its end.
    view = await open_view(dashboard, number or key)
    notes: list[str] = []
    lives = await lives_of(dashboard.journal, key, await dashboard.lake(), notes)
    life = life_of(lives, view, number)
    if life is None and view is None:
        raise AdminRefused(NOT_FOUND, f"no open message and no stored fact has the id {key!r}")
    life = life or MessageHistory(0)  # without facts
    if life.number and not life.queue:
        life.queue = next((q["queue"] for q in dashboard.sampler.queues if q["queue_no"] == life.queue_no), "")
    shown = view or {"id": number_text(life.number), "client_id": life.client_id, "queue": life.queue}
    with_body = query.get("body") == "1"
    facts, left_out = ends(life.facts, lambda fact: bool(fact["fact"] == "leased"))
    return {
        "title": key,
        "id": shown["id"],
        "client_id": shown["client_id"],
        "queue": shown["queue"],
        "view": view,
        "state": state_of(view, life),
        "is_settled": view is None,
        "is_begun": not life.number or life.is_begun,
        "notes": notes,
        "lines": await explained(dashboard, view, life),
        "hops": hops_of(life, facts, await worker_dialect(dashboard, view)),
        "left_out": left_out,
        "timeline": timeline(life.facts, dashboard.now_ns),
        "others": [number_text(one.number) for one in lives if one.number != life.number],
        "key": key,
        "with_body": with_body,
        "body": await preview(dashboard, view, life) if with_body else None,
        "test_command": export_command(dashboard.data, str(shown["id"])),
        "is_still": view is None and life.end is not None,
    }


def export_command(data: Path, message_id: str) -> str:
    """The shell command that exports this message as a test. The path is absolute because the reader's directory is unknown; it is omitted
    if the broker uses the default directory."""
    where = "" if data == Path("data") else f"--data {shlex.quote(str(data.absolute()))} "
    return f"dragoman export-test {where}--id {shlex.quote(message_id)} --out test_incident.py"


def life_of(lives: list[MessageHistory], view: View | None, number: str) -> MessageHistory | None:
    """Choose among several messages with one id: the open one; else the requested one, or the newest. None if no facts are stored."""
    wanted = str(view["id"]) if view is not None else number
    found = next((one for one in lives if number_text(one.number) == wanted), None)
    return lives[0] if found is None and view is None and lives else found


async def open_view(dashboard: Dashboard, key: str) -> View | None:
    try:
        found: View = await dashboard.link.ask("message", id=key)
    except AdminRefused as refused:
        if refused.refusal != NOT_FOUND:
            raise
        return None
    return found


def state_of(view: View | None, life: MessageHistory) -> str:
    if view is not None:
        return "delayed" if view["is_delayed"] else str(view["state"])
    return str(life.end["outcome"]) if life.end is not None else "unknown"


async def explained(dashboard: Dashboard, view: View | None, life: MessageHistory) -> list[str]:
    if view is None:
        return [end_line(life)] if life.end is not None else []
    with suppress(AdminRefused):  # settled between two queries
        found: list[str] = (await dashboard.link.ask("explain", of=view["id"]))["lines"]
        return found
    return []


async def worker_dialect(dashboard: Dashboard, view: View | None) -> str:
    """Dialect of the worker that leases the message now: the facts name it only after the lease has ended."""
    with suppress(AdminRefused):
        if view is not None and view["worker"]:
            return str((await dashboard.link.ask("worker", worker=view["worker"]))["dialect"])
    return ""


def hops_of(life: MessageHistory, facts: list[Fact], lease_dialect: str) -> list[Context]:
    """Each of these facts as one hop: time, time since the previous one, a sentence, and the frames."""
    begin = next((fact for fact in facts if fact["fact"] in BEGINNINGS), None)
    return [
        {
            "fact": fact["fact"],
            "at_ns": fact["time_ns"],
            "after_ns": fact["time_ns"] - facts[max(at - 1, 0)]["time_ns"],
            "text": sentence(fact),
            "worker": f"w{number_text(fact['worker_no'])}" if fact.get("worker_no") else "",
            "worker_name": fact.get("worker", ""),
            "frames": frames(fact, life, facts[at + 1 :], begin, lease_dialect),
            "lsn": fact["lsn"],
        }
        for at, fact in enumerate(facts)
    ]


def frames(fact: Fact, life: MessageHistory, later: list[Fact], begin: Fact | None, lease_dialect: str) -> list[Frame]:
    """The frames of one hop in its dialect; empty where there are none, as for a message that the broker itself created."""
    name = fact["fact"]
    if name in BEGINNINGS and (client := DIALECTS_BY_NAME.get(fact["dialect"])):
        return client.client_frames(fact, life.queue, fact["client_id"])
    if name == "leased" and begin is not None:
        worker = DIALECTS_BY_NAME.get(ended_lease_dialect(later, fact["attempt"]) or lease_dialect)
        return worker.worker_frames(begin, life.queue, worker.worker_id(begin, life.worker_id)) if worker else []
    if name == "closed" and fact["reason"] in REPLIES and (worker := DIALECTS_BY_NAME.get(fact["worker_dialect"])):
        return [("command", worker.answer_word), ("answer", f"({fact['reply_size']} bytes, not stored)")]
    return []


def ended_lease_dialect(later: list[Fact], attempt: int) -> str:
    """Dialect of a lease's worker, read from the fact that ends the lease; empty while the lease is open."""
    for fact in later:
        if fact["fact"] in ("released", "closed", "quarantined") and fact.get("attempt") == attempt:
            return str(fact.get("worker_dialect", ""))
    return ""


def sentence(fact: Fact) -> str:
    name = fact["fact"]
    if name in BEGINNINGS:
        origin = "made by a schedule" if fact["schedule_no"] else f"from a client that speaks {fact['dialect']}"
        parts = [origin, size(fact["body_size"]), *(plain(flag) for flag in fact["flags"])]
        if fact["priority"]:
            parts.append(f"priority {fact['priority']}")
        if fact["retries_left"] >= 0:
            parts.append(f"{fact['retries_left']} retries")
        if fact["timeout_ns"]:
            parts.append(f"at most {duration(fact['timeout_ns'])} per attempt")
        return ", ".join(parts)
    if name == "released":
        due = f", again after {duration(fact['due_ns'] - fact['time_ns'])}" if fact["due_ns"] > fact["time_ns"] else ""
        left = f", {fact['retries_left']} retries left" if fact["retries_left"] >= 0 else ""
        return f"back to its queue: {plain(fact['reason'])}{due}{left}"
    if name == "closed":
        answer = f", answer of {size(fact['reply_size'])}" if fact["worker_no"] else ""
        return f"{fact['outcome']}: {plain(fact['reason'])}{answer}"
    if name == "quarantined":
        return f"quarantined: {plain(fact['reason'])}" + (f" ({fact['damage']})" if "damage" in fact else "")
    if name == "fired":
        return f"made by schedule s{number_text(fact['schedule_no'])}"
    return SENTENCES.get(name, "").format_map(fact)


async def preview(dashboard: Dashboard, view: View | None, life: MessageHistory) -> list[str]:
    """The beginning of the body, only on request because bodies may be private."""
    body: bytes | None = None
    if view is not None:
        with suppress(AdminRefused):  # settled between two queries: the journal may have it
            found = await dashboard.link.ask("body", id=view["id"], size_max=PREVIEW_SIZE)
            body = base64.b64decode(found["body"])
    if body is None:
        body = await body_of(dashboard.journal, life, PREVIEW_SIZE)
    return body_lines(body) if body is not None else ["(the journal no longer has it)"]


class Bar(msgspec.Struct, frozen=True):
    """One bar; begin and end are fractions of the whole span, 0 to 1."""

    row: int
    kind: str
    begin: float
    end: float
    text: str


class Timeline(msgspec.Struct, frozen=True):
    bars: list[Bar]
    rows: list[str]
    span_ns: int


class Span(msgspec.Struct):
    kind: str
    attempt: int
    begin_ns: int
    worker: str = ""
    end_ns: int = 0  # 0: it has not ended


def timeline(facts: list[Fact], now_ns: int) -> Timeline | None:
    """Build the timeline, or None if there is nothing to draw. The last bar of an open message ends now."""
    spans = spans_of(facts, now_ns)
    if not spans:
        return None
    first_ns = spans[0].begin_ns
    whole_ns = max(max(span.end_ns for span in spans) - first_ns, 1)
    spans, _ = ends(spans, lambda span: span.kind == WORK)
    attempts = sorted({span.attempt for span in spans if span.kind == WORK})[:ROWS_MAX]
    rows = ["in the queue", *(f"attempt {attempt}" for attempt in attempts)]
    bars = [
        Bar(
            attempts.index(span.attempt) + 1 if span.kind == WORK else 0,
            span.kind,
            (span.begin_ns - first_ns) / whole_ns,
            (span.end_ns - first_ns) / whole_ns,
            f"{span.kind} {duration(span.end_ns - span.begin_ns)}{f' at {span.worker}' if span.worker else ''}",
        )
        for span in spans
        if span.kind != WORK or span.attempt in attempts
    ]
    return Timeline(bars, rows, whole_ns)


def ends(items: list[Item], is_attempt: Callable[[Item], bool]) -> tuple[list[Item], int]:
    """The items of the first and the last attempts, and the number of attempts left out between them."""
    begins = [at for at, item in enumerate(items) if is_attempt(item)]
    left_out = len(begins) - 2 * ENDS_SHOWN
    if left_out <= 0:
        return items, 0
    return items[: begins[ENDS_SHOWN]] + items[begins[-ENDS_SHOWN] :], left_out


def spans_of(facts: list[Fact], now_ns: int) -> list[Span]:
    """Each fact ends the span before it. A delay therefore ends at its due instant only if something follows it there."""
    spans: list[Span] = []
    for fact in facts:
        name, at_ns = fact["fact"], fact["time_ns"]
        if name not in (*WAIT_BEGINS, "leased", "quarantined", "closed"):
            continue
        if spans and not spans[-1].end_ns:
            spans[-1].end_ns = at_ns
        if name == "leased":
            spans.append(Span(WORK, fact["attempt"], at_ns, fact.get("worker", "")))
        elif name == "quarantined":
            spans.append(Span(ASIDE, 0, at_ns))
        elif name != "closed":
            spans.append(Span(DELAY if fact.get("due_ns", 0) > at_ns else WAIT, 0, at_ns))
    for span in spans:
        span.end_ns = span.end_ns or max(now_ns, span.begin_ns)
    return spans
