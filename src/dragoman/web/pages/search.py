"""Message search by id, or by queue, peer, state, dialect and time: open messages from the broker, ended ones from the journal. Queues and
workers are found by name."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

from dragoman.dialects.registry import DIALECTS_BY_NAME
from dragoman.errors import AdminRefused, BadInstant
from dragoman.model.units import SECOND_NS
from dragoman.runtime.search.finding import ENDS, FOREVER, Answer, Question
from dragoman.runtime.search.instants import read_instant
from dragoman.runtime.search.naming import Naming
from dragoman.web.dashboard import NOT_FOUND, PAGE_SIZE, Context, Dashboard, Query, number_of, one_part, paging
from dragoman.web.journal_search import ended_messages, lives_of
from dragoman.web.pages.quarantine import AGE_S_MAX, age_s

FILTER_KEYS: Final = ("queue", "peer", "state", "dialect", "since", "from", "to", "older_than_s")
STATES: Final = ("waiting", "delayed", "leased", "quarantined")
ENDED: Final = "ended"
SINCE: Final = {"-5m": "last 5 minutes", "-1h": "last hour", "-1d": "last day"}
NAMES_SHOWN: Final = 20
NAMES_MAX: Final = 1000  # queues and workers whose names the search in the journal knows
LSN_DIGITS_MAX: Final = 18


async def make(dashboard: Dashboard, query: Query, key: str) -> Context:
    text, filters = query.get("q", "").strip(), filters_of(query)
    context: Context = {
        "text": text,
        "filters": filters,
        "states": STATES,
        "ends": (ENDED, *ENDS),
        "sinces": SINCE,
        "dialects": list(DIALECTS_BY_NAME),
        "is_empty": not text and not any(filters.values()),
        "queues": [],
        "workers": [],
        "messages": None,
    }
    if text:
        context |= await by_text(dashboard, text)
    if any(filters.values()) and filters["state"] not in (ENDED, *ENDS) and not before_lsn(query):
        context |= await open_messages(dashboard, query, filters)
    return context


async def once(dashboard: Dashboard, query: Query) -> Context:
    """Results from the journal and the lake, read once per page load because either may be long."""
    text, filters = query.get("q", "").strip(), filters_of(query)
    lives = await lives_of(dashboard.journal, text, await dashboard.lake(), []) if text else []
    is_about_ends = any(filters.values()) and filters["state"] in ("", ENDED, *ENDS)
    found, trouble = await ended(dashboard, query, filters) if is_about_ends else (None, "")
    return {"lives": lives, "found": found, "trouble": trouble}


def filters_of(query: Query) -> dict[str, str]:
    filters = {name: query.get(name, "").strip() for name in FILTER_KEYS}
    return filters | {"older_than_s": query.get("older_than_s", "")}  # an age of blanks is refused, not left out


def before_lsn(query: Query) -> int:
    """The LSN from which to continue a search backwards; 0: from the newest fact."""
    return number_of(query, "before", LSN_DIGITS_MAX)


async def by_text(dashboard: Dashboard, text: str) -> Context:
    queues = await dashboard.link.ask("queues", prefix=text, limit=NAMES_SHOWN)
    workers: list[dict[str, Any]] = []
    with suppress(AdminRefused):  # no worker has this name
        workers = [await dashboard.link.ask("worker", worker=text)]
    return {"queues": queues["queues"], "workers": workers}


async def open_messages(dashboard: Dashboard, query: Query, filters: dict[str, str]) -> Context:
    """Open messages, if a peer is given those of a client or, if no client with that identity has an open message, of a worker."""
    now_ns = dashboard.now_ns
    arguments: dict[str, Any] = {name: filters[name] for name in ("queue", "state", "dialect") if filters[name]}
    from_ns, to_ns = time_range(filters, now_ns)
    if from_ns >= now_ns:
        return {"messages": [], "is_cut": False, "paging": paging(0, 0)}
    if to_ns < now_ns:
        arguments["older_than_s"] = min((now_ns - to_ns) / SECOND_NS, AGE_S_MAX)
    if now_ns - from_ns <= AGE_S_MAX * SECOND_NS:
        arguments["newer_than_s"] = (now_ns - from_ns) / SECOND_NS
    client = {"client": filters["peer"]} if filters["peer"] else {}
    found = await one_part(dashboard, query, "messages", **client, **arguments)
    if client and not found["total"]:
        try:
            return await one_part(dashboard, query, "messages", worker=filters["peer"], **arguments)
        except AdminRefused as refused:
            if refused.refusal != NOT_FOUND:  # no such worker is connected
                raise
    return found


async def ended(dashboard: Dashboard, query: Query, filters: dict[str, str]) -> tuple[Answer, str]:
    queues = await dashboard.link.ask("queues", prefix=filters["queue"], limit=NAMES_MAX)
    workers = await dashboard.link.ask("workers", limit=NAMES_MAX)
    naming = Naming(
        {queue["queue_no"]: queue["queue"] for queue in queues["queues"]},
        {worker["number"]: [worker["name"], worker["remote"]] for worker in workers["workers"]},
    )
    from_ns, to_ns = time_range(filters, dashboard.now_ns)
    question = Question(
        queue=filters["queue"],
        peer=filters["peer"],
        state=filters["state"] or ENDED,
        dialect=filters["dialect"],
        from_ns=from_ns,
        to_ns=to_ns,
        before_lsn=before_lsn(query) or FOREVER,
        limit=PAGE_SIZE,
    )
    return await ended_messages(dashboard.journal, question, naming)


def time_range(filters: dict[str, str], now_ns: int) -> tuple[int, int]:
    """The time range of a search. Raises `AdminRefused` for an invalid field: ignoring it would find more than requested."""
    since, begin, end, age = (filters[name] for name in ("since", "from", "to", "older_than_s"))
    if since and since not in SINCE:
        raise AdminRefused("BAD_ARGUMENT", f"there is no span {since!r}; there are: {', '.join(SINCE)}")
    older_ns = int(age_s(age) * SECOND_NS) if age else 0
    try:
        from_ns = read_instant(begin or since, now_ns) if begin or since else 0
        to_ns = read_instant(end, now_ns) if end else FOREVER
    except BadInstant as error:
        raise AdminRefused("BAD_ARGUMENT", str(error)) from error
    if age:
        to_ns = min(to_ns, now_ns - older_ns)
    if to_ns <= from_ns:
        raise AdminRefused("BAD_ARGUMENT", "the span of time ends before it begins")
    return from_ns, to_ns
