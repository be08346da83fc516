"""The demo's clients and workers, the same program in each of the five dialects, and their counts.

A worker of dialect W serves the queue `to-W`, and all workers serve the queue of the ping-pong dialogue, which has no other. Each reply
names the dialect of its worker.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, Final

from dragoman.client.address import DEFAULT_DIALECT
from dragoman.client.app import App
from dragoman.client.job import Job
from dragoman.client.worker import WorkerSettings
from dragoman.client.worker.worker import Worker
from dragoman.dialects import crossing, features
from dragoman.dialects.registry import DESCRIPTIONS
from dragoman.errors import DragomanError
from dragoman.model.enums import DIALECT_NAMES

NAMES: Final = [described.name for described in DESCRIPTIONS]
SLOTS: Final = 2
PAUSE_S: Final = 0.05
ANSWER_S: Final = 60.0
WORK_S: Final = 0.02  # duration of a job: long enough for some to be running at any instant
LONG_WORK_S: Final = 1.5
LATER: Final = "after-the-crash"  # a queue without workers until the broker is back
LONG: Final = "across-the-crash"  # a queue for the message that a worker has leased when the broker dies

ONLY_QUEUES: Final = {described.name: described.queue for described in DESCRIPTIONS if described.queue}

Cross = Job[[str, int, float], list[str], Coroutine[Any, Any, list[str]]]


def queue_of(client: str, worker: str) -> str:
    return ONLY_QUEUES.get(client) or ONLY_QUEUES.get(worker) or f"to-{worker}"


def app_of(data: Path, dialect: str) -> App:
    return App(f"file:{data}?dialect={dialect}", answer_s=ANSWER_S, wait_s=ANSWER_S)


def job_of(app: App, dialect: str, queue: str, tally: Tally) -> Cross:
    """The same job in every App: it counts its run and returns the dialect that ran it."""

    @app.job(queue=queue, repeatable=True)
    async def cross(client: str, number: int, work_s: float) -> list[str]:
        tally.runs[number] += 1
        await asyncio.sleep(work_s)
        return [dialect, client]

    return cross


class Tally:
    """Counts of calls, answers, stored messages and runs, by dialect and independent of the broker's; each call has a number."""

    def __init__(self) -> None:
        self.cells: Counter[tuple[str, str]] = Counter()  # answered, by client and worker
        self.calls: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.troubles: list[str] = []
        self.stored: dict[str, set[int]] = {}  # calls that the broker confirmed as stored, by client
        self.runs: Counter[int] = Counter()  # how often each call was run, by workers of any dialect
        self._last = 0

    def next_number(self) -> int:
        self._last += 1
        return self._last

    def answer(self, client: str, worker: str) -> None:
        self.answered[client] += 1
        self.cells[client, worker] += 1

    @property
    def missing_cells(self) -> list[tuple[str, str]]:
        return [(client, worker) for client in NAMES for worker in NAMES if not self.cells[client, worker]]

    @property
    def ran_twice(self) -> int:
        """Repeated runs: the price of losing nothing when the broker cannot know whether a message was processed."""
        return self.runs.total() - len(self.runs)

    def unrun(self, client: str) -> int:
        """The number of messages stored for this client that never ran."""
        return sum(1 for number in self.stored.get(client, ()) if not self.runs[number])

    def losses(self) -> list[str]:
        """Every broken promise, as a sentence."""
        found = list(self.troubles)
        for name in NAMES:
            lost = self.calls[name] - self.answered[name]
            if lost:
                found.append(f"{name}: {lost} of {self.calls[name]} calls were never answered")
            if self.unrun(name):
                found.append(f"{name}: {self.unrun(name)} of {len(self.stored[name])} stored messages never ran")
        found += [f"no message went from {client} to {worker}" for client, worker in self.missing_cells]
        return found


class Workers:
    """A worker for each queue of each dialect, all in this process."""

    def __init__(self, data: Path, tally: Tally) -> None:
        self.data, self.tally = data, tally
        self.running: list[tuple[Worker, App]] = []

    async def start(self, dialect: str, queue: str) -> None:
        app = app_of(self.data, dialect)
        job_of(app, dialect, queue, self.tally)
        worker = Worker(app, WorkerSettings(slots=SLOTS, drain_s=2.0))
        worker.start()
        self.running.append((worker, app))
        async with asyncio.timeout(ANSWER_S):
            await worker.is_ready()

    async def start_all(self) -> None:
        for dialect in NAMES:
            for queue in dict.fromkeys([queue_of("", dialect), *ONLY_QUEUES.values()]):
                await self.start(dialect, queue)

    async def stop(self) -> None:
        await asyncio.gather(*(worker.stop() for worker, _ in self.running))
        await asyncio.gather(*(app.close() for _, app in self.running))


class Clients:
    """A client of each dialect that calls workers of all five until it is stopped."""

    def __init__(self, data: Path, tally: Tally) -> None:
        self.tally = tally
        self.apps = {dialect: app_of(data, dialect) for dialect in NAMES}
        self.is_stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        for client, app in self.apps.items():
            for worker in NAMES:
                job = job_of(app, client, queue_of(client, worker), self.tally)
                self._tasks.append(asyncio.create_task(self._ask_on(client, job)))

    async def _ask_on(self, client: str, job: Cross) -> None:
        while not self.is_stopping:
            await self._ask(client, job)
            await asyncio.sleep(PAUSE_S)

    async def _ask(self, client: str, job: Cross) -> None:
        self.tally.calls[client] += 1
        try:
            worker, echoed = await job.ask(client, self.tally.next_number(), WORK_S)
        except DragomanError as error:
            self.tally.troubles.append(f"{client} → {job.opts.queue}: {error}")
            return
        if echoed == client:
            self.tally.answer(client, worker)
        else:
            self.tally.troubles.append(f"{client} was given an answer of {echoed}'s")

    async def leave(self, count: int) -> None:
        """Enqueue messages for later, in every dialect that confirms when they are stored."""
        for dialect in crossing.having(features.KEPT):
            client = DIALECT_NAMES[dialect]
            stored = self.tally.stored.setdefault(client, set())
            job = job_of(self.apps[client], client, LATER, self.tally)
            for _ in range(count):
                number = self.tally.next_number()
                await job.delay(client, number, WORK_S)
                stored.add(number)

    async def begin_long(self) -> str:
        """Enqueue a long-running message and wait until a worker has started it; return its id."""
        client = DEFAULT_DIALECT
        number = self.tally.next_number()
        handle = await job_of(self.apps[client], client, LONG, self.tally).delay(client, number, LONG_WORK_S)
        self.tally.stored.setdefault(client, set()).add(number)
        async with asyncio.timeout(ANSWER_S):
            while not self.tally.runs[number]:
                await asyncio.sleep(WORK_S)
        return handle.id

    async def finish(self) -> None:
        """Stop sending and wait for the open replies."""
        self.is_stopping = True
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.gather(*(app.close() for app in self.apps.values()))
