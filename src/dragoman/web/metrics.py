"""For machines that watch: `/metrics`, `/livez`, `/readyz`.

A broker that does not answer is told as `dragoman_up 0`, not as a failed scrape: this process is well, and says what it knows.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.model.words import REFUSAL_CODES, REFUSAL_TEXTS
from dragoman.web.crowd import Crowd, View
from dragoman.web.exposition import OPENMETRICS_TYPE, TEXT_TYPE, wants_openmetrics, write
from dragoman.web.families import Answers, families, up
from dragoman.web.link import Link

# Shorter than Prometheus waits by default: it is to hear that the broker is away, not nothing.
PATIENCE_S: Final = 5.0


async def metrics(request: Request) -> Response:
    state = request.app.state
    try:
        async with asyncio.timeout(PATIENCE_S):
            found = list(families(await gather(state.probe_link, state.crowd)))
    except (AdminUnreachable, TimeoutError):
        found = [up(False)]
    is_openmetrics = wants_openmetrics(request.headers.get("accept", ""))
    text = write(found, is_openmetrics)
    return Response(text.encode("utf-8", "replace"), media_type=OPENMETRICS_TYPE if is_openmetrics else TEXT_TYPE)


async def livez(request: Request) -> Response:
    """The page's process and the broker both answer."""
    return answer_of(await counters(request.app.state.probe_link), is_alive_enough=True)


async def readyz(request: Request) -> Response:
    """The broker takes new work."""
    return answer_of(await counters(request.app.state.probe_link), is_alive_enough=False)


def answer_of(counted: dict[str, Any] | None, *, is_alive_enough: bool) -> Response:
    if counted is None:
        return JSONResponse({"ok": False, "code": "ADMIN_UNREACHABLE", "words": "the broker does not answer"}, 503)
    code = counted["refusing"]
    if code and not is_alive_enough:
        return JSONResponse({"ok": False, "code": code, "words": REFUSAL_TEXTS[REFUSAL_CODES.index(code)]}, 503)
    return JSONResponse({"ok": True})


async def counters(link: Link) -> dict[str, Any] | None:
    """None where the broker does not answer."""
    try:
        async with asyncio.timeout(PATIENCE_S):
            found: dict[str, Any] = await link.ask("counters")
    except (AdminUnreachable, TimeoutError):
        return None
    return found


async def gather(link: Link, crowd: Crowd) -> Answers:
    """One page is enough: those that have a name of their own are among the deepest, or are asked for one by one."""
    queues: list[View] = (await link.ask("queue_tallies", order="depth", limit=ADMIN_PAGE_MAX))["queues"]
    for name in crowd.missing(queues):
        queues += await one_queue(link, name)
    shown = crowd.choose(queues)
    # After the queues: the whole is never behind its parts.
    tallies = await link.ask("tallies")
    status = await link.ask("status")
    findings = (await link.ask("stuck"))["findings"]
    return Answers(status, tallies, findings, shown, crowd.rest(tallies, shown))


async def one_queue(link: Link, name: str) -> list[View]:
    """None of that name: the broker has another data directory than when the name was chosen."""
    try:
        found: list[View] = (await link.ask("queue_tallies", queue=name))["queues"]
    except AdminRefused:
        return []
    return found
