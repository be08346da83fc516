"""Publishing, handlers and schedules through a real broker."""

from __future__ import annotations

import asyncio
import queue
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import Refused
from dragoman.testing.broker import RunningBroker

DEADLINE_S = 60.0


def test_handlers_of_a_worker_hear_what_is_published_under_their_prefix(broker: RunningBroker) -> None:
    app = broker.app()
    heard: queue.Queue[Any] = queue.Queue()

    @app.on("orders/")
    async def with_topic(topic: str, body: dict[str, int]) -> None:
        heard.put((topic, body))

    @app.on("orders/created")
    def body_only(body: Any) -> None:
        heard.put(body)

    @app.on("stock/")
    async def raw(body: bytes) -> None:
        heard.put(body)

    async def publish() -> None:
        async with app:
            await app.publish("other/", {"id": 1})
            await app.publish("orders/created", {"id": 7})
            app.publish("stock/tea", b"\xff raw")  # not awaited: sent all the same
            await app.publish("orders/created", "not what the first handler takes")

    with broker.worker(app):
        asyncio.run(publish())
        news = [heard.get(timeout=DEADLINE_S) for _ in range(4)]
    assert ("orders/created", {"id": 7}) in news
    assert {"id": 7} in news
    assert b"\xff raw" in news
    assert "not what the first handler takes" in news


def test_publishing_without_a_loop_has_been_sent_when_it_returns(broker: RunningBroker) -> None:
    app = broker.app()
    heard: queue.Queue[Any] = queue.Queue()

    @app.on("")
    def hear(body: int) -> None:
        heard.put(body)

    with broker.worker(app), app:
        app.publish("a", 1)
        app.publish_sync("b", 2)
        assert [heard.get(timeout=DEADLINE_S), heard.get(timeout=DEADLINE_S)] == [1, 2]


def test_news_can_be_read_as_it_comes(broker: RunningBroker) -> None:
    app = broker.app()

    async def work() -> tuple[str, bytes]:
        async with asyncio.timeout(DEADLINE_S), app, aclosing(app.news("orders/")) as news:
            reader = asyncio.create_task(anext(news))
            while not reader.done():
                # A subscription takes effect a moment after it was made, and nobody is told.
                await app.publish("orders/1", {"id": 1})
                await asyncio.sleep(0.02)
            return reader.result()

    assert asyncio.run(work()) == ("orders/1", b'{"id":1}')


def test_a_handler_with_other_parameters_is_refused_where_it_is_written(broker: RunningBroker) -> None:
    with pytest.raises(TypeError, match="must take"):
        broker.app().on("x")(lambda: None)


def test_a_schedule_declared_in_a_module_is_kept_when_the_worker_starts(broker: RunningBroker) -> None:
    app = broker.app()
    ran: queue.Queue[str] = queue.Queue()

    @app.job(queue="clock")
    def tick(what: str) -> None:
        ran.put(what)

    app.every(0.2, tick, what="tock")
    with broker.worker(app):
        assert [ran.get(timeout=DEADLINE_S) for _ in range(2)] == ["tock", "tock"]
        assert app.unschedule_sync(tick, what="tock") is True
        assert app.unschedule_sync(tick, what="tock") is False
    app.close_sync()


def test_a_schedule_sent_from_a_loop_is_kept_when_awaited(broker: RunningBroker) -> None:
    app = broker.app()

    @app.job(queue="clock")
    def tick(what: str) -> None: ...

    async def work() -> None:
        async with app:
            await app.every("*/5 * * * *", tick, what="cron")
            assert await app.unschedule(tick, what="other") is False
            assert await app.unschedule(tick, what="cron") is True
            with pytest.raises(Refused) as refused:
                await app.every("every now and then", tick, what="cron")
            assert refused.value.refusal == "BAD_SCHEDULE"
            with pytest.raises(ValueError, match="more than 0"):
                await app.every(0, tick, what="never")

    asyncio.run(work())


def test_the_data_directory_is_left_as_it_was_found(tmp_path: Path) -> None:
    with RunningBroker(tmp_path / "data") as broker:
        assert (tmp_path / "data" / "broker.json").exists()
        assert broker.listeners["emqp.client"].startswith("tcp://127.0.0.1:")
    assert not (tmp_path / "data" / "broker.json").exists()
