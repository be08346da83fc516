"""What the type checker must understand; checked by mypy --strict, never run."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type

from dragoman import App
from dragoman.client.job import Handle, State

app = App("emqp://127.0.0.1")


@app.job(queue="mail", retries=3, timeout_s=30)
async def send_mail(to: str, copies: int = 1) -> int:
    return copies


@app.job()
def add(a: int, b: int) -> float:
    return a + b


@app.on("orders/")
async def on_order(topic: str, body: dict[str, int]) -> None: ...


async def use() -> None:
    assert_type(await send_mail.ask(to="a@b.c"), int)
    assert_type(await send_mail.ask("a@b.c", copies=2), int)
    assert_type(await send_mail.delay(to="a@b.c"), Handle)
    assert_type(send_mail.ask_sync("a@b.c"), int)
    assert_type(send_mail.delay_sync("a@b.c"), Handle)
    here: Coroutine[Any, Any, int] = send_mail("a@b.c")
    assert_type(await here, int)
    assert_type(await send_mail.options(priority=9).ask("a@b.c"), int)
    assert_type(await add.ask(1, 2), float)
    assert_type(add(1, 2), float)
    assert_type(await (await add.delay(1, b=2)).state(), State)
    assert_type(await (await add.delay(1, b=2)).cancel(), bool)
    await app.publish("orders/created", {"id": 7})
    app.publish("orders/created", b"raw")
    await app.every("*/5 * * * *", send_mail, to="a@b.c")
    app.every(30, add, 1, 2)
    assert_type(await app.unschedule(add, 1, 2), bool)
    await on_order("orders/1", {})
