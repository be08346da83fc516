"""The headers we act on: EventMQ's own and our extensions, and what is said when one cannot be read."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.headers import read_headers
from dragoman.model.enums import GUARANTEED, HANDOVER_WANTED, KEPT_WANTED, NO_HASTE, REPLY_WANTED
from tests.core.harness import InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, error_type, handed_over, ready_worker, results

SECOND_NS = 1_000_000_000


def test_no_headers_ask_for_the_hand_over_only() -> None:
    headers = read_headers(b"")
    assert headers.flags == HANDOVER_WANTED
    assert (headers.retries, headers.timeout_ns, headers.priority, headers.runs) == (-1, 0, 0, -1)
    assert headers.to_worker == headers.to_original == b"reply-requested"


def test_every_header_is_understood_in_any_case_and_with_spaces() -> None:
    headers = read_headers(
        b" Reply-Requested , GUARANTEE,retry-count : 3,timeout: 1.5 ,nohaste,run_count:4,"
        b"priority:9,delay:2,expires:60,dedupe: key ,ack-requested,,traceparent:00-x-y-01"
    )
    assert headers.problem == ""
    assert headers.flags == HANDOVER_WANTED | REPLY_WANTED | GUARANTEED | NO_HASTE | KEPT_WANTED
    assert headers.retries == 3
    assert headers.timeout_ns == 3 * SECOND_NS // 2
    assert headers.runs == 4
    assert headers.priority == 9
    assert headers.delay_ns == 2 * SECOND_NS
    assert headers.expires_ns == 60 * SECOND_NS
    assert headers.dedupe == b"key"


@pytest.mark.parametrize(
    "text",
    [
        b"priority:10",
        b"priority:-1",
        b"priority:",
        b"priority:high",
        b"retry-count:-1",
        b"retry-count:1.5",
        b"retry-count:" + b"9" * 5000,
        b"retry-count:\xb2",
        b"timeout:-5",
        b"timeout:soon",
        b"timeout:",
        b"timeout:nan",
        b"timeout:inf",
        b"timeout:1e300",
        b"delay:-1",
        b"expires:never",
        b"expires:0",
        b"dedupe:",
        b"dedupe:" + b"k" * 256,
        b"run_count:x",
    ],
)
def test_a_header_that_cannot_be_read_is_refused_with_its_name_and_nothing_is_accepted(text: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, text)
    ((answered, value),) = results(client)
    assert answered == job
    assert error_type(value) == "BAD_HEADER"
    assert text.partition(b":")[0] in value
    assert broker.facts("accepted") == []


def test_unknown_headers_are_carried_through_untouched() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().request(b"mail", JOB, b"x-mine:1:2:3, traceparent:00-ab-cd-01,flag")
    assert [frames[2] for frames in worker.take(b"REQUEST")] == [
        b"reply-requested,x-mine:1:2:3,traceparent:00-ab-cd-01,flag"
    ]


def test_ack_requested_is_answered_by_an_ack_with_the_requests_id_before_anything_else() -> None:
    broker = InMemoryBroker()
    ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"ack-requested")
    client.hear()
    assert [(frames[2], frames[4]) for frames in client.heard] == [(b"ACK", job), (b"REPLY", job)]


def test_without_ack_requested_there_is_no_ack() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB)
    client.hear()
    assert client.heard == []


def test_a_higher_priority_is_served_first_and_equal_ones_in_order() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    for text in (b"", b"priority:5", b"priority:9", b"priority:5", b"priority:0"):
        client.request(b"mail", text, text)
    worker = ready_worker(broker, slots=5)
    assert [frames[3] for frames in worker.take(b"REQUEST")] == [
        b"priority:9",
        b"priority:5",
        b"priority:5",
        b"",
        b"priority:0",
    ]


def test_a_delayed_request_waits_its_time_beside_an_idle_worker() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"delay:2.5")
    broker.pass_time(2.4)
    assert worker.jobs() == []
    assert handed_over(client) == []
    broker.pass_time(0.2)
    assert worker.jobs() == [job]
    assert handed_over(client) == [job]


def test_a_request_past_its_expiry_is_not_delivered() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB, b"expires:2")
    kept = client.request(b"mail", JOB, b"expires:20")
    broker.pass_time(2.3)
    assert ready_worker(broker, slots=2).jobs() == [kept]
    assert [fact["outcome"] for fact in broker.facts("closed")] == ["expired"]


def test_a_dedupe_key_takes_a_request_once_per_queue_within_ten_minutes() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB, b"dedupe:k")
    client.request(b"mail", JOB, b"dedupe:k")
    client.request(b"other", JOB, b"dedupe:k")
    ((_, value),) = results(client)
    assert error_type(value) == "DUPLICATE"
    assert len(broker.facts("accepted")) == 2
    broker.pass_time(601)
    client.request(b"mail", JOB, b"dedupe:k")
    assert len(broker.facts("accepted")) == 3


def test_a_duplicate_that_asked_for_an_acknowledgement_gets_one() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB, b"dedupe:k,ack-requested", b"1")
    client.request(b"mail", JOB, b"dedupe:k,ack-requested", b"2")
    assert [frames[1] for frames in client.take(b"ACK")] == [b"1", b"2"]
    assert results(client) == []
    assert len(broker.facts("accepted")) == 1


def test_the_last_of_two_equal_headers_counts() -> None:
    assert read_headers(b"priority:1,priority:2").priority == 2
