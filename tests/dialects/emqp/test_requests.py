"""REQUEST: how it reaches a worker, what the client hears and when, and how ids travel."""

from __future__ import annotations

import pytest

from tests.core.harness import InMemoryBroker, Worker
from tests.dialects.emqp.ready_peers import JOB, error_type, handed_over, ready_original, ready_worker, results


def test_a_request_reaches_the_worker_with_its_id_queue_and_body_untouched() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().request(b"mail", b"\x00\xff any bytes", message_id=b"the-id")
    assert worker.take(b"REQUEST") == [[b"the-id", b"mail", b"reply-requested", b"\x00\xff any bytes"]]


def test_towards_a_worker_reply_requested_is_always_added_and_never_twice() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    client = broker.client()
    client.request(b"mail", headers=b"guarantee,x-mine: 7 ")
    client.request(b"mail", headers=b"guarantee, reply-requested ,x-mine:7")
    texts = [frames[2] for frames in worker.take(b"REQUEST")]
    assert texts == [b"reply-requested,guarantee,x-mine: 7", b"reply-requested,guarantee,x-mine:7"]


def test_the_documents_five_frame_request_is_taken_without_headers_and_body() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    broker.client().say(b"REQUEST", b"the-id", b"mail")
    assert worker.take(b"REQUEST") == [[b"the-id", b"mail", b"reply-requested", b""]]


@pytest.mark.parametrize("frames", [[b"the-id"], [b"the-id", b""], [b"the-id", b"", b"", JOB]])
def test_an_empty_or_missing_queue_is_the_default_queue(frames: list[bytes]) -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, b"default")
    broker.client().say(b"REQUEST", *frames)
    assert [taken[:2] for taken in worker.take(b"REQUEST")] == [[b"the-id", b"default"]]


def test_a_request_for_a_queue_nobody_serves_waits_there_and_not_in_default() -> None:
    broker = InMemoryBroker()
    elsewhere = ready_worker(broker, b"default")
    client = broker.client()
    job = client.request(b"nosuchqueue", JOB)
    assert elsewhere.jobs() == []
    assert handed_over(client) == []
    assert ready_worker(broker, b"nosuchqueue", identity=b"late").jobs() == [job]
    assert handed_over(client) == [job]


def test_the_client_is_notified_of_the_hand_over_once_and_in_five_frames() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB)
    client.hear()
    (frames,) = client.heard
    assert frames[:3] == [b"", b"eMQP/1.0", b"REPLY"]
    assert len(frames[3]) == 36
    assert frames[4:] == [job]
    client.heard.clear()
    worker.leave()
    again = ready_worker(broker, identity=b"second")
    assert again.jobs() == [job]
    again.reply(job)
    client.hear()
    assert client.heard == []


def test_a_hand_over_is_also_sent_for_a_buffered_request() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB)
    assert handed_over(client) == []
    ready_worker(broker)
    assert handed_over(client) == [job]


def test_the_result_goes_to_a_client_that_asked_and_to_no_other() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    asks, asks_not = broker.client(b"asks"), broker.client(b"asks-not")
    first = asks.request(b"mail", JOB, b"reply-requested")
    second = asks_not.request(b"mail", JOB)
    worker.reply(first, b'{"value": 6}')
    worker.reply(second, b'{"value": 7}')
    assert results(asks) == [(first, b'{"value": 6}')]
    assert results(asks_not) == []


def test_the_result_has_six_frames_with_value_then_id() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    worker.reply(job, b'{"value": 6}')
    client.hear()
    frames = client.heard[-1]
    assert frames[:3] == [b"", b"eMQP/1.0", b"REPLY"]
    assert len(frames[3]) == 36
    assert frames[4:] == [b'{"value": 6}', job]


def test_two_live_requests_with_one_id_each_get_their_own_answer_under_that_id() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    one, two = broker.client(b"one"), broker.client(b"two")
    one.request(b"mail", b"1", b"reply-requested", b"same")
    two.request(b"mail", b"2", b"reply-requested", b"same")
    first, second = worker.take(b"REQUEST")
    assert first[0] == b"same"
    assert second[0] != b"same"
    assert len(second[0]) == 36
    worker.reply(second[0], b'{"value": 2}')
    worker.reply(first[0], b'{"value": 1}')
    assert results(one) == [(b"same", b'{"value": 1}')]
    assert results(two) == [(b"same", b'{"value": 2}')]
    assert handed_over(two) == [b"same"]


def test_an_id_is_free_again_once_its_request_is_settled() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    client = broker.client()
    client.request(b"mail", message_id=b"same")
    worker.reply(b"same")
    client.request(b"mail", message_id=b"same")
    assert worker.jobs() == [b"same", b"same"]


def test_a_request_without_an_id_is_served_under_an_id_of_the_brokers_own() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    client.say(b"REQUEST", b"", b"mail", b"reply-requested", JOB)
    (job,) = worker.jobs()
    assert len(job) == 36
    worker.reply(job, b"v")
    assert results(client) == [(b"", b"v")]


def test_a_client_that_sends_and_leaves_at_once_still_has_its_job_run() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB)
    client.leave()
    worker = ready_worker(broker)
    assert worker.jobs() == [job]
    worker.reply(job)
    assert [fact["reason"] for fact in broker.facts("closed")] == ["answered"]


