"""Well-behaved clients and workers of every dialect, and how long their asks take."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Final

from dragoman.client.app import App
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.errors import ClientError

DIALECTS: Final = ("emqp", "ebus", "rq", "scale0", "pingpong")
ASK_EVERY_S = 0.05
ANSWER_S = 30.0


def app_of(data: Path, dialect: str) -> App:
    return App(f"file:{data}" + ("" if dialect == "emqp" else f"?dialect={dialect}"), answer_s=ANSWER_S)


def queue_of(dialect: str) -> str:
    return "pingpong" if dialect == "pingpong" else f"good-{dialect}"


def double(number: int) -> int:
    return 2 * number


def serve(data: Path, ready: Path) -> None:
    """A worker of each dialect, until the process is ended."""
    asyncio.run(_serve(data, ready))


async def _serve(data: Path, ready: Path) -> None:
    workers = []
    for dialect in DIALECTS:
        app = app_of(data, dialect)
        app.job(queue=queue_of(dialect))(double)
        worker = Worker(app, WorkerSettings(slots=4))
        worker.start()
        workers.append(worker)
    for worker in workers:
        await worker.is_ready()
    ready.touch()
    await asyncio.Event().wait()


def ask(data: Path, seconds: float, result: Path) -> None:
    """A client of each dialect, asking gently for so long; what became of every ask goes into a file."""
    result.write_text(json.dumps(asyncio.run(_ask(data, seconds))))


async def _ask(data: Path, seconds: float) -> dict[str, dict[str, object]]:
    ends_s = time.monotonic() + seconds
    found = await asyncio.gather(*(_ask_one(data, dialect, ends_s) for dialect in DIALECTS))
    return dict(zip(DIALECTS, found, strict=True))


async def _ask_one(data: Path, dialect: str, ends_s: float) -> dict[str, object]:
    """`took_s` of every ask that was answered; `errors` in words."""
    took_s: list[float] = []
    errors: list[str] = []
    async with app_of(data, dialect) as app:
        job = app.job(queue=queue_of(dialect))(double)
        number = 0
        while time.monotonic() < ends_s:
            number += 1
            began_s = time.monotonic()
            try:
                answer = await job.ask(number)
            except (ClientError, OSError) as error:
                errors.append(f"{type(error).__name__}: {error}")
            else:
                took_s.append(time.monotonic() - began_s)
                if answer != 2 * number:
                    errors.append(f"asked {number}, answered {answer}")
            await asyncio.sleep(ASK_EVERY_S)
    return {"took_s": took_s, "errors": errors}
