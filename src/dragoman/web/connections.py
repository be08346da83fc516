"""Connection and request limits of the web server: request deadlines, eviction of idle connections, capacity reserved for probes.

connection   its first request must be complete within `limits.handshake_s`, each later one within IDLE_S of the response before. Above
             WEB_CONNECTIONS_MAX the connection that has waited longest for a request is closed
response     a client that has read nothing of it for UNREAD_S is disconnected
request      WEB_REQUESTS_MAX concurrent ones, streams included; above that, 503. /livez, /readyz and /metrics have WEB_PROBES_MAX of their own
"""

from __future__ import annotations

import asyncio
from typing import Any, ClassVar, Final

import h11
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dragoman.limits import WEB_CONNECTIONS_MAX, WEB_PROBES_MAX, WEB_REQUESTS_MAX
from dragoman.web.guard import PROBE_PATHS

IDLE_S: Final = 30
UNREAD_S: Final = 30.0


class TimedProtocol(H11Protocol):
    """One HTTP connection. uvicorn's own timer stops at the first byte of a request; this one stops at its last byte."""

    request_s: ClassVar[float] = 10.0
    unread_s: ClassVar[float] = UNREAD_S
    waiting: ClassVar[dict[TimedProtocol, None]] = {}  # for a request, the longest first; shared by all connections

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._deadline: asyncio.TimerHandle | None = None  # of the next request
        self._unread: asyncio.TimerHandle | None = None  # of the client's next read

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_request(self.request_s)
        if len(self.connections) > WEB_CONNECTIONS_MAX:
            next(iter(self.waiting)).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_waiting()
        self._end_unread()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Start a timeout: a client that does not read must not occupy a request slot forever."""
        super().pause_writing()
        self._unread = self.loop.call_later(self.unread_s, self.transport.abort)

    def resume_writing(self) -> None:
        self._end_unread()
        super().resume_writing()

    def _end_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()

    def handle_events(self) -> None:
        super().handle_events()
        if self._deadline is not None and self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._end_waiting()

    def on_response_complete(self) -> None:
        self._await_request(IDLE_S)
        super().on_response_complete()

    def _await_request(self, seconds: float) -> None:
        self._end_waiting()
        self.waiting[self] = None
        self._deadline = self.loop.call_later(seconds, self.transport.abort)

    def _end_waiting(self) -> None:
        self.waiting.pop(self, None)
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None


def protocol_of(request_s: float, unread_s: float = UNREAD_S) -> type[TimedProtocol]:
    """Make a protocol class with the given timeouts for the first request and for reading a response."""
    return type("TimedProtocol", (TimedProtocol,), {"request_s": request_s, "unread_s": unread_s})


class RequestLimit:
    """Middleware that limits concurrent requests, with a separate limit for probes."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._running = {False: 0, True: 0}  # by whether it is a probe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_probe = scope["path"] in PROBE_PATHS and self._running[True] < WEB_PROBES_MAX
        if not is_probe and self._running[False] >= WEB_REQUESTS_MAX:
            text = "too many requests at once; try again in a moment\n"
            headers = {"Retry-After": "1", "Connection": "close"}
            await PlainTextResponse(text, 503, headers)(scope, receive, send)
            return
        self._running[is_probe] += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._running[is_probe] -= 1