def test_a_result_nobody_is_there_for_closes_as_undeliverable() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    job = client.request(b"mail", JOB, b"reply-requested")
    client.leave()
    worker = ready_worker(broker)
    worker.reply(job)
    assert [fact["reason"] for fact in broker.facts("closed")] == ["reply_undeliverable"]


def test_a_client_that_comes_back_under_its_identity_gets_the_result() -> None:
    broker = InMemoryBroker()
    client = broker.client(b"same-identity")
    job = client.request(b"mail", JOB, b"reply-requested")
    client.leave()
    again = broker.client(b"same-identity")
    worker = ready_worker(broker)
    worker.reply(job, b"v")
    assert results(again) == [(job, b"v")]


def test_two_clients_with_one_identity_each_get_their_own_answers() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    one, two = broker.client(b"twin"), broker.client(b"twin")
    first = one.request(b"mail", JOB, b"reply-requested")
    second = two.request(b"mail", JOB, b"reply-requested")
    worker.reply(first, b"1")
    worker.reply(second, b"2")
    assert results(one) == [(first, b"1")]
    assert results(two) == [(second, b"2")]


def test_clients_without_an_identity_get_their_own_answers() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=2)
    one, two = broker.client(b""), broker.client(b"")
    first = one.request(b"mail", JOB, b"reply-requested")
    second = two.request(b"mail", JOB, b"reply-requested")
    worker.reply(first, b"1")
    worker.reply(second, b"2")
    assert results(one) == [(first, b"1")]
    assert results(two) == [(second, b"2")]


def test_binary_identities_are_served_like_any_other() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, identity=b"\xff\xfe\x00")
    client = broker.client(b"\x00\xff" * 127)
    job = client.request(b"mail", JOB, b"reply-requested")
    worker.reply(job, b"v")
    assert results(client) == [(job, b"v")]


def test_binary_ids_and_queue_names_are_carried() -> None:
    broker = InMemoryBroker()
    worker = broker.worker()
    worker.say(b"INFORM", b"1", b"\xff\xfe")
    worker.ready()
    client = broker.client()
    client.request(b"\xff\xfe", b"", b"reply-requested,x:\xff", b"\x00\xff")
    assert worker.take(b"REQUEST") == [[b"\x00\xff", b"\xff\xfe", b"reply-requested,x:\xff", b""]]
    worker.reply(b"\x00\xff", b"\xfe")
    assert results(client) == [(b"\x00\xff", b"\xfe")]


def test_client_commands_work_on_the_worker_port_too() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    peer = Worker(broker, "emqp.worker", b"also-a-client")
    peer.say(b"REQUEST", b"the-id", b"mail", b"reply-requested", JOB)
    worker.reply(b"the-id", b"v")
    peer.hear()
    assert [frames[4:] for frames in peer.heard] == [[b"the-id"], [b"v", b"the-id"]]


def test_a_large_body_crosses_whole() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker, slots=3)
    client = broker.client()
    body = bytes(range(256)) * 4000
    client.request(b"mail", b"before")
    client.request(b"mail", body)
    client.request(b"mail", b"after")
    assert [frames[3] for frames in worker.take(b"REQUEST")] == [b"before", body, b"after"]


@pytest.mark.parametrize(
    ("queue", "headers", "message_id"),
    [(b"q" * 256, b"", b"1"), (b"mail", b"x" * 65_536, b"1"), (b"mail", b"", b"i" * 256)],
    ids=["queue", "headers", "id"],
)
def test_a_name_header_or_id_beyond_its_limit_is_refused_with_an_answer(
    queue: bytes, headers: bytes, message_id: bytes
) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(queue, JOB, headers, message_id)
    ((answered, value),) = results(client)
    assert answered == message_id
    assert error_type(value) == "TOO_LONG"
    assert broker.facts("accepted") == []


@pytest.mark.parametrize(
    ("headers", "message_id"),
    [(b"x" * 65_536, b"1"), (b"", b"i" * 256)],
    ids=["headers", "id"],
)
def test_a_refused_request_creates_no_queue(headers: bytes, message_id: bytes) -> None:
    broker = InMemoryBroker()
    client = broker.client()
    before = broker.facts()
    client.request(b"unheard-of", JOB, headers, message_id)
    assert len(results(client)) == 1
    assert broker.core.state.queues == {}
    assert broker.facts() == before


def test_headers_beyond_their_limit_are_not_read_at_all() -> None:
    broker = InMemoryBroker()
    client = broker.client()
    client.request(b"mail", JOB, b"priority:nonsense," * 400_000)
    ((_, value),) = results(client)
    assert error_type(value) == "TOO_LONG"
    assert broker.emqp.meanings.known == {}


def test_a_long_header_text_is_understood_and_not_remembered() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = broker.client()
    text = b"priority:3,x:" + b"y" * 60_000
    client.request(b"mail", b"", text)
    assert worker.take(b"REQUEST")[0][2] == b"reply-requested," + text
    assert sum(map(len, broker.emqp.meanings.known)) < 10_000


def test_a_plain_job_of_the_original_client_reaches_the_original_worker() -> None:
    broker = InMemoryBroker()
    worker = ready_original(broker)
    client = broker.client()
    job = client.request(b"mail", JOB, b"guarantee,retry-count:2,timeout:9")
    assert worker.take(b"REQUEST") == [[job, b"mail", b"reply-requested,guarantee,retry-count:2,timeout:9", JOB]]
