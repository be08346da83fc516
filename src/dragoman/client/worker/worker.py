"""A worker inside this process: session, crew and duties of one App. The program and the test fixture use it."""

from __future__ import annotations

import asyncio
import logging

from dragoman.client.app import App
from dragoman.client.news import Subscriber
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.session import WorkerSession
from dragoman.client.worker.target import check, queues_of
from dragoman.errors import ClientError, NotInDialect, Refused

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
            self._subscriber = Subscriber(self._app.address, prefixes, self._hear)
            self._subscriber.start()
        if self._app.schedules:
            self._declaring = asyncio.get_running_loop().create_task(self._declare())

    async def is_ready(self) -> None:
        """Wait until the subscriptions are sent."""
        if self._subscriber is not None:
            await self._subscriber.up.wait()

    def _hear(self, topic: bytes, body: bytes) -> None:
        self._crew.hear(self._app.handlers, topic, body)

    async def _declare(self) -> None:
        for schedule in self._app.schedules:
            is_sent = False
            while not is_sent:
                try:
                    await schedule.send()
                    is_sent = True
                except (NotInDialect, Refused, ValueError) as error:
                    log.error("the schedule of %r was not taken: %s", schedule.job, error)
                    is_sent = True
                except ClientError as error:
                    log.warning("the schedule of %r is not kept yet: %s", schedule.job, error)

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
