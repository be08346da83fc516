"""A process beside the broker that says too much, nonsense or nothing at all harms nobody, and hears what it needs to know."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop

from dragoman.journal.journal import Journal
from dragoman.journal.settings import JournalSettings
from dragoman.runtime.children.child import LINE_SIZE_MAX, Child
from dragoman.runtime.children.followers import JournalFollower

SPEAKER = "tests.runtime.children.speaker"
FINISH_S = 60.0


class Parent:
    """What was heard of a child. A line that begins with `bad` is more than it can understand."""

    def __init__(self, *orders: str) -> None:
        self.lines: list[str] = []
        self.troubles: list[str] = []
        self.child = Child("speaker", SPEAKER, orders, self._hear, self.troubles.append)

    def _hear(self, line: str) -> None:
        assert line != "fatal"
        if line.startswith("bad"):
            raise ValueError(line)
        self.lines.append(line)


def play(scene: Callable[[], Awaitable[None]]) -> None:
    async def in_time() -> None:
        async with asyncio.timeout(FINISH_S):
            await scene()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(in_time())


async def until(look: Callable[[], object]) -> None:
    while not look():
        await asyncio.sleep(0.02)


@pytest.mark.parametrize("stream", ["out", "err"])
@pytest.mark.parametrize("size", [70_000, LINE_SIZE_MAX * 3])
def test_an_overlong_line_is_not_the_last_one_read(stream: str, size: int) -> None:
    parent = Parent(f"long:{stream}:{size}", "out:after")

    async def scene() -> None:
        parent.child.start()
        await until(lambda: "after" in parent.lines)
        assert parent.child.starts == 1
        assert await parent.child.stop("", FINISH_S)

    play(scene)


def test_a_line_that_is_not_understood_is_passed_over() -> None:
    parent = Parent("out:bad number", "out:after")

    async def scene() -> None:
        parent.child.start()
        await until(lambda: parent.lines)
        assert await parent.child.stop("", FINISH_S)

    play(scene)
    assert parent.lines == ["after"]


def test_a_fault_of_ours_in_hearing_it_does_not_hinder_the_stop() -> None:
    parent = Parent("out:before", "out:fatal")

    async def scene() -> None:
        parent.child.start()
        task = parent.child._task
        assert task is not None
        await until(task.done)
        assert await parent.child.stop("", FINISH_S), "it ends by itself when its input ends"

    play(scene)
    assert parent.lines == ["before"]


def test_a_child_that_ends_unasked_is_logged_with_its_exit_code_and_one_that_was_asked_is_not() -> None:
    parent, asked = Parent("exit:3"), Parent("out:here")

    async def scene() -> None:
        parent.child.start()
        asked.child.start()
        await until(lambda: parent.troubles and asked.lines)
        assert await parent.child.stop("", FINISH_S)
        assert await asked.child.stop("", FINISH_S)

    play(scene)
    assert parent.troubles[0] == "the speaker ended with exit code 3"
    assert asked.troubles == []


def may_leave_idle_priority() -> bool:
    """Whether this user's processes may: that depends on privileges and limits."""
    steps = "; ".join(
        f"os.sched_setscheduler(0, os.{policy}, os.sched_param(0))" for policy in ("SCHED_IDLE", "SCHED_OTHER")
    )
    return (
        subprocess.run([sys.executable, "-c", f"import os; {steps}"], capture_output=True, check=False).returncode == 0
    )


@pytest.mark.skipif("not may_leave_idle_priority()", reason="this user's processes cannot leave the idle priority")
@pytest.mark.parametrize(
    "orders", [("idle:", "made", "out:here", "deaf:"), ("out:here", "ended:", "idle:", "made", "deaf:")]
)
def test_a_child_is_stopped_at_normal_priority_although_it_had_or_took_idle_priority(
    orders: tuple[str, ...], tmp_path: Path
) -> None:
    """It does not listen, so that its priority can be seen until it is killed."""
    is_idle = tmp_path / "idle"
    parent = Parent(*(order.replace("made", f"made:{is_idle}") for order in orders))

    async def scene() -> None:
        parent.child.start()
        await until(lambda: parent.lines)
        pid = parent.child.pid
        stopping = asyncio.ensure_future(parent.child.stop("", 5.0))
        await until(is_idle.exists)
        await until(lambda: stopping.done() or os.sched_getscheduler(pid) == os.SCHED_OTHER)
        assert not stopping.done(), "it was killed at idle priority"
        await stopping

    play(scene)


class Follower(JournalFollower):
    report_word = "here"
    trouble_event = "it does not speak"

    def __init__(self, journal: Journal, finish_s: float, introduction: str, *orders: str) -> None:
        super().__init__("speaker", SPEAKER, orders, journal)
        self.finish_s = finish_s  # type: ignore[misc]  # each test has its own
        self.introduction = introduction
        self.has_reported = False
        self.has_finished = True

    async def introduce(self) -> None:
        await self.child.send(self.introduction)

    def on_report(self, rest: str) -> None:
        self.has_reported = True

    def on_unfinished(self) -> None:
        self.has_finished = False


def test_a_process_started_a_moment_before_the_stop_is_introduced_before_the_last_line(tmp_path: Path) -> None:
    journal = Journal.open(JournalSettings(str(tmp_path / "journal"), "os"), now_ns=1, new_broker_id=bytes(16))
    follower = Follower(journal, FINISH_S, "this is so", f"into:{tmp_path / 'heard'}")

    async def scene() -> None:
        follower.start()
        await until(lambda: follower.child.pid)
        await follower.stop()
        assert follower.has_finished

    play(scene)
    journal.close()
    first, *_, last = (tmp_path / "heard").read_text().splitlines()
    assert (first, last) == ("this is so", f"synced {journal.synced_lsn}")


def test_a_process_that_does_not_listen_does_not_hold_the_stop_up(tmp_path: Path) -> None:
    journal = Journal.open(JournalSettings(str(tmp_path / "journal"), "os"), now_ns=1, new_broker_id=bytes(16))
    follower = Follower(journal, 0.5, "much to know " * 100_000, "out:here", "deaf:")

    async def scene() -> None:
        follower.start()
        await until(lambda: follower.has_reported)
        await follower.stop()
        assert not follower.has_finished, "it had to be killed"

    play(scene)
    journal.close()
