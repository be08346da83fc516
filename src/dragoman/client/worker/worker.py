"""A worker inside this process: session, crew and duties of one App. The program and the test fixture use it."""

from __future__ import annotations

import asyncio

from dragoman.client.app import App
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.duties import Duties
from dragoman.client.worker.session import WorkerSession
from dragoman.client.worker.settings import WorkerSettings
from dragoman.client.worker.target import check, queues_of


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
