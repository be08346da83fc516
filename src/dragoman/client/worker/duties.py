"""What a worker does besides jobs, once per program: declare the App's schedules, and subscribe to news for its handlers."""

from __future__ import annotations

import asyncio
import logging

from dragoman.client.app import App
from dragoman.client.news import Subscriber
from dragoman.client.worker.crew import LocalCrew
from dragoman.errors import ClientError, NotInDialect, Refused

log = logging.getLogger("dragoman.worker")


class Duties:
    """Runs in the session's loop, not in the jobs' loop."""

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
