"""The web process: the ASGI application with its routes for pages, streams, actions and static files, all behind the guard; its start and stop.

It is `python -m dragoman.web.process DATA FD`: it reads its settings from stdin once and serves until stdin
closes. runtime/children/webpage describes the protocol between it and the broker; FD is the listening socket, inherited.

It runs at a lower scheduling priority than the broker. Each sample is saved when it is taken, so the process exits immediately when the
broker has gone.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

import msgspec
import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dragoman.errors import AdminRefused, AdminUnreachable
from dragoman.web import actions, responses, stream
from dragoman.web.connections import IDLE_S, RequestLimit, protocol_of
from dragoman.web.dashboard import Dashboard
from dragoman.web.guard import Guard, Signer, WebSettings
from dragoman.web.link import Link
from dragoman.web.metrics import page as metrics
from dragoman.web.metrics.metric_labels import LabelledQueues
from dragoman.web.rendering import Renderer
from dragoman.web.samples.sample_file import SampleFile
from dragoman.web.samples.sampling import Sampler

NICE: Final = 10
SETTINGS_SIZE_MAX: Final = 1 << 20
HEAD_SIZE_MAX: Final = 32 * 1024  # request line and headers
GOODBYE_S: Final = 1
PR_SET_PDEATHSIG: Final = 1
STATIC: Final = Path(__file__).parent / "static"


def build(data: Path, settings: WebSettings, port: int) -> Starlette:
    """Build the app for one broker."""
    link = Link(data)
    probe_link = Link(data)  # a separate connection, so that probes do not wait for page requests
    file = SampleFile(data, settings.past_s) if settings.past_s > 0 else None
    dashboard = Dashboard(data, link, Sampler(link, file))
    signer, renderer = Signer(settings), Renderer()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        dashboard.sampler.start()
        yield
        await dashboard.sampler.stop()
        link.close()
        probe_link.close()

    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/metrics", metrics.metrics),
            Route("/livez", metrics.livez),
            Route("/readyz", metrics.readyz),
            Route("/login", actions.show_login, methods=["GET"]),
            Route("/login", actions.log_in, methods=["POST"]),
            Route("/logout", actions.log_out, methods=["POST"]),
            Route("/stream", stream.stream),
            Route("/confirm/{name}", actions.confirm, methods=["GET"]),
            Route("/do/{name}", actions.do, methods=["POST"]),
            Route("/{path:path}", responses.show, methods=["GET"]),
        ],
        middleware=[Middleware(RequestLimit), Middleware(Guard, settings=settings, signer=signer, port=port)],
        exception_handlers=dict.fromkeys((responses.BadForm, AdminRefused, AdminUnreachable), responses.failed),
        lifespan=lifespan,
    )
    app.state.probe_link = probe_link
    app.state.dashboard = dashboard
    app.state.signer = signer
    app.state.settings = settings
    app.state.labelled_queues = LabelledQueues(settings.metrics_queues_max)
    app.state.renderer = renderer
    app.state.streams = stream.Streams(dashboard, renderer)
    app.state.cookie_name = f"dragoman-{port}"
    return app


def run(data: Path, fd: int) -> int:
    """Serve until the parent process has gone; return the exit code."""
    # Ctrl-C and a closed terminal signal only the parent, which decides when this process ends.
    with suppress(PermissionError):
        os.setpgid(0, 0)
    # The kernel kills this process with its parent, so that the next broker finds the port free; elsewhere the end of stdin ends it.
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.nice(NICE)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(serve(data, fd))


async def serve(data: Path, fd: int) -> int:
    parent = asyncio.StreamReader(limit=SETTINGS_SIZE_MAX)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(parent), sys.stdin)
    os.write(sys.stdout.fileno(), b"hello\n")
    settings = await read_settings(parent)
    if settings is None:
        return 0
    sock = socket.socket(fileno=fd)
    app = build(data, settings, sock.getsockname()[1])
    server = uvicorn.Server(
        uvicorn.Config(
            app,
            http=protocol_of(settings.request_s),
            ws="none",
            lifespan="on",
            interface="asgi3",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            h11_max_incomplete_event_size=HEAD_SIZE_MAX,
            timeout_keep_alive=IDLE_S,
            timeout_graceful_shutdown=GOODBYE_S,
        )
    )
    watcher = asyncio.ensure_future(end_with(parent, server))
    try:
        await server.serve(sockets=[sock])
    finally:
        watcher.cancel()
    return 0


async def read_settings(parent: asyncio.StreamReader) -> WebSettings | None:
    """Read the settings from stdin; None if the parent exits before it sends them."""
    while line := await parent.readline():
        word, _, rest = line.strip().partition(b" ")
        if word == b"settings":
            return msgspec.json.decode(rest, type=WebSettings)
    return None


async def end_with(parent: asyncio.StreamReader, server: uvicorn.Server) -> None:
    while await parent.readline():
        pass  # the parent sends nothing else
    server.should_exit = True


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), int(sys.argv[2])))
