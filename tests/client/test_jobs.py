"""Jobs through a real broker and a real worker: what a user of the SDK relies on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dragoman import App
from dragoman.errors import JobFailed, NoAnswer, Refused
from dragoman.testing.broker import RunningBroker
from tests.client import jobs as s

T = TypeVar("T")


def run(app: App, work: Callable[[], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with app:
            return await work()

    return asyncio.run(whole())


async def until(what: str, look: Callable[[], Awaitable[bool]], deadline_s: float = 10.0) -> None:
    async with asyncio.timeout(deadline_s):
        while not await look():
            await asyncio.sleep(0.01)


def test_a_coroutine_job_answers(served_app: App) -> None:
    assert run(served_app, lambda: s.length.ask(text="abc")) == 3


def test_a_plain_function_answers_with_positional_and_default_arguments(served_app: App) -> None:
    assert run(served_app, lambda: s.add.ask(1)) == 3
    assert run(served_app, lambda: s.add.ask(1, b=5)) == 6


def test_a_direct_call_is_the_function_itself() -> None:
    assert s.add(1, 1) == 2
    assert asyncio.run(s.length("four")) == 4


def test_arguments_and_results_take_the_annotated_types(served_app: App) -> None:
    answer = run(served_app, lambda: s.priced.ask(s.Order(7, ["tea"])))
    assert answer == s.Order(7, ["tea", "price"])


def test_positional_only_and_variable_arguments_arrive(served_app: App) -> None:
    assert run(served_app, lambda: s.positional.ask(1, 2, 3, tone="low")) == [1, [2.0, 3.0], {"tone": "low"}]


def test_wrong_arguments_are_refused_before_anything_is_sent() -> None:
    with pytest.raises(TypeError, match="unexpected keyword"):
        asyncio.run(s.add.ask(a=1, c=2))  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="missing"):
        asyncio.run(s.add.ask())  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        asyncio.run(s.add.ask(1, a=2))  # type: ignore[misc]


def test_an_argument_of_the_wrong_type_fails_the_job(served_app: App) -> None:
    with pytest.raises(JobFailed) as failed:
        run(served_app, lambda: s.length.ask(text=7))  # type: ignore[arg-type]
    assert failed.value.type == "ValidationError"


def test_an_exception_is_raised_at_the_caller_with_its_type_and_text(served_app: App) -> None:
    with pytest.raises(JobFailed, match="no such box") as failed:
        run(served_app, lambda: s.fails.ask(why="no such box"))
    assert (failed.value.type, failed.value.message) == ("ValueError", "no such box")


def test_a_job_that_exits_does_not_end_its_worker(served_app: App) -> None:
    with pytest.raises(JobFailed) as failed:
        run(served_app, lambda: s.leaves.ask())
    assert failed.value.type == "SystemExit"
    assert run(served_app, lambda: s.length.ask("still there")) == 11


def test_a_result_that_json_cannot_carry_is_a_failure(served_app: App) -> None:
    with pytest.raises(JobFailed) as failed:
        run(served_app, lambda: s.unspeakable.ask())
    assert failed.value.type == "TypeError"


@pytest.mark.parametrize("job", [s.sleeps_too_long, s.waits_too_long])
def test_a_job_over_its_time_fails_in_time(served_app: App, job: Any) -> None:
    began = time.monotonic()
    with pytest.raises(JobFailed) as failed:
        run(served_app, lambda: job.ask())
    assert failed.value.type in ("TimeoutError", "TIMED_OUT")
    assert time.monotonic() - began < 20, "waits_too_long would end by itself then"


def test_a_thread_over_its_time_keeps_its_slot_until_it_ends(broker: RunningBroker) -> None:
    broker.attach(s.app)

    async def work() -> None:
        async with s.app:
            with pytest.raises(JobFailed):
                await s.waits_too_long.ask()
            behind = asyncio.create_task(s.length.ask("next"))
            await until("the job is in line", lambda: is_waiting(behind))
            s.release.set()
            assert await behind == 4

    async def is_waiting(task: asyncio.Task[int]) -> bool:
        # Twice the time a free slot would need.
        await asyncio.wait([task], timeout=0.2)
        assert not task.done(), "the only slot is taken by the thread that goes on"
        return True

    with broker.worker(s.app, slots=1):
        asyncio.run(work())
    s.release.clear()


def test_the_context_of_one_job_is_not_seen_by_the_next(served_app: App) -> None:
    answers = run(served_app, lambda: served_app.batch([s.changes_mood.ask(to=f"mood {n}") for n in range(50)]))
    assert answers == ["calm"] * 50


def test_many_calls_share_one_connection_and_come_back_to_their_callers(served_app: App) -> None:
    texts = ["x" * (n % 300) for n in range(1000)]
    answers = run(served_app, lambda: served_app.batch([s.length.ask(text) for text in texts]))
    assert answers == [len(text) for text in texts]


def test_a_job_may_ask_for_jobs(served_app: App) -> None:
    assert run(served_app, lambda: s.adds_up.ask([1, 2, 3])) == 6


def test_a_batch_may_mix_calls_and_return_failures_in_their_places(served_app: App) -> None:
    calls: list[Any] = [s.length.ask("abc"), s.fails.ask("mixed"), s.add.delay(1)]
    answers = run(served_app, lambda: served_app.batch(calls, return_exceptions=True))
    assert answers[0] == 3
    assert isinstance(answers[1], JobFailed)
    assert len(answers[2].id) == 36


def test_a_batch_raises_the_first_failure(served_app: App) -> None:
    with pytest.raises(JobFailed, match="first"):
        run(served_app, lambda: served_app.batch([s.fails.ask("first"), s.fails.ask("second")]))


def test_jobs_that_wait_run_side_by_side(served_app: App) -> None:
    meeting = [s.meets.ask() for _ in range(s.MEETING_SIZE)]
    assert run(served_app, lambda: served_app.batch(meeting)) == ["met"] * s.MEETING_SIZE


def test_a_job_that_blocks_its_loop_holds_up_no_plain_function(served_app: App) -> None:
    async def work() -> int:
        blocked = asyncio.create_task(s.blocks.ask(1.0))
        await asyncio.sleep(0)
        answer = await s.add.ask(1, 1)
        assert not blocked.done()
        await blocked
        return answer

    assert run(served_app, work) == 2


def test_a_delayed_job_is_kept_runs_and_can_be_watched(served_app: App) -> None:
    async def work() -> None:
        handle = await s.length.delay(text="later")

        async def is_done() -> bool:
            return await handle.state() == "done"

        await until("done", is_done)

    run(served_app, work)


def test_a_job_can_be_cancelled_while_it_waits(broker: RunningBroker) -> None:
    app = broker.app()

    async def work() -> None:
        async with app:
            handle = await app.send("nobody", b"[]")
            state = await handle.state()
            assert (state, state.queue, state.attempt) == ("waiting", "nobody", 0)
            assert await handle.cancel() is True
            assert await handle.cancel() is False
            assert await handle.state() == "cancelled"

    asyncio.run(work())


def test_an_unknown_id_is_unknown(served_app: App) -> None:
    async def work() -> tuple[str, bool]:
        handle = await s.length.delay("x")
        handle.id = "0" * 36
        return await handle.state(), await handle.cancel()

    assert run(served_app, work) == ("unknown", False)


def test_the_sync_face_does_the_same(served_app: App) -> None:
    assert s.length.ask_sync("abc") == 3
    handle = s.add.delay_sync(1)
    ends = time.monotonic() + 10
    while handle.state_sync() != "done":
        assert time.monotonic() < ends
    assert handle.cancel_sync() is False
    assert served_app.batch_sync([s.add.ask(n) for n in range(5)]) == [2, 3, 4, 5, 6]
    with pytest.raises(JobFailed):
        s.fails.ask_sync("sync")


def test_a_dedupe_key_is_accepted_once(broker: RunningBroker) -> None:
    broker.attach(s.app)
    keyed = s.length.options(queue="once", dedupe=lambda text: f"length,of {text}")

    async def work() -> None:
        async with s.app:
            first = asyncio.create_task(keyed.ask("abc"))
            await asyncio.sleep(0.05)
            with pytest.raises(Refused) as refused:
                await keyed.ask("abc")
            assert refused.value.refusal == "DUPLICATE"
            first.cancel()

    asyncio.run(work())


def test_nobody_answers_in_the_time_a_caller_waits(broker: RunningBroker) -> None:
    broker.attach(s.app)

    async def work() -> None:
        async with s.app:
            with pytest.raises(NoAnswer):
                await s.length.options(queue="nobody", wait_s=0.3).ask("abc")

    asyncio.run(work())


def test_a_job_is_not_run_before_its_delay(served_app: App) -> None:
    async def work() -> float:
        began = time.monotonic()
        await s.length.options(delay_s=0.5).ask("x")
        return time.monotonic() - began

    assert run(served_app, work) >= 0.5


def test_an_expired_job_fails_at_its_caller(broker: RunningBroker) -> None:
    broker.attach(s.app)

    async def work() -> None:
        async with s.app:
            with pytest.raises(JobFailed) as failed:
                await s.length.options(queue="nobody", expires_s=0.2).ask("abc")
            assert failed.value.type == "PAST_EXPIRY"

    asyncio.run(work())


def test_failures_are_retried_as_often_as_asked(tmp_path: Path) -> None:
    broker = RunningBroker(tmp_path / "data", settings=("queues.backoff_initial_s=0.05",))
    app = broker.app()
    tries: list[int] = []

    @app.job(queue="flaky", retries=2)
    async def flaky() -> int:
        tries.append(1)
        if len(tries) < 3:
            raise RuntimeError("not yet")
        return len(tries)

    async def work() -> int:
        async with app:
            return await flaky.ask()

    with broker, broker.worker(app):
        assert asyncio.run(work()) == 3


def test_a_raw_body_is_answered_with_the_workers_own_bytes(served_app: App) -> None:
    body = b'["run", {"path": "tests.client.jobs", "callable": "add", "args": [1, 2], "kwargs": {}, "class_args": [], "class_kwargs": {}}]'
    assert run(served_app, lambda: served_app.call("shop", body)) == b'{"value":3}'


def test_a_request_for_what_is_no_job_is_answered_not_run(served_app: App) -> None:
    body = b'["run", {"path": "os", "callable": "getpid"}]'
    assert b"UnknownJob" in run(served_app, lambda: served_app.call("shop", body))
    assert b'"error"' in run(served_app, lambda: served_app.call("shop", b"not json"))


def test_functions_and_classes_of_allowed_modules_run_as_with_the_original(broker: RunningBroker) -> None:
    broker.attach(s.app)
    function = b'["run", {"path": "tests.client.jobs", "callable": "plain", "args": ["abc"], "kwargs": {}}]'
    method = b'["run", {"path": "tests.client.jobs:Till", "callable": "put", "args": [2], "class_args": [40]}]'
    private = b'["run", {"path": "tests.client.jobs:Till", "callable": "__init__", "args": [2], "class_args": [40]}]'

    async def work() -> None:
        async with s.app:
            assert await s.app.call("shop", function) == b'{"value":"ABC"}'
            assert await s.app.call("shop", method) == b'{"value":42}'
            assert b"UnknownJob" in await s.app.call("shop", private)

    with broker.worker(s.app, allow_import=("tests.client",)):
        asyncio.run(work())
