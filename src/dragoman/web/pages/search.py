"""Message search by id, or by queue, peer, state, dialect and time: open messages from the broker, ended ones from the journal. Queues and
workers are found by name."""

from __future__ import annotations

from typing import Any, Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminRefused, BadInstant
from dragoman.model.units import SECOND_NS
from dragoman.runtime.search.finding import ENDS, FOREVER, Question
from dragoman.runtime.search.instants import read_instant
from dragoman.runtime.search.naming import Naming
from dragoman.web.desk import PAGE_SIZE, Context, Desk, Query, offset_of, turning
from dragoman.web.display.lives import ended_in, lives_of
from dragoman.web.pages.quarantine import AGE_S_MAX, seconds_of

FILTER_KEYS: Final = ("queue", "peer", "state", "dialect", "since", "from", "to", "older_than_s")
STATES: Final = ("waiting", "delayed", "leased", "quarantined")
ENDED: Final = "ended"
SINCE: Final = {"-5m": "last 5 minutes", "-1h": "last hour", "-1d": "last day"}
NAMES_SHOWN: Final = 20
NAMES_ASKED: Final = 1000


async def make(desk: Desk, query: Query, key: str) -> Context:
    await desk.sampler.fresh()
    text = query.get("q", "").strip()
    asked = filter_of(query)
    context: Context = {
        "text": text,
        "asked": asked,
        "states": STATES,
        "ends": (ENDED, *ENDS),
        "sinces": SINCE,
        "dialects": list(DIALECTS_BY_NAME),
        "now_ns": desk.now_ns,
        "is_asked": bool(text) or any(asked.values()),
        "queues": [],
        "workers": [],
        "messages": None,
    }
    if text:
        context |= await by_text(desk, text)
    if any(asked.values()) and asked["state"] not in (ENDED, *ENDS) and not before_of(query):
        context |= await by_filter(desk, query, asked)
    return context


async def once(desk: Desk, query: Query) -> Context:
    """Results from the journal and the lake, read once per page load because either may be long."""
    text = query.get("q", "").strip()
    asked = filter_of(query)
    lives = await lives_of(desk.journal, text, await desk.lake(), []) if text else []
    is_about_ends = any(asked.values()) and asked["state"] in ("", ENDED, *ENDS)
    return {"lives": lives, "found": await ended(desk, query, asked) if is_about_ends else None}


def filter_of(query: Query) -> dict[str, str]:
    asked = {name: query.get(name, "").strip() for name in FILTER_KEYS}
    return asked | {"older_than_s": query.get("older_than_s", "")}  # an age of blanks is refused, not left out


def before_of(query: Query) -> int:
    """The LSN from which to continue a search backwards; 0: from the newest fact."""
    text = query.get("before", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0


async def by_text(desk: Desk, text: str) -> Context:
    queues = await desk.link.ask("queues", prefix=text, limit=NAMES_SHOWN)
    workers: list[dict[str, Any]] = []
    try:
        workers = [await desk.link.ask("worker", worker=text)]
    except AdminRefused:
        pass  # no worker has this name
    return {"queues": queues["queues"], "workers": workers}


async def by_filter(desk: Desk, query: Query, asked: dict[str, str]) -> Context:
    offset = offset_of(query)
    arguments: dict[str, Any] = {name: asked[name] for name in ("queue", "state", "dialect") if asked[name]}
    from_ns, to_ns = span_of(asked, desk.now_ns)
    if from_ns >= desk.now_ns:
        return {"messages": [], "is_cut": False, "turning": turning(0, 0)}
    if to_ns < desk.now_ns:
        arguments["older_than_s"] = min((desk.now_ns - to_ns) / SECOND_NS, AGE_S_MAX)
    if desk.now_ns - from_ns <= AGE_S_MAX * SECOND_NS:
        arguments["newer_than_s"] = (desk.now_ns - from_ns) / SECOND_NS
    found = await open_of(desk, asked["peer"], offset=offset, limit=PAGE_SIZE, **arguments)
    return {
        "messages": found["messages"],
        "is_cut": found["is_cut"],
        "turning": turning(offset, found["total"]),
    }


async def open_of(desk: Desk, peer: str, **arguments: Any) -> Any:
    """Open messages of a peer: a client or, if no client with that identity has an open message, a worker."""
    if not peer:
        return await desk.link.ask("messages", **arguments)
    found = await desk.link.ask("messages", client=peer, **arguments)
    if found["total"]:
        return found
    try:
        return await desk.link.ask("messages", worker=peer, **arguments)
    except AdminRefused as refused:
        if refused.refusal != "NOT_FOUND":
            raise
        return found  # no such worker is connected


async def ended(desk: Desk, query: Query, asked: dict[str, str]) -> Context:
    queues = await desk.link.ask("queues", prefix=asked["queue"], limit=NAMES_ASKED)
    workers = await desk.link.ask("workers", limit=NAMES_ASKED)
    naming = Naming(
        {queue["queue_no"]: queue["queue"] for queue in queues["queues"]},
        {worker["number"]: [worker["name"], worker["remote"]] for worker in workers["workers"]},
    )
    from_ns, to_ns = span_of(asked, desk.now_ns)
    question = Question(
        queue=asked["queue"],
        peer=asked["peer"],
        state=asked["state"] or ENDED,
        dialect=asked["dialect"],
        from_ns=from_ns,
        to_ns=to_ns,
        before_lsn=before_of(query) or FOREVER,
        limit=PAGE_SIZE,
    )
    return await ended_in(desk.journal, question, naming)


def span_of(asked: dict[str, str], now_ns: int) -> tuple[int, int]:
    """The time range of a search. Raises `AdminRefused` for an invalid field: ignoring it would find more than requested."""
    if asked["since"] and asked["since"] not in SINCE:
        raise AdminRefused("BAD_ARGUMENT", f"there is no span {asked['since']!r}; there are: {', '.join(SINCE)}")
    older_s = seconds_of(asked["older_than_s"])
    try:
        from_ns = read_instant(asked["from"] or asked["since"], now_ns) if asked["from"] or asked["since"] else 0
        to_ns = read_instant(asked["to"], now_ns) if asked["to"] else FOREVER
    except BadInstant as error:
        raise AdminRefused("BAD_ARGUMENT", str(error)) from error
    if older_s:
        to_ns = min(to_ns, now_ns - int(older_s * SECOND_NS))
    if to_ns <= from_ns:
        raise AdminRefused("BAD_ARGUMENT", "the span of time ends before it begins")
    return from_ns, to_ns
