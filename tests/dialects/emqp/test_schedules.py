"""SCHEDULE and UNSCHEDULE by the built-in scheduler, and how they are forwarded to an external one."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from dragoman.dialects.emqp.settings import EmqpSettings
from tests.core.harness import Client, End, InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, error_type, notes, ready_worker, results

SAME_JOB = (
    b'["run",{"class_kwargs":{},"class_args":[],"kwargs":{},"args":[1],"callable":"send","path":"mail"}]'
)  # fmt: skip
OTHER_JOB = JOB.replace(b"[1]", b"[2]")


def schedule(
    client: End,
    interval: bytes = b"2",
    headers: bytes = b"",
    body: bytes = JOB,
    cron: bytes = b"",
    queue: bytes = b"mail",
) -> None:
    client.say(b"SCHEDULE", client.broker.next_id(), queue, headers, interval, body, cron)


def unschedule(client: End, body: bytes = JOB, queue: bytes = b"default") -> None:
    client.say(b"UNSCHEDULE", client.broker.next_id(), queue, b"guarantee", b"-1", body, b"")


def fired(broker: InMemoryBroker, worker: Worker, tenths: int) -> list[int]:
    """When jobs came, in tenths of a second from now; the worker answers each."""
    times = []
    for at in range(tenths + 1):
        for job in worker.jobs():
            worker.reply(job)
            times.append(at)
        broker.pass_time(0.1)
        if at % 10 == 0:
            worker.heartbeat()
    return times


def eager_worker(broker: InMemoryBroker, queue: bytes = b"mail") -> Worker:
    return ready_worker(broker, queue, slots=100)


def test_an_interval_fires_at_once_and_then_every_so_many_seconds() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"2")
    assert fired(broker, worker, 65) == [1, 20, 40, 60]


def test_nohaste_waits_for_the_first_interval() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"2", b"nohaste")
    assert fired(broker, worker, 45) == [20, 40]


def test_run_count_counts_the_first_one_too_and_ends_the_schedule() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"1", b"run_count:2")
    assert fired(broker, worker, 50) == [1, 10]
    assert broker.core.state.schedules == {}


def test_run_count_nought_never_runs() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"1", b"run_count:0")
    assert fired(broker, worker, 30) == []
    assert broker.core.state.schedules == {}


def test_run_count_nought_replaces_an_earlier_schedule_of_the_same_job() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    client = broker.client()
    schedule(client, b"1", b"nohaste")
    schedule(client, b"1", b"run_count:0")
    assert fired(broker, worker, 30) == []


def test_cron_with_nohaste_fires_on_the_minute_in_its_own_queue() -> None:
    broker = InMemoryBroker()  # at 22:13:20
    worker = eager_worker(broker)
    schedule(broker.client(), b"-1", b"nohaste", cron=b"* * * * *")
    assert fired(broker, worker, 1050) == [400, 1000]


def test_cron_without_nohaste_fires_at_once_too() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"-1", cron=b"* * * * *")
    assert fired(broker, worker, 410) == [1, 400]


def test_scheduling_the_same_job_again_replaces_interval_by_cron() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    client = broker.client()
    schedule(client, b"1", b"nohaste")
    schedule(client, b"-1", b"nohaste", SAME_JOB, b"* * * * *")
    assert fired(broker, worker, 410) == [400]
    assert len(broker.core.state.schedules) == 1


def test_another_job_is_another_schedule() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, body=JOB)
    schedule(client, body=OTHER_JOB)
    assert len(broker.core.state.schedules) == 2


def test_unschedule_finds_the_job_whatever_its_key_order_queue_and_interval() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    client = broker.client()
    schedule(client, b"1", b"nohaste")
    unschedule(client, SAME_JOB, b"another-queue")
    assert fired(broker, worker, 30) == []
    assert results(client) == []


def test_a_cron_schedule_can_be_unscheduled_too() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, b"-1", b"nohaste", cron=b"* * * * *")
    unschedule(client)
    assert broker.core.state.schedules == {}


@pytest.mark.parametrize("ends", [unschedule, lambda client: schedule(client, headers=b"run_count:0")])
def test_the_fact_says_that_a_client_ended_the_schedule(ends: Callable[[Client], None]) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, headers=b"nohaste")
    ends(client)
    assert [fact["reason"] for fact in broker.facts("unscheduled")] == ["by_client"]


def test_unscheduling_what_is_not_there_is_answered() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    unschedule(client)
    ((_, value),) = results(client)
    assert error_type(value) == "NOT_FOUND"


@pytest.mark.parametrize(
    ("interval", "cron"),
    [
        (b"", b""),
        (b"soon", b""),
        (b"nan", b""),
        (b"inf", b""),
        (b"1e300", b""),
        (b"0", b""),
        (b"0.0001", b""),
        (b"-1", b""),
        (b"-1", b"* * *"),
        (b"-1", b"61 * * * *"),
        (b"-1", b"0 0 30 2 *"),
        (b"-1", b"\xff * * * *"),
        (b"-1", b"9" * 5000 + b" * * * *"),
        (b"-1", b"* " * 200_000),
    ],
)
def test_a_schedule_that_cannot_be_read_is_refused_with_an_answer(interval: bytes, cron: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, interval, cron=cron)
    ((_, value),) = results(client)
    assert error_type(value) == "BAD_SCHEDULE"
    assert len(value) < 500
    assert broker.facts("scheduled") == []


def test_a_short_schedule_is_refused_with_an_answer() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.say(b"SCHEDULE", b"1")
    ((answered, value),) = results(client)
    assert (answered, error_type(value)) == (b"1", "BAD_SCHEDULE")


@pytest.mark.parametrize(
    ("queue", "headers", "message_id"),
    [(b"q" * 256, b"", b"1"), (b"mail", b"x" * 65_536, b"1"), (b"mail", b"", b"i" * 256)],
    ids=["queue", "headers", "id"],
)
def test_a_schedule_with_something_beyond_its_limit_is_refused(queue: bytes, headers: bytes, message_id: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.say(b"SCHEDULE", message_id, queue, headers, b"1", JOB, b"")
    ((_, value),) = results(client)
    assert error_type(value) == "TOO_LONG"
    assert broker.facts("scheduled") == []


def test_a_schedule_with_a_bad_header_is_refused() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, headers=b"priority:99")
    ((_, value),) = results(client)
    assert error_type(value) == "BAD_HEADER"


def test_ack_requested_tells_that_a_schedule_is_kept() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.say(b"SCHEDULE", b"the-id", b"mail", b"ack-requested", b"60", JOB, b"")
    assert [frames[1] for frames in client.take(b"ACK")] == [b"the-id"]


def test_the_jobs_of_a_schedule_carry_its_headers_and_their_meaning() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker)
    schedule(broker.client(), b"60", b"retry-count:1,priority:3,x-mine:1")
    broker.pass_time(0.2)
    ((job, queue, headers, body),) = worker.take(b"REQUEST")
    assert (queue, headers, body) == (b"mail", b"reply-requested,retry-count:1,priority:3,x-mine:1", JOB)
    worker.reply(job, b'{"error":{}}')
    broker.pass_time(1.2)
    assert worker.jobs() == [job]


def test_an_empty_queue_schedules_into_default() -> None:
    broker = InMemoryBroker()
    worker = eager_worker(broker, b"default")
    schedule(broker.client(), b"60", queue=b"")
    broker.pass_time(0.2)
    assert len(worker.jobs()) == 1


def test_a_body_that_is_not_json_can_be_scheduled_and_unscheduled() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    schedule(client, body=b"\xff\x00")
    assert len(broker.core.state.schedules) == 1
    unschedule(client, b"\xff\x00")
    assert broker.core.state.schedules == {}


def external() -> tuple[InMemoryBroker, End, Client]:
    settings = EmqpSettings()
    settings.external_scheduler = True
    broker = InMemoryBroker(emqp_settings=settings)
    scheduler = broker.connect("emqp.client", b"scheduler")
    scheduler.say(b"INFORM", b"1", b"", b"scheduler")
    scheduler.heard.clear()
    return broker, scheduler, broker.client()


@pytest.mark.parametrize("command", [b"SCHEDULE", b"UNSCHEDULE"])
def test_with_an_external_scheduler_schedules_are_forwarded_as_they_came(command: bytes) -> None:
    broker, scheduler, client = external()
    client.say(command, b"the-id", b"low", b"guarantee", b"2", JOB, b"")
    scheduler.hear()
    assert scheduler.heard == [[b"", b"eMQP/1.0", command, b"the-id", b"low", b"guarantee", b"2", JOB, b""]]
    assert broker.facts("scheduled") == []


def test_requests_of_the_external_scheduler_are_requests_like_any_other() -> None:
    broker, scheduler, _ = external()
    worker = ready_worker(broker, b"low")
    scheduler.say(b"REQUEST", b"the-id", b"low", b"reply-requested", JOB)
    worker.reply(b"the-id", b'{"value": 5}')
    scheduler.hear()
    assert [frames[4:] for frames in scheduler.heard] == [[b"the-id"], [b'{"value": 5}', b"the-id"]]


def test_without_an_external_scheduler_there_the_client_is_notified() -> None:
    broker, scheduler, client = external()
    scheduler.leave()
    client.say(b"SCHEDULE", b"the-id", b"low", b"", b"2", JOB, b"")
    ((answered, value),) = results(client)
    assert (answered, error_type(value)) == (b"the-id", "NOT_FOUND")
    assert notes(broker) == {"EMQP_NO_SCHEDULER": 1}


@pytest.mark.parametrize(
    ("headers", "interval", "body", "cron"),
    [
        (b"", b"2", b"\xff", b""),
        (b"", b"2", b"{}", b""),
        (b"", b"2", b'["run", {"path": "mail"}]', b""),
        (b"\xff", b"2", JOB, b""),
        (b"", b"soon", JOB, b""),
        (b"run_count:2", b"-1", JOB, b"* * * * *"),
        (b"x-run_count:many", b"2", JOB, b""),
        (b"", b"-1", JOB, b"61 * * * *"),
        (b"", b"2", b"[" * 5000, b""),
    ],
)
def test_what_would_kill_an_external_scheduler_is_refused_instead_of_forwarded(
    headers: bytes, interval: bytes, body: bytes, cron: bytes
) -> None:
    _, scheduler, client = external()
    client.say(b"SCHEDULE", b"the-id", b"low", headers, interval, body, cron)
    scheduler.hear()
    assert scheduler.heard == []
    ((_, value),) = results(client)
    assert error_type(value) == "BAD_SCHEDULE"


def test_a_scheduler_that_sent_kbye_is_forwarded_nothing() -> None:
    _, scheduler, client = external()
    scheduler.say(b"KBYE", b"bye")
    client.say(b"SCHEDULE", b"the-id", b"low", b"", b"2", JOB, b"")
    scheduler.hear()
    assert scheduler.heard == []


def test_the_seconds_of_a_cron_expression_stand_behind_the_others_as_in_the_original() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=10)
    schedule(broker.client(), interval=b"-1", headers=b"nohaste", cron=b"* * * * * */2")
    times = fired(broker, worker, 60)
    assert len(times) == 3
    assert {later - sooner for sooner, later in pairwise(times)} == {20}
