"""What a worker in the shape of the original program is offered, and how its time is counted."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.settings import EmqpSettings
from tests.core.harness import InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, ready_original, ready_worker, results


def keep_alive(broker: InMemoryBroker, worker: Worker, seconds: int) -> None:
    for _ in range(seconds):
        broker.pass_time(1)
        worker.heartbeat()


@pytest.mark.parametrize(
    "body",
    [b"", b"text", b"\xff\xfe", b"{}", b"null", b"7", b"[]", b'["run"]', b'{"value":1}', b'["run", {}', b"[" * 3000],
)
def test_a_body_that_would_reset_the_original_waits_for_another_worker(body: bytes) -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    job = broker.client().request(b"mail", body)
    assert original.jobs() == []
    assert ready_worker(broker, identity=b"takes-anything").jobs() == [job]


@pytest.mark.parametrize(
    "body", [JOB, b"[1,2]", b'[null, "x", 3]', '["run", "é"]'.encode(), b'["run", [NaN, Infinity]]']
)
def test_a_json_list_of_two_or_more_is_fit_for_the_original(body: bytes) -> None:
    """Python writes and reads NaN and Infinity, whatever JSON says; so do the original's client and worker."""
    broker = InMemoryBroker()
    original = ready_original(broker)
    job = broker.client().request(b"mail", body)
    assert original.jobs() == [job]


@pytest.mark.parametrize(
    ("queue", "headers", "message_id"), [(b"mail", b"", b"\xff"), (b"mail", b"x:\xff", b"1")], ids=["id", "headers"]
)
def test_every_frame_must_be_utf8_for_the_original(queue: bytes, headers: bytes, message_id: bytes) -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    broker.client().request(queue, JOB, headers, message_id)
    assert original.jobs() == []
    assert ready_worker(broker, identity=b"takes-anything").jobs() == [message_id]


def test_a_schedules_headers_must_be_utf8_for_the_original_too() -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    broker.client().say(b"SCHEDULE", broker.next_id(), b"mail", b"x:\xff", b"60", JOB, b"")
    broker.pass_time(0.3)
    assert original.jobs() == []
    assert len(ready_worker(broker, identity=b"takes-anything").jobs()) == 1


def test_an_unfit_message_does_not_hold_up_the_fit_ones_behind_it() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", b"\xff")
    job = client.request(b"mail", JOB)
    assert ready_original(broker).jobs() == [job]


def test_the_setting_json_only_switches_the_check_off() -> None:
    settings = EmqpSettings()
    settings.json_only = False
    broker = InMemoryBroker(emqp_settings=settings)
    original = ready_original(broker)
    job = broker.client().request(b"mail", b"\xff")
    assert original.jobs() == [job]


def test_a_worker_in_the_documents_shape_takes_anything() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"1", b"mail")
    worker.ready()
    job = broker.client().request(b"mail", b"\xff")
    assert worker.jobs() == [job]


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        (b"timeout:9", b"reply-requested,timeout:9"),
        (b"timeout:0", b"reply-requested,timeout:0"),
        (b"timeout:1.5", b"reply-requested,timeout:2"),
        (b"timeout: 0.001 ", b"reply-requested,timeout:1"),
        (b"TIMEOUT:4", b"reply-requested,timeout:4"),
        (b"x-timeout:soon,guarantee", b"reply-requested,guarantee"),
        (b"dedupe:timeout:x", b"reply-requested"),
        (b"note:timeout:x", b"reply-requested"),
        (b"priority:3,delay:0,expires:60,ack-requested,traceparent:00-ab", b"reply-requested,traceparent:00-ab"),
        (b"x-unknown:1,nohaste,run_count:2", b"reply-requested,x-unknown:1,nohaste,run_count:2"),
    ],
)
def test_the_original_sees_whole_seconds_and_no_header_that_looks_like_a_timeout(said: bytes, heard: bytes) -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    broker.client().request(b"mail", JOB, said)
    assert [frames[2] for frames in original.take(b"REQUEST")] == [heard]


def test_our_own_worker_sees_the_headers_as_they_were_sent() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().request(b"mail", JOB, b"timeout:1.5,x-timeout:soon,priority:3")
    assert [frames[2] for frames in worker.take(b"REQUEST")] == [
        b"reply-requested,timeout:1.5,x-timeout:soon,priority:3"
    ]


def test_a_timeout_leaves_the_original_time_to_say_so_itself() -> None:
    broker = InMemoryBroker()
    original = ready_original(broker, slots=2)
    client = broker.client()
    job = client.request(b"mail", JOB, b"timeout:5,reply-requested,retry-count:1")
    keep_alive(broker, original, 7)
    assert broker.facts("released") == []
    original.reply(job, b'{"value": "TimeoutError"}')
    broker.pass_time(2)
    assert original.jobs() == [job, job]
    assert [fact["reason"] for fact in broker.facts("released")] == ["failed"]


def test_a_process_that_died_without_a_word_is_noticed_by_the_brokers_own_bound() -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"timeout:1,retry-count:1")
    original.ready()
    keep_alive(broker, original, 6)
    assert original.jobs() == [job, job]
    assert [fact["reason"] for fact in broker.facts("released")] == ["timed_out"]


def test_a_job_without_a_timeout_is_bounded_as_the_original_bounds_it() -> None:
    settings = EmqpSettings()
    settings.original_timeout_ns = 20 * 1_000_000_000
    broker = InMemoryBroker(emqp_settings=settings)
    original = ready_original(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    keep_alive(broker, original, 22)
    assert results(client) == []
    keep_alive(broker, original, 2)
    ((answered, value),) = results(client)
    assert answered == job
    assert b"TIMED_OUT" in value


def test_our_own_worker_without_a_timeout_has_all_the_time_it_signs_for() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    client.request(b"mail", JOB, b"reply-requested")
    for _ in range(100):
        broker.pass_time(4)
        worker.heartbeat()
    assert results(client) == []
    assert broker.facts("released", "closed") == []


def test_a_worker_that_timed_out_gets_its_retry_only_in_another_slot() -> None:
    broker = InMemoryBroker()
    original = ready_original(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"timeout:1,retry-count:1")
    original.reply(job, b'{"value": "TimeoutError"}')
    keep_alive(broker, original, 4)
    assert original.jobs() == [job]
    original.ready()
    assert original.jobs() == [job]
