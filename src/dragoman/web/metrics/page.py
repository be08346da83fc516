"""Endpoints for monitoring: `/metrics`, `/livez`, `/readyz`.

If the broker does not respond, `/metrics` reports `dragoman_up 0` instead of failing the scrape: this process itself works.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Final

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.limits import ADMIN_PAGE_MAX
from dragoman.model.enums import REFUSAL_CODES, REFUSAL_TEXTS
from dragoman.web.link import Link
from dragoman.web.metrics.exposition import OPENMETRICS_TYPE, TEXT_TYPE, wants_openmetrics, write
from dragoman.web.metrics.families import Answers, families, up
from dragoman.web.metrics.metric_labels import LabelledQueues, View

# Shorter than Prometheus's default timeout, so that it gets `dragoman_up 0` and not a timeout.
PATIENCE_S: Final = 5.0


async def metrics(request: Request) -> Response:
    state = request.app.state
    try:
        async with asyncio.timeout(PATIENCE_S):
            found = list(families(await gather(state.probe_link, state.labelled_queues)))
    except (AdminUnreachable, TimeoutError):
        found = [up(False)]
    is_openmetrics = wants_openmetrics(request.headers.get("accept", ""))
    text = write(found, is_openmetrics)
    return Response(text.encode("utf-8", "replace"), media_type=OPENMETRICS_TYPE if is_openmetrics else TEXT_TYPE)


async def livez(request: Request) -> Response:
    """Liveness: this process and the broker both respond."""
    return await health(request.app.state.probe_link, must_be_ready=False)


async def readyz(request: Request) -> Response:
    """Readiness: the broker accepts new work."""
    return await health(request.app.state.probe_link, must_be_ready=True)


async def health(link: Link, *, must_be_ready: bool) -> Response:
    try:
        async with asyncio.timeout(PATIENCE_S):
            code = (await link.ask("counters"))["refusing"]
    except (AdminUnreachable, TimeoutError):
        return JSONResponse({"ok": False, "code": "ADMIN_UNREACHABLE", "words": "the broker does not answer"}, 503)
    if code and must_be_ready:
        return JSONResponse({"ok": False, "code": code, "words": REFUSAL_TEXTS[REFUSAL_CODES.index(code)]}, 503)
    return JSONResponse({"ok": True})


async def gather(link: Link, labelled: LabelledQueues) -> Answers:
    """Query the broker for one scrape. One page of queues is enough: the chosen queues are among the deepest, or are queried one by one."""
    queues: list[View] = (await link.ask("queue_tallies", order="depth", limit=ADMIN_PAGE_MAX))["queues"]
    for name in labelled.missing(queues):
        with suppress(AdminRefused):  # it does not exist, as after a change of the broker's data directory
            queues += (await link.ask("queue_tallies", queue=name))["queues"]
    shown = labelled.choose(queues)
    # After the queues, so that the totals are never less than their parts.
    tallies = await link.ask("tallies")
    status = await link.ask("status")
    findings = (await link.ask("stuck"))["findings"]
    return Answers(status, tallies, findings, shown, labelled.rest(tallies, shown))
