"""A worker inside this process: post, crew and duties of one App. The program and the test fixture are built on it."""

from __future__ import annotations

import asyncio

from dragoman.client.app import App
from dragoman.client.worker.crew import LocalCrew
from dragoman.client.worker.duties import Duties
from dragoman.client.worker.posts import post_of
from dragoman.client.worker.settings import WorkerSettings
from dragoman.client.worker.target import check, queues_of


class Worker:
    """`start` in a running loop that runs no jobs, `stop` in the same."""

    def __init__(self, app: App, settings: WorkerSettings) -> None:
        loop = asyncio.get_running_loop()
        check(app, settings)
        self._crew = LocalCrew(app, settings, loop, self._ended)
        queues = queues_of(app, settings)
        self.post = post_of(app.address, settings, queues, self._crew) if queues else None
        self._duties = Duties(app, self._crew)

    def _ended(self, done: list[tuple[int, bytes]]) -> None:
        assert self.post is not None
        self.post.ended(done)

    def start(self) -> None:
        self._crew.start()
        if self.post is not None:
            self.post.start()
        self._duties.start()

    async def is_ready(self) -> None:
        """Returns once the broker has taken us on and news is heard."""
        if self.post is not None:
            await self.post.is_serving.wait()
        await self._duties.is_ready()

    async def stop(self) -> None:
        """Drain, then end."""
        if self.post is not None:
            await self.post.drain()
            await self.post.close()
        await self._duties.stop()
        self._crew.stop()
