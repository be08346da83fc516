"""A worker inside this process: session, crew and duties of one App, which `module:app` names. The program and the test fixture use it."""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
from functools import partial
from pathlib import Path
from types import TracebackType

from dragoman.client import address
from dragoman.client.app import App
from dragoman.client.features import check_prefixes, queue_at
from dragoman.client.news import Subscriber
from dragoman.client.worker import DEFAULT_WEIGHT, WorkerSettings
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.session import WorkerSession
from dragoman.errors import BadTarget, ClientError, NotInDialect, Refused
from dragoman.printable import error_text, traceback_text

log = logging.getLogger("dragoman.worker")


class Duties:
    """What a worker does besides jobs, once per program: declare the App's schedules, and subscribe to news for its handlers. It runs in the
    session's loop, not in the jobs' loop."""

    def __init__(self, app: App, crew: LocalCrew) -> None:
        self._app = app
        self._crew = crew
        self._subscriber: Subscriber | None = None
        self._declaring: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._app.handlers:
            prefixes = sorted({handler.prefix for handler in self._app.handlers})
            handle = partial(self._crew.handle_news, self._app.handlers)
            self._subscriber = Subscriber(self._app.address, prefixes, handle)
        if self._app.schedules:
            self._declaring = asyncio.get_running_loop().create_task(self._declare())

    async def is_ready(self) -> None:
        """Wait until the subscriptions are sent."""
        if self._subscriber is not None:
            await self._subscriber.up.wait()

    async def _declare(self) -> None:
        for schedule in self._app.schedules:
            while True:
                try:
                    await schedule.send()
                except (NotInDialect, Refused, ValueError) as error:
                    log.error("the schedule of %r was not accepted: %s", schedule.job, error)
                except ClientError as error:
                    log.warning("the schedule of %r is not stored yet: %s", schedule.job, error)
                    continue
                break

    async def stop(self) -> None:
        if self._declaring is not None:
            self._declaring.cancel()
            await asyncio.gather(self._declaring, return_exceptions=True)
        if self._subscriber is not None:
            await self._subscriber.close()
        await self._app.close()


class Worker:
    """Runs one App's jobs. Call `start` and `stop` in the same running loop, which must not run jobs."""

    def __init__(self, app: App, settings: WorkerSettings) -> None:
        loop = asyncio.get_running_loop()
        check(app, settings)
        self._crew = LocalCrew(app, settings, loop, self._ended)
        queues = queues_of(app, settings)
        self.session = WorkerSession(app.address, settings, queues, self._crew) if queues else None
        self._duties = Duties(app, self._crew)

    def _ended(self, done: list[tuple[int, bytes]]) -> None:
        assert self.session is not None
        self.session.ended(done)

    def start(self) -> None:
        self._crew.start()
        if self.session is not None:
            self.session.start()
        self._duties.start()

    async def is_ready(self) -> None:
        """Wait until the broker has accepted all connections and the subscriptions are sent."""
        if self.session is not None:
            await self.session.is_serving.wait()
        await self._duties.is_ready()

    async def stop(self) -> None:
        """Drain, then close."""
        if self.session is not None:
            await self.session.drain()
            await self.session.close()
        await self._duties.stop()
        self._crew.stop()


def load_app(target: str, url: str) -> App:
    """Import the App of `module:app`; `url`, if given, replaces the broker's address in it. Raises BadTarget."""
    module_name, _, names = target.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: object = importlib.import_module(module_name)
    except Exception as error:  # any exception of the user's module; the traceback begins with the module's own frames
        name = error.name if isinstance(error, ModuleNotFoundError) else None
        if name is not None and (module_name == name or module_name.startswith(name + ".")):
            raise BadTarget(target, f"there is no module {name!r}") from None
        sys.stderr.write(traceback_text(error.with_traceback(_own_frames(error.__traceback__))) + "\n")
        raise BadTarget(
            target, f"importing {module_name!r} failed with {type(error).__name__}: {error_text(error)}"
        ) from None
    for name in (names or "app").split("."):
        found = getattr(found, name, None)
    if not isinstance(found, App):
        raise BadTarget(target, f"{names or 'app'!r} is not an App in {module_name!r}")
    if url:
        found.address = address.parse(url)
    return found


def _own_frames(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without our own frame and those of the import machinery at its beginning."""
    while frames is not None and (
        frames.tb_frame.f_code.co_filename in (__file__, importlib.__file__)
        or frames.tb_frame.f_code.co_filename.startswith("<frozen importlib")
    ):
        frames = frames.tb_next
    return frames


def check(app: App, settings: WorkerSettings) -> None:
    """Raise NotInDialect when the App's dialect does not have a queue to serve, or news for its handlers."""
    for _, name in queues_of(app, settings):
        queue_at(app.address, name)
    if app.handlers:
        check_prefixes(app.address, [handler.prefix.decode() for handler in app.handlers])


def queues_of(app: App, settings: WorkerSettings) -> tuple[tuple[int, str], ...]:
    """The queues in the settings, else those of the App's jobs; empty when the App only has handlers."""
    if settings.queues:
        return settings.queues
    return tuple((DEFAULT_WEIGHT, name) for name in sorted({job.opts.queue for job in app.jobs.values()}))
