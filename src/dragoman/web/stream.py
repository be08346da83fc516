"""Server-sent events: after each beat, the changed live part of a viewer's page.

Viewers of the same page share one rendering per beat. Each viewer's own CSRF token is inserted last, in place of a random mark that is known
only in this process.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncIterator
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.web.dashboard import Dashboard, Page
from dragoman.web.guard import OPERATOR
from dragoman.web.rendering import Renderer
from dragoman.web.responses import STATUS_OF, split_address

STREAMS_MAX: Final = 64
ADDRESS_SIZE_MAX: Final = 4096
AWAY: Final = 'event: away\ndata: ""\n\n'
GONE: Final = 'event: gone\ndata: ""\n\n'  # the page's object no longer exists
END: Final = 'event: end\ndata: ""\n\n'
NOTHING: Final = ": \n\n"  # a comment line: a failed write reveals a closed browser


class Streams:
    """The renderings of the current beat."""

    def __init__(self, dashboard: Dashboard, renderer: Renderer) -> None:
        self._dashboard, self._renderer = dashboard, renderer
        self._mark = secrets.token_hex(16)
        self._shown: dict[tuple[str, str], tuple[int, asyncio.Task[tuple[str, bool]]]] = {}
        self.open = 0

    async def rendered(self, beat: int, address: str, role: str, csrf_token: str) -> tuple[str, bool]:
        """The page's live part, and whether it will never change again."""
        known = self._shown.get((address, role))
        if known is None or known[0] != beat:
            self._shown = {key: one for key, one in self._shown.items() if one[0] == beat}
            known = beat, asyncio.ensure_future(self._render(address, role))
            # If all viewers of the task have left, no other code retrieves its exception.
            known[1].add_done_callback(lambda task: task.cancelled() or task.exception())
            self._shown[address, role] = known
        html, is_still = await asyncio.shield(known[1])
        return html.replace(self._mark, csrf_token), is_still

    async def _render(self, address: str, role: str) -> tuple[str, bool]:
        page, key, query = split_address(address)
        assert page is not None, "checked when the stream began"
        shared = {"is_operator": role == OPERATOR, "role": role, "csrf_token": self._mark, "address": address}
        context = await page.context(self._dashboard, query, key) | shared
        return self._renderer.live(page.template, context), bool(context.get("is_still", False))


async def stream(request: Request) -> Response:
    address = request.query_params.get("at", "")
    streams: Streams = request.app.state.streams
    page = split_address(address)[0] if len(address) <= ADDRESS_SIZE_MAX else None
    if page is None:
        return PlainTextResponse("there is no such page\n", status_code=404)
    if streams.open >= STREAMS_MAX:
        return PlainTextResponse(f"at most {STREAMS_MAX} pages are kept up to date at a time\n", status_code=503)
    events = event_stream(request, streams, page, address)
    return StreamingResponse(events, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def event_stream(request: Request, streams: Streams, page: Page, address: str) -> AsyncIterator[str]:
    state: Any = request.state
    csrf_token: str = request.app.state.signer.csrf_token(state.session)
    sampler = request.app.state.dashboard.sampler
    streams.open += 1
    try:
        with sampler.watching():
            beat, last = sampler.beats, ""
            while True:
                beat = await sampler.next_beat(beat + page.every_beats - 1)
                try:
                    html, is_still = await streams.rendered(beat, address, state.role, csrf_token)
                except (AdminUnreachable, AdminRefused) as error:
                    if isinstance(error, AdminRefused) and error.refusal in STATUS_OF:
                        yield GONE
                        return
                    yield AWAY
                    last = ""
                    continue
                yield f"event: live\ndata: {json.dumps(html)}\n\n" if html != last else NOTHING
                last = html
                if is_still:
                    yield END
                    return
    finally:
        streams.open -= 1
