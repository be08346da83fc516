"""`dragoman worker` as a program: signals, children, crashes, a broker that comes and goes."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman import App
from dragoman.errors import JobFailed
from dragoman.testing.broker import RunningBroker
from tests.client import jobs as s

ROOT = Path(__file__).parents[3]
DEADLINE_S = 60.0


def wait_until(what: str, look: Callable[[], object]) -> None:
    ends = time.monotonic() + DEADLINE_S
    while not look():
        assert time.monotonic() < ends, f"waited in vain for {what}"
        time.sleep(0.02)


class Program:
    """A worker program and what it printed."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process = process
        self._log = log

    @property
    def log(self) -> str:
        return self._log.read_text()

    def end(self, number: int = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(DEADLINE_S)

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]


@contextmanager
def program(
    broker: RunningBroker, log: Path, *options: str, target: str = "tests.client.jobs:app"
) -> Iterator[Program]:
    command = [sys.executable, "-m", "dragoman", "worker", target, *options]
    environ = {**os.environ, "SHOP_BROKER": broker.url}
    with log.open("wb") as out:
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=out)
    running = Program(process, log)
    try:
        yield running
    except BaseException:
        print(running.log)
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(DEADLINE_S)


@pytest.fixture
def app(broker: RunningBroker) -> Iterator[App]:
    broker.attach(s.app)
    with s.app:
        yield s.app


CREWS = pytest.mark.parametrize("options", [(), ("--processes", "1")], ids=["here", "child"])


@CREWS
def test_it_runs_jobs_and_ends_with_zero(
    broker: RunningBroker, app: App, tmp_path: Path, options: tuple[str, ...]
) -> None:
    with program(broker, tmp_path / "log", *options) as worker:
        assert app.batch_sync([s.length.ask("x" * n) for n in range(50)]) == list(range(50))
        assert app.batch_sync([s.add.ask(n, 1) for n in range(20)]) == list(range(1, 21))
        assert worker.end() == 0


@CREWS
def test_a_running_job_may_end_after_sigterm_and_nothing_new_is_taken(
    broker: RunningBroker, app: App, tmp_path: Path, options: tuple[str, ...]
) -> None:
    done = tmp_path / "done.txt"
    with program(broker, tmp_path / "log", *options) as worker:
        handle = s.writes_slowly.delay_sync(str(done), 1.5)
        wait_until("the job begins", done.with_suffix(".begun").exists)
        worker.process.terminate()
        # Seven of eight slots are free: only a worker that takes nothing new leaves a job waiting.
        wait_until("nothing new is taken", lambda: s.length.delay_sync("later").state_sync() == "waiting")
        assert worker.process.poll() is None
        assert worker.process.wait(DEADLINE_S) == 0
        assert done.exists()
        wait_until("the answer is recorded", lambda: handle.state_sync() == "done")


def test_a_job_that_outlives_the_drain_goes_back(broker: RunningBroker, app: App, tmp_path: Path) -> None:
    done = tmp_path / "done.txt"
    with program(broker, tmp_path / "log", "--drain-s", "0.2") as worker:
        handle = s.writes_slowly.delay_sync(str(done), 60)
        wait_until("the job begins", done.with_suffix(".begun").exists)
        assert worker.end() == 0
    wait_until("the job is given back", lambda: handle.state_sync() == "waiting")


@CREWS
def test_heartbeats_go_on_while_a_job_blocks(tmp_path: Path, options: tuple[str, ...]) -> None:
    # A broker that gives a worker up after 0.6 s; a job that blocks its loop four times as long.
    settings = ("emqp.worker_lost_s=0.6", "emqp.heartbeat_s=0.2")
    with RunningBroker(tmp_path / "data", settings=settings) as broker:
        broker.attach(s.app)
        with s.app, fast_beats(broker, tmp_path / "log", *options):
            assert s.blocks.ask_sync(2.5) == "awake"
            handle = s.add.delay_sync(1)
            wait_until("the job ends", lambda: handle.state_sync() == "done")


def test_a_child_that_keeps_the_interpreter_to_itself_does_not_stop_heartbeats(tmp_path: Path) -> None:
    settings = ("emqp.worker_lost_s=0.6", "emqp.heartbeat_s=0.2", "queues.quarantine_after=1")
    with RunningBroker(tmp_path / "data", settings=settings) as broker:
        broker.attach(s.app)
        with s.app, fast_beats(broker, tmp_path / "log", "--processes", "1"):
            began = time.monotonic()
            rounds = 100_000_000
            assert s.hogs.ask_sync(rounds) == rounds * (rounds - 1) // 2
            assert time.monotonic() - began < DEADLINE_S


@contextmanager
def fast_beats(broker: RunningBroker, log: Path, *options: str) -> Iterator[Program]:
    """A worker program that beats every 0.1 s."""
    code = (
        "import sys, msgspec\n"
        "from dragoman.client.worker import WorkerSettings, program\n"
        "processes = int(sys.argv[1])\n"
        "sys.exit(program.run('tests.client.jobs:app', WorkerSettings(processes=processes, heartbeat_s=0.1)))"
    )
    environ = {**os.environ, "SHOP_BROKER": broker.url}
    with log.open("wb") as out:
        command = [sys.executable, "-c", code, options[1] if options else "0"]
        process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=out, stderr=out)
    running = Program(process, log)
    try:
        yield running
        assert running.end() == 0
    except BaseException:
        print(running.log)
        raise
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(DEADLINE_S)


