"""The ASGI application: routes for pages, streams, actions and static files, all behind the guard."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from dragoman.web import actions, forms, stream
from dragoman.web.connections import Turnstile
from dragoman.web.desk import Desk
from dragoman.web.display import showing
from dragoman.web.guard import Guard, Seals, WebSettings
from dragoman.web.link import Link
from dragoman.web.metrics import page as metrics
from dragoman.web.metrics.metric_labels import Crowd
from dragoman.web.rendering import Renderer
from dragoman.web.samples.sample_file import SampleFile
from dragoman.web.samples.sampling import Sampler
from dragoman.web.stream import Streams

STATIC: Final = Path(__file__).parent / "static"


def build(data: Path, settings: WebSettings, port: int) -> Starlette:
    """Build the app for one broker."""
    link = Link(data)
    probe_link = Link(data)  # a separate connection, so that probes do not queue behind page requests
    file = SampleFile(data, settings.past_s) if settings.past_s > 0 else None
    desk = Desk(data, link, Sampler(link, file))
    seals = Seals(settings)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        desk.sampler.start()
        yield
        await desk.sampler.stop()
        link.close()
        probe_link.close()

    app = Starlette(
        routes=[
            Mount("/static", StaticFiles(directory=STATIC)),
            Route("/metrics", metrics.metrics),
            Route("/livez", metrics.livez),
            Route("/readyz", metrics.readyz),
            Route("/login", forms.show_login, methods=["GET"]),
            Route("/login", forms.log_in, methods=["POST"]),
            Route("/logout", forms.log_out, methods=["POST"]),
            Route("/stream", stream.stream),
            Route("/confirm/{name}", actions.confirm, methods=["GET"]),
            Route("/do/{name}", actions.do, methods=["POST"]),
            Route("/{path:path}", showing.show, methods=["GET"]),
        ],
        middleware=[Middleware(Turnstile), Middleware(Guard, settings=settings, seals=seals, port=port)],
        lifespan=life,
    )
    app.state.link = link
    app.state.probe_link = probe_link
    app.state.desk = desk
    app.state.seals = seals
    app.state.settings = settings
    app.state.crowd = Crowd(settings.metrics_queues_max)
    app.state.renderer = Renderer()
    app.state.streams = Streams(desk, app.state.renderer)
    app.state.cookie_name = f"dragoman-{port}"
    return app
