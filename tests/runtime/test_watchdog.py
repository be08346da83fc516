"""The watchdog names the callback that held the loop, by CPU time, and nobody else."""

from __future__ import annotations

import asyncio

import pytest
import structlog
from structlog.testing import capture_logs

from dragoman.limits import LOOP_HOLD_NS
from dragoman.runtime.watchdog import Watchdog

MS_NS = 1_000_000


class Thread:
    """A thread's clocks, turned by hand: `work` takes CPU and time, `wait` only time."""

    def __init__(self) -> None:
        self.cpu_ns = self.now_ns = 0
        self.asked = 0
        self.watchdog = Watchdog(self._cpu_ns, lambda: self.now_ns)

    def _cpu_ns(self) -> int:
        self.asked += 1
        return self.cpu_ns

    def work(self, ms: float) -> None:
        self.cpu_ns += int(ms * MS_NS)
        self.now_ns += int(ms * MS_NS)

    def wait(self, ms: float) -> None:
        self.now_ns += int(ms * MS_NS)

    def read(self, ms: float, listener: str = "emqp.client") -> None:
        began_ns = self.watchdog.begin_read(listener)
        self.work(ms)
        if began_ns:
            self.watchdog.end(began_ns, listener, "read")

    def operation(self, ms: float, name: str) -> None:
        began_ns = self.watchdog.begin()
        self.work(ms)
        self.watchdog.end(began_ns, name)


@pytest.fixture
def thread() -> Thread:
    thread = Thread()
    thread.work(1)
    return thread


def test_an_operation_that_takes_long_is_counted_and_named(thread: Thread) -> None:
    thread.operation(19, "sweep")
    thread.operation(35, "step of a checkpoint")
    thread.operation(25, "sweep")
    view = thread.watchdog.view()
    assert view["holds"] == 2
    assert (view["longest_ns"], view["longest_operation"]) == (35 * MS_NS, "step of a checkpoint")


def test_time_that_the_thread_did_not_have_is_held_against_nobody(thread: Thread) -> None:
    began_ns = thread.watchdog.begin()
    thread.wait(500)
    thread.watchdog.end(began_ns, "sweep")
    thread.read(1)
    thread.wait(500)
    thread.watchdog.end_turn()
    assert thread.watchdog.holds == 0


def test_a_single_read_that_takes_long_is_named_by_its_listener(thread: Thread) -> None:
    thread.read(30, listener="rq")
    thread.watchdog.end_turn()
    assert thread.watchdog.holds == 1
    assert thread.watchdog.longest_operation == "rq read and commit"


def test_what_is_measured_by_itself_does_not_count_towards_its_turn(thread: Thread) -> None:
    thread.read(15)
    thread.operation(15, "sweep")
    thread.watchdog.end_turn()
    assert thread.watchdog.holds == 0


def test_many_reads_of_one_turn_are_nobodys_hold_and_looked_at_closely_from_then_on(thread: Thread) -> None:
    for _ in range(10):
        thread.read(3)
    thread.watchdog.end_turn()
    assert (thread.watchdog.holds, thread.watchdog.long_turns) == (0, 1)
    thread.read(3)
    thread.read(22, listener="ebus.worker")
    thread.watchdog.end_turn()
    assert thread.watchdog.holds == 1
    assert thread.watchdog.longest_operation == "ebus.worker read"


def test_earlier_turns_do_not_count_towards_a_later_one(thread: Thread) -> None:
    for _ in range(1000):
        thread.read(4)
        thread.watchdog.end_turn()
    assert thread.watchdog.holds == 0


def test_short_turns_seldom_ask_for_the_threads_clock(thread: Thread) -> None:
    thread.asked = 0
    for _ in range(10_000):
        thread.read(0.01)
        thread.watchdog.end_turn()
    assert thread.asked <= 10_000 * 0.01 / 5 + 1


def test_what_was_done_before_the_loop_ran_is_no_hold(thread: Thread) -> None:
    thread.work(500)
    thread.watchdog.start()
    thread.read(1)
    thread.wait(10)
    thread.watchdog.end_turn()
    assert thread.watchdog.holds == 0


def test_one_line_a_second_is_logged_and_says_how_many_it_stands_for(thread: Thread) -> None:
    structlog.reset_defaults()
    with capture_logs() as lines:
        for _ in range(10):
            thread.operation(30, "sweep")
        thread.wait(1000)
        thread.operation(40, "sweep")
    assert [(line["event"], line["ms"], line["more"]) for line in lines] == [
        ("the loop was held", 30, 0),
        ("the loop was held", 40, 9),
    ]
    assert lines[0]["code"] == "LOOP_HELD"


def test_a_coroutine_is_measured_between_its_waits_and_keeps_its_result_and_its_errors(thread: Thread) -> None:
    async def work(is_failing: bool) -> int:
        thread.work(15)
        await asyncio.sleep(0)
        thread.work(30)
        try:
            async with asyncio.timeout(0):
                await asyncio.Event().wait()
        except TimeoutError:
            thread.work(15)
        if is_failing:
            raise ValueError("mine")
        return 7

    async def scene() -> int:
        with pytest.raises(ValueError, match="mine"):
            await thread.watchdog.watched(work(True), "admin queues")
        return await thread.watchdog.watched(work(False), "admin queues")

    assert asyncio.run(scene()) == 7
    assert thread.watchdog.holds == 2
    assert thread.watchdog.longest_ns == 30 * MS_NS > LOOP_HOLD_NS
    assert thread.watchdog.longest_operation == "admin queues"
