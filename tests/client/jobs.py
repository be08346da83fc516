"""Jobs that the tests ask for; the worker program imports them too."""

from __future__ import annotations

import asyncio
import contextvars
import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import msgspec

from dragoman import App

app = App(os.environ.get("SHOP_BROKER", "emqp://127.0.0.1"), wait_s=10, answer_s=20)
release = threading.Event()
MEETING_SIZE = 8
meeting = asyncio.Barrier(MEETING_SIZE)
mood: contextvars.ContextVar[str] = contextvars.ContextVar("mood", default="calm")


class Order(msgspec.Struct):
    number: int
    items: list[str]


@app.job(queue="shop")
async def length(text: str) -> int:
    return len(text)


@app.job(queue="shop")
def add(a: int, b: int = 2) -> int:
    return a + b


@app.job(queue="shop")
async def adds_up(numbers: list[int]) -> int:
    total = 0
    for number in numbers:
        total = await add.ask(total, number)
    return total


@app.job(queue="shop")
async def priced(order: Order) -> Order:
    assert isinstance(order, Order)
    return Order(order.number, [*order.items, "price"])


@app.job(queue="shop")
async def fails(why: str) -> None:
    raise ValueError(why)


@app.job(queue="shop")
async def leaves() -> None:
    raise SystemExit(3)


@app.job(queue="shop")
async def unspeakable() -> Any:
    return object()


@app.job(queue="shop", timeout_s=0.2, retries=0)
async def sleeps_too_long() -> None:
    await asyncio.sleep(60)


@app.job(queue="shop", timeout_s=0.2, retries=0)
def waits_too_long() -> None:
    release.wait(20)


@app.job(queue="shop")
async def waits(seconds: float) -> str:
    async with asyncio.timeout(20):
        await asyncio.sleep(seconds)
    return "waited"


@app.job(queue="shop")
async def meets() -> str:
    """Ends when so many of it run side by side."""
    async with asyncio.timeout(20):
        await meeting.wait()
    return "met"


@app.job(queue="shop")
async def blocks(seconds: float) -> str:
    time.sleep(seconds)
    return "awake"


@app.job(queue="shop")
async def hogs(rounds: int) -> int:
    return sum(range(rounds))


@app.job(queue="shop")
async def changes_mood(to: str) -> str:
    before = mood.get()
    mood.set(to)
    return before


@app.job(queue="shop")
def positional(a: int, /, *more: float, **named: str) -> list[Any]:
    return [a, list(more), named]


@app.job(queue="shop")
def dies_once(marker: str) -> str:
    path = Path(marker)
    if not path.exists():
        path.write_text("died")
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@app.job(queue="shop")
async def writes_slowly(path: str, seconds: float) -> None:
    Path(path).with_suffix(".begun").touch()
    await asyncio.sleep(seconds)
    Path(path).touch()


def plain(text: str) -> str:
    """No job: run only where importing is allowed."""
    return text.upper()


class Till:
    def __init__(self, start: int) -> None:
        self.sum = start

    def put(self, coins: int) -> int:
        return self.sum + coins
