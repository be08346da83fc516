"""News over the dialects that have a word for it: the same handlers, the same calls."""

from __future__ import annotations

import asyncio
import queue
from contextlib import aclosing
from typing import Any

import pytest

from dragoman import App
from dragoman.client.worker import WorkerSettings
from dragoman.testing.broker import running_worker
from tests.runtime.daemon import Daemon

DIALECTS = ("emqp", "rq", "ebus")
DEADLINE_S = 60.0


def app_of(five: Daemon, dialect: str) -> App:
    return App(f"file:{five.data}?dialect={dialect}", wait_s=5)


@pytest.mark.parametrize("hears", DIALECTS)
@pytest.mark.parametrize("says", DIALECTS)
def test_a_handler_hears_what_is_published_in_any_dialect(five: Daemon, says: str, hears: str) -> None:
    topic = f"orders/{says}-{hears}"
    publisher, listener = app_of(five, says), app_of(five, hears)
    heard: queue.Queue[Any] = queue.Queue()

    # rq nodes hear a topic by its whole name.
    @listener.on(topic if hears == "rq" else "orders/")
    async def take(where: str, body: dict[str, int]) -> None:
        if where == topic:
            heard.put(body)

    with running_worker(listener, WorkerSettings(slots=1)), publisher:
        news = None
        for number in range(int(DEADLINE_S / 0.05)):
            # A subscription takes effect a moment after it was made, and nobody is told.
            publisher.publish_sync(topic, {"number": number})
            try:
                news = heard.get(timeout=0.05)
                break
            except queue.Empty:
                continue
        assert news is not None
        assert news["number"] >= 0


@pytest.mark.parametrize("dialect", DIALECTS)
def test_news_can_be_read_as_it_comes(five: Daemon, dialect: str) -> None:
    app = app_of(five, dialect)

    async def work() -> tuple[str, bytes]:
        async with asyncio.timeout(DEADLINE_S), app, aclosing(app.news(f"read/{dialect}")) as news:
            reader = asyncio.create_task(anext(news))
            while not reader.done():
                app.publish(f"read/{dialect}", b"\xff raw")  # not awaited: sent all the same
                await asyncio.sleep(0.02)
            return reader.result()

    assert asyncio.run(work()) == (f"read/{dialect}", b"\xff raw")
