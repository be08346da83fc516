"""A real broker and a real worker inside the test's process, each in a thread with its own event loop.

    with RunningBroker(tmp_path / "data") as broker:
        broker.attach(app)
        with broker.worker(app):
            assert send_mail.ask_sync(to="a@b.c") == 1

Everything is the real product: sockets on free ports of 127.0.0.1, journal, dialects. Only signal handling is left to the test runner.
"""

from __future__ import annotations

import asyncio
import gc
import json
import threading
import time
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import structlog
import uvloop

from dragoman.cli.ports import lasting_addresses
from dragoman.client import address
from dragoman.client.app import App
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


class LoopThread:
    """A thread that runs one coroutine and keeps its exception."""

    def __init__(self, name: str) -> None:
        self.loop = uvloop.new_event_loop()
        self.failure: BaseException | None = None
        self._name = name
        self._thread: threading.Thread | None = None

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        self._thread = threading.Thread(target=self._run, args=(work,), name=self._name, daemon=True)
        self._thread.start()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        try:
            with asyncio.Runner(loop_factory=lambda: self.loop) as runner:
                runner.run(work)
        except BaseException as error:  # reported to the test, which waits in another thread
            self.failure = error

    @property
    def is_alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def join(self) -> None:
        assert self._thread is not None
        self._thread.join(START_S)
        assert not self._thread.is_alive(), f"{self._name} did not end within {START_S:g} s"
        if self.failure is not None:
            raise self.failure


class RunningBroker:
    """A broker from `start` to `stop`; restarted it keeps its data and its ports."""

    def __init__(self, data: Path, durability: str = "memory", settings: tuple[str, ...] = ()) -> None:
        self.data = data
        self.listeners = lasting_addresses(LISTENERS)
        self._durability = durability
        self._settings = ("log.level=error", "drain.limit_s=0", *settings)
        self._thread: LoopThread | None = None
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
        listen = (*(f"{name}={where}" for name, where in self.listeners.items()), "http=off")
        settings = ("lake.mode=off", *self._settings)  # a test that needs a lake overrides this
        flags = Flags(data=str(self.data), durability=self._durability, listen=listen, settings=settings)
        config = load(None, {}, flags)
        if not structlog.is_configured():
            logs.configure(config)
        thread = self._thread = LoopThread("dragoman broker")
        thread.start(self._serve(config))
        card = self.data / address.BROKER_FILE
        ends = time.monotonic() + START_S
        while not card.exists():
            if not thread.is_alive:
                thread.join()
            assert time.monotonic() < ends, f"the broker did not start within {START_S:g} s"
            time.sleep(LOOK_S)
        self.listeners = json.loads(card.read_text())["listeners"]

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
        thread, server = self._thread, self._server
        self._thread = self._server = None
        if thread is None:
            return
        if server is not None:
            thread.loop.call_soon_threadsafe(server.request_stop)
        thread.join()
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
    serving = threading.Event()
    stops: list[asyncio.Event] = []

    async def work() -> None:
        worker = Worker(app, settings)
        stop = asyncio.Event()
        stops.append(stop)
        worker.start()
        try:
            await worker.is_ready()
            serving.set()
            await stop.wait()
        finally:
            await worker.stop()

    thread = LoopThread("dragoman worker")
    thread.start(work())
    ends = time.monotonic() + START_S
    while not serving.wait(LOOK_S):
        if not thread.is_alive:
            thread.join()
        assert time.monotonic() < ends, f"the worker was not taken on within {START_S:g} s"
    try:
        yield
    finally:
        thread.loop.call_soon_threadsafe(stops[0].set)
        thread.join()
