"""Jobs that name no queue, so that they run over every dialect; the worker program imports them too."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from pathlib import Path

from dragoman import App

app = App(os.environ.get("ERRANDS_BROKER", "emqp://127.0.0.1"), wait_s=15, answer_s=20)
at_once = 0
most_at_once = 0
lock = threading.Lock()


@app.job()
async def add(a: int, b: int = 2) -> int:
    return a + b


@app.job()
def shout(text: str) -> str:
    return text.upper()


@app.job()
async def fails(why: str) -> None:
    raise ValueError(why)


@app.job()
async def counts(seconds: float) -> int:
    """Notes how many of it run at once."""
    global at_once, most_at_once
    with lock:
        at_once += 1
        most_at_once = max(most_at_once, at_once)
    await asyncio.sleep(seconds)
    with lock:
        at_once -= 1
    return most_at_once


@app.job()
async def marks(path: str, seconds: float) -> str:
    """Leaves a mark when it begins and another when it has ended."""
    Path(path).touch()
    await asyncio.sleep(seconds)
    Path(path).with_suffix(".ended").touch()
    return "marked"


@app.job()
def dies_once(marker: str) -> str:
    path = Path(marker)
    if not path.exists():
        path.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


@app.job()
async def charges(book: str, gate: str) -> str:
    """Writes a line each time it begins, and ends when the gate is there."""
    with Path(book).open("a") as page:
        page.write("charged\n")
    while not Path(gate).exists():
        await asyncio.sleep(0.01)
    return "charged"
