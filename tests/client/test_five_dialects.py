"""The same program over each dialect, against a broker process: jobs, failures, slots, leaving."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from dragoman import App
from dragoman.client import address
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.errors import JobFailed
from tests.client import errands as e
from tests.eventmq.programs import Program
from tests.runtime.daemon import Daemon

DIALECTS = ("emqp", "rq", "ebus", "scale0", "pingpong")
DEADLINE_S = 60.0
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def url_of(daemon: Daemon, dialect: str) -> str:
    return f"file:{daemon.data}?dialect={dialect}"


def play(daemon: Daemon, dialect: str, work: Callable[[], Awaitable[None]]) -> None:
    async def whole() -> None:
        e.app.address = address.parse(url_of(daemon, dialect))
        async with asyncio.timeout(DEADLINE_S), e.app:
            await work()

    asyncio.run(whole())


@asynccontextmanager
async def working(slots: int = 4, drain_s: float = 10.0) -> AsyncIterator[Worker]:
    worker = Worker(e.app, WorkerSettings(slots=slots, drain_s=drain_s))
    worker.start()
    try:
        await worker.is_ready()
        yield worker
    finally:
        await worker.stop()


@contextmanager
def program(daemon: Daemon, dialect: str, logs: Path, *options: str) -> Iterator[Program]:
    """`dragoman worker`, as an operator runs it."""
    command = [sys.executable, "-m", "dragoman", "worker", "tests.client.errands:app", *options]
    command += ["--url", url_of(daemon, dialect)]
    running = Program(f"worker-{dialect}", command, dict(os.environ), logs)
    try:
        yield running
    finally:
        if running.is_running():
            running.kill_group()


@each_dialect
def test_a_job_is_asked_and_its_failure_raised(five: Daemon, dialect: str) -> None:
    async def work() -> None:
        async with working():
            assert await e.add.ask(1, b=3) == 4
            assert await e.shout.ask("tea") == "TEA"
            with pytest.raises(JobFailed) as failed:
                await e.fails.ask("no such box")
            assert (failed.value.type, failed.value.message) == ("ValueError", "no such box")

    play(five, dialect, work)


@each_dialect
def test_each_of_many_answers_finds_its_own_call(five: Daemon, dialect: str) -> None:
    async def work() -> None:
        async with working():
            results = await e.app.batch([e.add.ask(number) for number in range(200)])
            assert results == [number + 2 for number in range(200)]

    play(five, dialect, work)


@each_dialect
def test_no_more_jobs_run_at_once_than_there_are_slots(five: Daemon, dialect: str) -> None:
    async def work() -> None:
        e.most_at_once = 0
        async with working(slots=2):
            assert max(await e.app.batch([e.counts.ask(0.03) for _ in range(8)])) == 2

    play(five, dialect, work)


@each_dialect
def test_an_ask_waits_for_a_worker_that_comes_later(five: Daemon, dialect: str) -> None:
    async def work() -> None:
        asked = asyncio.create_task(e.add.ask(5))
        # Longer than ebus's own 3 s would be unkind to the suite; what is asked waits as long as its caller.
        await asyncio.wait([asked], timeout=0.3)
        assert not asked.done()
        async with working():
            assert await asked == 7

    play(five, dialect, work)


@each_dialect
def test_a_worker_that_leaves_answers_what_it_runs(five: Daemon, dialect: str, tmp_path: Path) -> None:
    async def work() -> None:
        mark = tmp_path / "mark"
        async with working() as worker:
            asked = asyncio.create_task(e.marks.ask(str(mark), 0.3))
            while not mark.exists():
                await asyncio.sleep(0.01)
            assert worker.session is not None
            assert await worker.session.drain()
            assert await asked == "marked"

    play(five, dialect, work)


@each_dialect
def test_a_program_without_a_loop_asks_too(five: Daemon, dialect: str, tmp_path: Path) -> None:
    app = App(url_of(five, dialect), answer_s=20)
    e.app.address = app.address
    with program(five, dialect, tmp_path):
        assert e.add.ask_sync(1) == 3
        assert e.app.batch_sync([e.add.ask(number) for number in range(5)]) == [2, 3, 4, 5, 6]
    e.app.close_sync()
