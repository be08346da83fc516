"""Workers and brokers that die or stop, all five dialects at once: each test kills one broker, or one worker of each."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import App
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.errors import AnswerLost
from tests.client import errands as e
from tests.eventmq.programs import Program
from tests.runtime.daemon import Daemon
from tests.waiting import wait_for

DIALECTS = ("emqp", "rq", "ebus", "scale0", "pingpong")
DEADLINE_S = 60.0


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Daemon]:
    """A broker to be killed."""
    daemon = Daemon(tmp_path / "broker")
    yield daemon.start()
    daemon.kill()


class DialectApp:
    """One dialect's App: some of the errands, in a queue of its own."""

    def __init__(self, daemon: Daemon, dialect: str) -> None:
        self.dialect = dialect
        self.url = f"file:{daemon.data}?dialect={dialect}"
        self.app = App(self.url, answer_s=30)
        self.queue = self.app.address.queue or f"queue-{dialect}"
        self.add = self.app.job(queue=self.queue)(e.add.function)
        self.marks = self.app.job(queue=self.queue)(e.marks.function)
        self.dies_once = self.app.job(queue=self.queue)(e.dies_once.function)
        # The worker has an App of its own: stopping it closes what its App has in the loop.
        self.workers_app = App(self.url)
        for job in (self.add, self.marks):
            self.workers_app.job(queue=self.queue)(job.function)

    @asynccontextmanager
    async def working(self) -> AsyncIterator[Worker]:
        worker = Worker(self.workers_app, WorkerSettings(slots=2, drain_s=10))
        worker.start()
        try:
            await worker.is_ready()
            yield worker
        finally:
            await worker.stop()

    def program(self, logs: Path, *options: str) -> Program:
        """`dragoman worker`, as an operator runs it."""
        command = [sys.executable, "-m", "dragoman", "worker", "tests.client.errands:app", "--url", self.url]
        command += ["--queue", self.queue, "--slots", "2", *options]
        return Program(f"worker-{self.dialect}", command, dict(os.environ), logs)


def play(daemon: Daemon, each: Callable[[DialectApp], Awaitable[None]], between: Callable[[], Awaitable[None]]) -> None:
    """All dialects at once; `between` runs beside them."""

    async def guarded(dialect_app: DialectApp) -> None:
        try:
            async with dialect_app.app:
                await each(dialect_app)
        except BaseException as error:
            error.add_note(f"in {dialect_app.dialect}")
            raise

    async def whole() -> None:
        async with asyncio.timeout(DEADLINE_S), asyncio.TaskGroup() as group:
            for dialect in DIALECTS:
                group.create_task(guarded(DialectApp(daemon, dialect)))
            group.create_task(as_coroutine(between()))

    asyncio.run(whole())


async def as_coroutine(work: Awaitable[None]) -> None:
    await work


async def nothing() -> None:
    """Nothing happens beside."""


class Meeting:
    """Where all dialects wait for each other, and then for what happens to the broker."""

    def __init__(self) -> None:
        self.all_here = asyncio.Event()
        self.go_on = asyncio.Event()
        self._count = 0

    async def meet(self) -> None:
        self._count += 1
        if self._count == len(DIALECTS):
            self.all_here.set()
        await self.go_on.wait()


@pytest.mark.parametrize("options", [(), ("--processes", "1")], ids=["here", "child"])
def test_a_worker_killed_in_the_middle_of_a_job_costs_the_job_nothing(
    five: Daemon, options: tuple[str, ...], tmp_path: Path
) -> None:
    """Without children the program dies with its job and is started again, as a supervisor would; a child is replaced."""

    async def each(dialect_app: DialectApp) -> None:
        asked = asyncio.create_task(dialect_app.dies_once.ask(str(tmp_path / dialect_app.dialect)))
        worker = dialect_app.program(tmp_path / "logs", *options)
        try:
            if not options:
                await asyncio.to_thread(wait_for, "its death", lambda: not worker.is_running())
                worker = dialect_app.program(tmp_path / "logs")
            assert await asked == "survived"
        finally:
            if worker.is_running():
                worker.kill_group()

    play(five, each, nothing)


def test_a_killed_broker_is_found_again_and_what_was_under_way_ends_as_the_dialect_allows(own: Daemon) -> None:
    """eMQP and ebus find a call again; the others have no word to ask after it, so it is lost unless it may run twice."""
    meeting = Meeting()

    async def each(dialect_app: DialectApp) -> None:
        async with dialect_app.working():
            assert await dialect_app.add.ask(1) == 3
        asked = asyncio.create_task(dialect_app.add.ask(1))
        again = asyncio.create_task(dialect_app.add.options(repeatable=True).ask(10))
        await meeting.meet()
        if dialect_app.dialect not in ("emqp", "ebus"):
            with pytest.raises(AnswerLost):
                await asked
        async with dialect_app.working():
            assert await again == 12
            if dialect_app.dialect in ("emqp", "ebus"):
                assert await asked == 3

    async def kill() -> None:
        await meeting.all_here.wait()
        wanted = 2 * len(DIALECTS)
        await asyncio.to_thread(wait_for, "all requests", lambda: waiting_at(own) == wanted)
        own.kill()
        await asyncio.to_thread(own.start)
        meeting.go_on.set()

    play(own, each, kill)


def waiting_at(daemon: Daemon) -> int:
    return sum(int(queue["waiting"]) for queue in daemon.ask("queues")["queues"])


def test_a_worker_outlives_a_killed_broker(own: Daemon) -> None:
    meeting = Meeting()

    async def each(dialect_app: DialectApp) -> None:
        async with dialect_app.working():
            assert await dialect_app.add.ask(1) == 3
            await meeting.meet()
            assert await dialect_app.add.options(repeatable=True).ask(2) == 4

    async def kill() -> None:
        await meeting.all_here.wait()
        own.kill()
        await asyncio.to_thread(own.start)
        meeting.go_on.set()

    play(own, each, kill)


def test_a_broker_that_stops_in_good_order_lets_what_runs_be_answered(own: Daemon, tmp_path: Path) -> None:
    meeting = Meeting()
    stopped = asyncio.Event()

    async def each(dialect_app: DialectApp) -> None:
        mark = tmp_path / dialect_app.dialect
        async with dialect_app.working():
            asked = asyncio.create_task(dialect_app.marks.ask(str(mark), 0.6))
            while not mark.exists():
                await asyncio.sleep(0.01)
            await meeting.meet()
            assert await asked == "marked"
            await stopped.wait()
            assert await dialect_app.add.ask(2) == 4

    async def stop() -> None:
        await meeting.all_here.wait()
        meeting.go_on.set()
        assert await asyncio.to_thread(own.stop) == 0
        stopped.set()
        await asyncio.to_thread(own.start)

    play(own, each, stop)
