"""Jobs of the original client run in the original job manager, and their answers come back as the client asked."""

from __future__ import annotations

import json

import pytest

from tests.eventmq.brokers import beyond_the_original
from tests.eventmq.programs import Client
from tests.eventmq.system import EventMqSystem

pytestmark = [pytest.mark.eventmq, pytest.mark.timeout(300)]  # the first test may have to make the environment


def test_a_deferred_job_runs_in_the_job_manager(system: EventMqSystem, client: Client) -> None:
    client.defer("chores.mark", args=[str(system.book), "plain job"])
    assert len(system.wait_notes("plain job")) == 1


def test_a_client_hears_that_its_job_was_handed_over(system: EventMqSystem, client: Client) -> None:
    message_id = client.defer("chores.add", args=[1, 1])
    client.wait_handed_over(message_id)
    assert client.messages("REPLY", message_id, 6) == []


@beyond_the_original
def test_a_requested_result_comes_back_to_the_client(client: Client) -> None:
    message_id = client.defer("chores.add", args=[2, 3], reply_requested=True, queue="low")
    assert client.result(message_id) == {"value": 5}
    client.wait_handed_over(message_id)
    client.look()
    assert len(client.messages("REPLY", message_id, 6)) == 1


@beyond_the_original
def test_results_go_to_the_client_that_asked_and_to_no_other(system: EventMqSystem, client: Client) -> None:
    other = system.client()
    mine = client.defer("chores.add", args=[10, 1], reply_requested=True)
    theirs = other.defer("chores.add", args=[20, 2], reply_requested=True)
    assert client.result(mine) == {"value": 11}
    assert other.result(theirs) == {"value": 22}
    client.look()
    other.look()
    assert client.messages("REPLY", theirs, 6) == []
    assert other.messages("REPLY", mine, 6) == []


@beyond_the_original
def test_a_method_of_a_class_runs_with_its_class_arguments(client: Client) -> None:
    message_id = client.defer(
        "chores:Parcel.postage", args=[3], class_kwargs={"grams": 7}, reply_requested=True, guarantee=True
    )
    assert client.result(message_id) == {"value": 21}


@beyond_the_original
def test_a_job_that_raises_answers_with_the_text_of_its_exception_and_runs_once(
    system: EventMqSystem, client: Client
) -> None:
    message_id = client.defer(
        "chores.fail", args=[str(system.book), "failing job"], reply_requested=True, retry_count=2
    )
    # The original's worker marks no failure: the text is a value like any other, so nothing is tried again.
    assert client.result(message_id) == {"value": "no such parcel"}
    after = client.defer("chores.add", args=[1, 2], reply_requested=True)
    assert client.result(after) == {"value": 3}
    assert len(system.notes("failing job")) == 1


def test_a_job_that_raises_leaves_its_slot_to_the_next(system: EventMqSystem, client: Client) -> None:
    for number in range(6):  # more than there are slots
        client.defer("chores.fail", args=[str(system.book), f"slot test {number}"])
    client.defer("chores.mark", args=[str(system.book), "after the failures"])
    system.wait_notes("after the failures")
    for number in range(6):
        assert len(system.wait_notes(f"slot test {number}")) == 1


def test_every_job_of_a_burst_runs_exactly_once(system: EventMqSystem, client: Client) -> None:
    words = [f"burst {number}" for number in range(60)]
    for word in words:
        client.defer("chores.mark", args=[str(system.book), word], queue="low")
    for word in words:
        system.wait_notes(word, deadline_s=25.0)
    client.look()
    assert [word for word in words if len(system.notes(word)) != 1] == []


def test_a_function_of_the_job_decorator_runs_though_its_program_ends_at_once(system: EventMqSystem) -> None:
    message_id = system.run("leave_at_once.py", str(system.book), "decorated job").strip()
    assert len(message_id) == 36
    assert len(system.wait_notes("decorated job")) == 1


@beyond_the_original
def test_waiting_jobs_run_when_a_job_manager_for_their_queue_comes_heavier_queue_first(
    system: EventMqSystem, client: Client
) -> None:
    for number in range(2):
        client.defer("chores.mark", args=[str(system.book), f"slow lane {number}"], queue="slow-lane")
    fast = client.defer("chores.mark", args=[str(system.book), "fast lane"], queue="fast-lane")
    # Kept before the job manager comes: a later request of the same client was answered already.
    client.wait_kept(
        client.send("REQUEST", "slow-lane", "ack-requested", job("mark", str(system.book), "last in lane"))
    )
    assert client.messages("REPLY", fast, 5) == []
    system.job_manager([(10, "slow-lane"), (90, "fast-lane")], slots=1)
    system.wait_notes("last in lane")
    lines = [json.loads(line)["word"] for line in system.book.read_text().splitlines()]
    order = [word for word in lines if word in ("slow lane 0", "slow lane 1", "fast lane", "last in lane")]
    assert order == ["fast lane", "slow lane 0", "slow lane 1", "last in lane"]
    client.wait_handed_over(fast)


@beyond_the_original
@pytest.mark.parametrize("body", ["not json", '{"a": 1}', "7", '["run"]'], ids=["text", "object", "number", "short"])
def test_a_body_the_job_manager_cannot_read_is_kept_from_it(system: EventMqSystem, client: Client, body: str) -> None:
    # The original resets its whole connection on such a body; its other jobs would be announced a second time.
    manager = system.programs[0]
    resets = manager.log().count("Unhandled exception")
    client.wait_kept(client.send("REQUEST", "low", "ack-requested", body))
    after = client.defer("chores.add", args=[4, 4], queue="low", reply_requested=True)
    assert client.result(after) == {"value": 8}
    assert manager.log().count("Unhandled exception") == resets


@beyond_the_original
@pytest.mark.parametrize("header", ["timeout:1.5", "x-timeout:soon"])
def test_a_header_the_job_manager_cannot_read_does_not_upset_it(
    system: EventMqSystem, client: Client, header: str
) -> None:
    manager = system.programs[0]
    resets = manager.log().count("Unhandled exception")
    message_id = client.send("REQUEST", "low", f"reply-requested,{header}", job("add", 5, 5))
    assert client.result(message_id) == {"value": 10}
    assert manager.log().count("Unhandled exception") == resets


def job(name: str, *args: object) -> str:
    call = {"path": "chores", "callable": name, "args": args, "kwargs": {}, "class_args": [], "class_kwargs": {}}
    return json.dumps(["run", call])