def test_the_job_of_a_child_that_crashed_is_run_again(broker: RunningBroker, app: App, tmp_path: Path) -> None:
    with program(broker, tmp_path / "log", "--processes", "2") as worker:
        assert s.dies_once.ask_sync(str(tmp_path / "marker")) == "survived"
        assert (tmp_path / "marker").read_text() == "died"
        wait_until("the crash is told", lambda: "its jobs go back" in worker.log)
        wait_until("the child is replaced", lambda: worker.log.count("serving") == 3)
        assert worker.end() == 0


def test_children_end_with_a_parent_that_was_killed(broker: RunningBroker, app: App, tmp_path: Path) -> None:
    with program(broker, tmp_path / "log", "--processes", "1") as worker:
        assert s.length.ask_sync("up") == 2
        (child,) = worker.children()
        worker.end(signal.SIGKILL)
        wait_until("the child ends", lambda: not Path(f"/proc/{child}").exists() or is_zombie(child))


def test_children_ignore_a_hangup_that_their_parent_ignores(broker: RunningBroker, app: App, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under `nohup`: inherited by the program
    try:
        with program(broker, tmp_path / "log", "--processes", "1") as worker:
            assert s.length.ask_sync("up") == 2
            (child,) = worker.children()
            ignored = int(re.findall(r"SigIgn:\s*(\w+)", Path(f"/proc/{child}/status").read_text())[0], 16)
            assert ignored & 1 << (signal.SIGHUP - 1)
            assert worker.end() == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@CREWS
def test_a_restarted_broker_is_rejoined_and_a_job_that_ran_through_it_is_answered(
    tmp_path: Path, options: tuple[str, ...]
) -> None:
    broker = RunningBroker(tmp_path / "data", durability="os")
    done = tmp_path / "done.txt"
    broker.start()
    broker.attach(s.app)
    try:
        with s.app, program(broker, tmp_path / "log", *options) as worker:
            handle = s.writes_slowly.delay_sync(str(done), 0.5)
            wait_until("the job begins", done.with_suffix(".begun").exists)
            broker.stop()
            broker.start()
            wait_until("the job is settled", lambda: handle.state_sync() == "done")
            assert s.length.ask_sync("again") == 5
            assert "lost the broker" in worker.log
            assert worker.end() == 0
    finally:
        broker.stop()


def test_an_ask_lives_through_a_restart_of_the_broker(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data", durability="os")
    broker.start()
    broker.attach(s.app)

    async def work() -> int:
        async with s.app:
            call = asyncio.create_task(s.length.ask("through"))
            handle = await s.length.delay("kept")
            assert await handle.state() == "waiting"
            await asyncio.to_thread(broker.stop)
            await asyncio.to_thread(broker.start)
            # Asked over the same connection as the call: once this is answered, the client is back.
            assert await handle.state() == "waiting"
            with broker.worker(s.app):
                return await asyncio.wait_for(asyncio.shield(call), DEADLINE_S)

    try:
        assert asyncio.run(work()) == 7
    finally:
        broker.stop()


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("tests.client.nowhere:app", "there is no module 'tests.client.nowhere'"),
        ("tests.client.jobs:add", "'add' is not an App"),
        ("tests.client.jobs:nothing", "'nothing' is not an App"),
        ("tests.client.broken:app", "importing 'tests.client.broken' failed with ZeroDivisionError"),
    ],
)
@CREWS
def test_a_target_that_is_no_app_ends_with_two(
    broker: RunningBroker, tmp_path: Path, target: str, words: str, options: tuple[str, ...]
) -> None:
    with program(broker, tmp_path / "log", *options, target=target) as worker:
        assert worker.process.wait(DEADLINE_S) == 2
        assert words in worker.log
        assert "BAD_TARGET" in worker.log


def test_queues_and_weights_can_be_named(broker: RunningBroker, app: App, tmp_path: Path) -> None:
    options: list[Any] = ["--queue", "shop=30", "--queue", "side"]
    with program(broker, tmp_path / "log", *options):
        assert s.length.options(queue="side").ask_sync("abc") == 3
        assert s.length.ask_sync("abcd") == 4


@CREWS
def test_an_exception_of_megabytes_is_answered_and_logged_in_a_few_lines(
    broker: RunningBroker, app: App, tmp_path: Path, options: tuple[str, ...]
) -> None:
    why = "\x1b[2J" + "x" * 5_000_000
    with program(broker, tmp_path / "log", *options) as worker:
        with pytest.raises(JobFailed, match="more characters") as failed:
            s.fails.ask_sync(why=why)
        assert len(str(failed.value)) < 10_000
        assert worker.end() == 0
        assert "fails failed" in worker.log
        assert len(worker.log) < 50_000
        assert "\x1b" not in worker.log
