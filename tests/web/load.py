"""A broker with everything on it: all five dialects at work, queues that stand still, schedules, messages set aside, hostile names."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dragoman.cli.demo.cast import Clients, Tally, Workers
from dragoman.client.app import App
from tests.cli.broker import FakeWorker
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for

START_S = 60.0
HOSTILE_QUEUE = "<script>alert('queue')</script>"


@contextmanager
def all_dialects(data: Path) -> Iterator[Tally]:
    """Clients of all five ask workers of all five, until the block ends; then every client gets its answer before the workers leave, so
    that nothing is left open."""
    tally = Tally()
    loop = asyncio.new_event_loop()
    ready, stop = threading.Event(), asyncio.Event()
    faults: list[BaseException] = []

    async def play() -> None:
        workers, clients = Workers(data, tally), Clients(data, tally)
        try:
            await workers.start_all()
            clients.start()
            ready.set()
            await stop.wait()
            await clients.finish()
            await clients.stop()
        except BaseException as fault:
            faults.append(fault)
            raise
        finally:
            await workers.stop()

    thread = threading.Thread(target=lambda: loop.run_until_complete(play()), name="load", daemon=True)
    thread.start()
    wait_for("the load", lambda: ready.is_set() or faults, START_S)
    assert not faults, faults
    try:
        yield tally
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(START_S)
        assert not thread.is_alive(), "the load does not end"
        loop.close()


def furnish(broker: Daemon, app: App) -> dict[str, str]:
    """What an operator comes to look at; ids by what they are for."""
    for _ in range(12):
        app.send_sync("mail", b'{"to": "a@b.example"}')
    app.send_sync(HOSTILE_QUEUE, b"<img src=x onerror=alert(1)>")
    app.send_sync("later", b"x", ["delay:3600"])
    broker.ask("pause", queue="later")

    @app.job(queue="nightly")
    def tidy(what: str) -> None: ...

    app.every_sync("30 3 * * 1-5", tidy, "logs")
    app.every_sync(3600.0, tidy, "cache")
    found = {"waiting": app.send_sync("stuck", b'{"n": 1}').id}
    for number in range(3):
        found["aside"] = set_aside(broker, app, b"poison", b"body %d" % number)
    return found


def set_aside(broker: Daemon, app: App, queue: bytes, body: bytes) -> str:
    """A message whose worker died with it, at a broker where one death is enough."""
    fake_worker = FakeWorker(broker.data, queue, None)
    try:
        handle = app.send_sync(queue.decode(), body)
        wait_for("the lease", lambda: broker.ask("message", id=handle.id)["state"] == "leased")
    finally:
        fake_worker.vanish()
    wait_for("the quarantine", lambda: broker.ask("message", id=handle.id)["state"] == "quarantined")
    return handle.id
