"""A real broker and a real worker inside the test's process, each in a thread with its own event loop.

    with RunningBroker(tmp_path / "data") as broker:
        broker.attach(app)
        with broker.worker(app):
            assert send_mail.ask_sync(to="a@b.c") == 1

Everything is the real product: sockets on free ports of 127.0.0.1, journal, dialects. Only signal handling is left to the test runner.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
import uvloop

from dragoman.cli.ports import lasting_addresses
from dragoman.client import address
from dragoman.client.app import App, Background
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.runtime.config import Config, Flags, load
from dragoman.runtime.config.listeners import LISTENERS
from dragoman.runtime.process import logs
from dragoman.runtime.process.home import Home
from dragoman.runtime.server import Server

START_S: Final = 20.0
LOOK_S: Final = 0.002


class ThreadServer(Server):
    """The broker's server without signal handlers, which belong to the test runner."""

    def _handle_signals(self) -> None:
        pass


class RunningBroker:
    """A broker from `start` to `stop`; restarted it keeps its data and its ports."""

    def __init__(self, data: Path, durability: str = "memory", settings: tuple[str, ...] = ()) -> None:
        self.data = data
        self.listeners = lasting_addresses(LISTENERS)
        self._durability = durability
        self._settings = ("log.level=error", "drain.limit_s=0", *settings)
        self._background = Background(uvloop.new_event_loop)
        self._serving: concurrent.futures.Future[None] | None = None
        self._server: ThreadServer | None = None
        self._thresholds = gc.get_threshold()

    @property
    def url(self) -> str:
        """The address for an App: it finds the broker on whatever port it listens."""
        return f"file:{self.data}"

    def app(self, **options: Any) -> App:
        """A new App for this broker."""
        return App(self.url, **options)

    def attach(self, app: App) -> None:
        """Point an App at this broker, before its first use."""
        app.address = address.parse(self.url)

    def start(self) -> None:
        # Without the web page: a test can ask the broker itself.
        listen = (*(f"{name}={host_port}" for name, host_port in self.listeners.items()), "http=off")
        settings = ("lake.mode=off", *self._settings)  # a test that needs a lake overrides this
        flags = Flags(data=str(self.data), durability=self._durability, listen=listen, settings=settings)
        config = load(None, {}, flags)
        if not structlog.is_configured():
            logs.configure(config)
        self._serving = self._background.submit(self._serve(config))
        broker_file = self.data / address.BROKER_FILE
        ends = time.monotonic() + START_S
        while not broker_file.exists():
            if self._serving.done():
                self.stop()  # raises its error
            assert time.monotonic() < ends, f"the broker did not start within {START_S:g} s"
            time.sleep(LOOK_S)
        self.listeners = json.loads(broker_file.read_text())["listeners"]

    async def _serve(self, config: Config) -> None:
        home = Home(config.data)
        home.enter()
        try:
            self._server = ThreadServer(config, home, None)
            await self._server.run()
        finally:
            home.leave()

    def stop(self) -> None:
        """Stop as on SIGTERM, without waiting for workers."""
        serving, self._serving = self._serving, None
        if serving is None:
            return
        try:
            if self._server is not None and not serving.done():
                self._background.call(self._server.request_stop)
            serving.result(START_S)
        finally:
            self._background.stop()
        # The broker tunes the garbage collector for its own process; this process is the test's.
        gc.unfreeze()
        gc.set_threshold(*self._thresholds)

    @contextmanager
    def worker(self, app: App, slots: int = 8, **settings: Any) -> Iterator[None]:
        """Run a worker for an App's jobs and handlers: it serves when the block begins and drains when it ends."""
        with running_worker(app, WorkerSettings(slots=slots, **settings)):
            yield

    def __enter__(self) -> RunningBroker:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()


@contextmanager
def running_worker(app: App, settings: WorkerSettings) -> Iterator[None]:
    """Run a worker in a thread of its own."""

    async def started() -> Worker:
        worker = Worker(app, settings)
        worker.start()
        try:
            async with asyncio.timeout(START_S):
                await worker.is_ready()
        except BaseException:
            await worker.stop()
            raise
        return worker

    background = Background(uvloop.new_event_loop)
    try:
        worker = background.run(started())
        try:
            yield
        finally:
            background.run(worker.stop())
    finally:
        background.stop()
