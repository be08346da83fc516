"""A worker program that the operator dismisses: what it holds is run once and answered, nothing new comes, until it is admitted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.client import errands as e
from tests.client.test_five_dialects import DIALECTS, each_dialect, play, program
from tests.runtime.daemon import Daemon

RECOGNISED = [name for name in DIALECTS if name != "rq"]  # rq has no word by which a worker would be known again


async def until(what: str, look: Callable[[], Any]) -> Any:
    """Wait for something that the broker or a file shows."""
    async with asyncio.timeout(15):
        while True:
            found = await asyncio.to_thread(look)
            if found:
                return found
            await asyncio.sleep(0.02)


class Trial:
    """One worker program with one slot, and jobs that wait for a gate."""

    def __init__(self, daemon: Daemon, directory: Path) -> None:
        self.daemon = daemon
        self.directory = directory

    def path(self, name: str) -> str:
        return str(self.directory / name)

    def runs(self, name: str) -> int:
        book = self.directory / name
        return len(book.read_text().splitlines()) if book.exists() else 0

    def open_gate(self) -> None:
        (self.directory / "gate").touch()

    def charge(self, book: str) -> asyncio.Future[str]:
        return asyncio.ensure_future(e.charges.ask(self.path(book), self.path("gate")))

    def workers(self, **wanted: object) -> list[dict[str, Any]]:
        found = self.daemon.ask("workers")["workers"]
        return [one for one in found if all(one[name] == value for name, value in wanted.items())]

    def waiting(self) -> int:
        return sum(queue["waiting"] for queue in self.daemon.ask("queues")["queues"])


@each_dialect
def test_the_job_of_a_dismissed_worker_runs_once_and_is_answered(five: Daemon, dialect: str, tmp_path: Path) -> None:
    trial = Trial(five, tmp_path)

    async def work() -> None:
        first = trial.charge("first")
        (worker,) = await until("the first job's worker", lambda: trial.workers(leased=1))
        await until("the first job", lambda: trial.runs("first"))
        answer = await asyncio.to_thread(five.ask, "dismiss", worker=worker["id"])
        assert (answer["leased"], worker["id"] in answer["workers"]) == (1, True)
        assert trial.workers(id=worker["id"], state="dismissed", leased=1)
        second = trial.charge("second")
        await until("the second job's acceptance", trial.waiting)
        trial.open_gate()
        assert await first == "charged"
        await until("its slot", lambda: trial.workers(id=worker["id"], leased=0, slots_free=1))
        assert (trial.runs("first"), trial.runs("second"), trial.waiting()) == (1, 0, 1)
        await asyncio.to_thread(five.ask, "admit", worker=worker["id"])
        assert await second == "charged"
        assert (trial.runs("first"), trial.runs("second")) == (1, 1)
        assert [one["id"] for one in trial.workers()] == [worker["id"]], "it never had to join again"

    with program(five, dialect, tmp_path, "--slots", "1") as running:
        play(five, dialect, work)
        log = running.log()
    assert dialect != "emqp" or ("dismissed by the operator" in log and "admitted by the operator" in log)


@pytest.mark.parametrize("dialect", RECOGNISED)
def test_a_dismissed_worker_that_connects_again_is_still_dismissed(five: Daemon, dialect: str, tmp_path: Path) -> None:
    trial = Trial(five, tmp_path)

    async def work() -> None:
        (worker,) = await until("the worker", trial.workers)
        await asyncio.to_thread(five.ask, "dismiss", worker=worker["id"])
        await asyncio.to_thread(five.ask, "disconnect", worker=worker["id"])
        (again,) = await until("its return", lambda: trial.workers(state="dismissed"))
        assert again["id"] != worker["id"]
        trial.open_gate()
        job = trial.charge("book")
        await until("the job's acceptance", trial.waiting)
        await until("its room", lambda: trial.workers(state="dismissed", slots_free=1))
        assert trial.runs("book") == 0
        await asyncio.to_thread(five.ask, "admit", all=True)
        assert await job == "charged"

    with program(five, dialect, tmp_path, "--slots", "1"):
        play(five, dialect, work)


def test_a_worker_that_is_started_again_is_a_new_one(five: Daemon, tmp_path: Path) -> None:
    trial = Trial(five, tmp_path)
    trial.open_gate()

    async def dismissal() -> None:
        (worker,) = await until("the worker", trial.workers)
        await asyncio.to_thread(five.ask, "dismiss", worker=worker["id"])

    async def work() -> None:
        assert await trial.charge("book") == "charged"

    with program(five, "emqp", tmp_path / "one"):
        play(five, "emqp", dismissal)
    (gone,) = five.ask("workers")["kept_out"]
    assert (gone["dialect"], gone["until_ns"]) == ("emqp", 0)
    with program(five, "emqp", tmp_path / "two"):
        play(five, "emqp", work)
    assert five.ask("admit", worker=gone["id"])["workers"] == []
    assert five.ask("workers")["kept_out"] == []
