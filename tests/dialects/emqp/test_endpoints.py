"""The compiled codec of the client's and the worker's end, against frames and any cut of the stream."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.endpoints import (
    EmqpClientEndpoint,
    EmqpPublisherEndpoint,
    EmqpWorkerEndpoint,
    timeout_s_of,
)
from dragoman.dialects.endpoint import (
    ANSWERED,
    KEPT,
    REFUSED,
    CallOptions,
    Endpoint,
    EndpointSetup,
    MessageIds,
    ZmtpSubscriberEndpoint,
)
from dragoman.model.units import SECOND_NS
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

IDS = b"00000000-0000-4000-a000-"
CUTS = pytest.mark.parametrize("cut", [1, 7, 10_000])


def meet(endpoint: Endpoint, broker: ZmtpConnection) -> list[list[bytes]]:
    """The handshake; what the endpoint sends right after it."""
    early: list[list[bytes]] = []
    to_endpoint, to_broker = broker.greeting(), endpoint.opening()
    while to_endpoint or to_broker:
        assert not endpoint.receive(to_endpoint)  # type: ignore[attr-defined] # every kind of endpoint has it
        early += broker.receive(to_broker)
        to_endpoint, to_broker = broker.take_outgoing(), endpoint.data_to_send()
    return early


def sent_by(endpoint: Endpoint, broker: ZmtpConnection) -> list[list[bytes]]:
    return broker.receive(endpoint.data_to_send())


def set_up() -> EndpointSetup:
    return EndpointSetup(b"me", MessageIds(IDS))


def client() -> tuple[EmqpClientEndpoint, ZmtpConnection]:
    endpoint, broker = EmqpClientEndpoint(set_up()), ZmtpConnection(b"ROUTER")
    meet(endpoint, broker)
    return endpoint, broker


def worker(**changes: float) -> tuple[EmqpWorkerEndpoint, ZmtpConnection]:
    setup = set_up()
    setup.wall_s = 1000.0
    for name, value in changes.items():
        setattr(setup, name, value)
    return EmqpWorkerEndpoint(setup), ZmtpConnection(b"ROUTER")


def pieces(data: bytes, cut: int) -> list[bytes]:
    return [data[at : at + cut] for at in range(0, len(data), cut)]


def test_ids_have_the_shape_of_a_uuid_and_never_repeat() -> None:
    ids = MessageIds(IDS)
    taken = [ids.take() for _ in range(1000)]
    assert len(set(taken)) == 1000
    assert {len(one) for one in taken} == {36}


@pytest.mark.parametrize("size", [0, 100, 255, 256, 70_000])
def test_a_request_has_the_frames_of_its_options(size: int) -> None:
    endpoint, broker = client()
    body, options = b"b" * size, CallOptions(b"mail")
    for call_id in (b"id-1", b"id-2"):  # the second time by what was prepared for the first
        endpoint.request(call_id, options, body)
        assert sent_by(endpoint, broker) == [[b"", b"eMQP/1.0", b"REQUEST", call_id, b"mail", b"reply-requested", body]]


def test_each_option_is_a_header() -> None:
    options = CallOptions(b"mail")
    options.wants_reply = False
    options.headers = b"x:1,y"
    options.is_guaranteed = True
    options.retries = 0
    options.timeout_ns = SECOND_NS // 2
    options.priority = 9
    options.delay_ns = 60 * SECOND_NS
    options.expires_ns = 0
    options.dedupe = b"key"
    endpoint, broker = client()
    endpoint.request(b"id-1", options, b"")
    headers = b"ack-requested,x:1,y,guarantee,retry-count:0,timeout:0.5,priority:9,delay:60,expires:0,dedupe:key"
    assert sent_by(endpoint, broker)[0][5] == headers


def test_a_call_that_is_its_own_key_has_its_id_among_the_headers() -> None:
    options = CallOptions(b"mail")
    options.dedupes_by_id = True
    endpoint, broker = client()
    endpoint.request(b"id-1", options, b"")
    endpoint.request(b"id-2", options, b"")
    assert [frames[5] for frames in sent_by(endpoint, broker)] == [
        b"reply-requested,dedupe:id-1",
        b"reply-requested,dedupe:id-2",
    ]


def test_what_is_asked_before_the_handshake_leaves_after_it() -> None:
    endpoint, broker = EmqpClientEndpoint(set_up()), ZmtpConnection(b"ROUTER")
    endpoint.ask_state(b"i", b"r")
    assert endpoint.data_to_send() == b""
    assert [frames[2] for frames in meet(endpoint, broker)] == [b"STATE"]


def test_questions_and_schedules_have_their_own_messages() -> None:
    head = [b"", b"eMQP/1.0"]
    endpoint, broker = client()
    options = CallOptions(b"q")
    options.priority = 3
    endpoint.ask_state(b"i", b"r")
    endpoint.ask_cancel(b"i", b"r")
    endpoint.schedule(b"i", options, 60.0, b"", b"body")
    endpoint.unschedule(b"i", options, -1.0, b"* * * * *", b"body")
    assert sent_by(endpoint, broker) == [
        [*head, b"STATE", b"i", b"r"],
        [*head, b"CANCEL", b"i", b"r"],
        [*head, b"SCHEDULE", b"i", b"q", b"ack-requested,nohaste,keep-same,priority:3", b"60", b"body", b""],
        [*head, b"UNSCHEDULE", b"i", b"q", b"ack-requested", b"-1", b"body", b"* * * * *"],
    ]


def test_a_publisher_sends_topic_and_body_under_an_id() -> None:
    endpoint, broker = EmqpPublisherEndpoint(set_up()), ZmtpConnection(b"ROUTER")
    meet(endpoint, broker)
    endpoint.publish(b"topic", b"body")
    assert sent_by(endpoint, broker) == [[b"", b"eMQP/1.0", b"PUBLISH", IDS + b"000000000001", b"topic", b"body"]]


@CUTS
def test_a_client_reports_kept_answered_and_refused_and_nothing_else(cut: int) -> None:
    endpoint, _ = client()
    head = [b"", b"eMQP/1.0"]
    refusal = b'{"error":{"type":"QUEUE_FULL","message":"full"}}'
    failure = b'{"error":{"type":"ValueError","message":"no"}}'
    data = b"".join(
        encode_message(frames)
        for frames in [
            [*head, b"ACK", b"x", b"one"],
            [*head, b"REPLY", b"x", b"two"],  # handed over
            [*head, b"REPLY", b"x", b'{"value":1}', b"two"],
            [*head, b"HEARTBEAT", b"x", b"1.0"],
            [b"", b"eMQP/2.0", b"ACK", b"x", b"three"],
            [b"noise"],
            [b"", b"eMQP/1.7", b"ACK", b"x", b"four"],
            [*head, b"REPLY", b"x", refusal, b"five"],
            [*head, b"REPLY", b"x", failure, b"six"],  # a worker's
        ]
    )
    assert [report for piece in pieces(data, cut) for report in endpoint.receive(piece)] == [
        (KEPT, b"one", b""),
        (ANSWERED, b"two", b'{"value":1}'),
        (KEPT, b"four", b""),
        (REFUSED, b"five", refusal),
        (ANSWERED, b"six", failure),
    ]


@CUTS
def test_a_subscriber_reports_topics_and_bodies(cut: int) -> None:
    endpoint, broker = ZmtpSubscriberEndpoint(set_up()), ZmtpConnection(b"PUB")
    meet(endpoint, broker)
    data = encode_message([b"orders/1", b"{}"]) + encode_message([b"alone"]) + encode_message([b"orders/2", b"[]"])
    assert [one for piece in pieces(data, cut) for one in endpoint.receive(piece)] == [
        (b"orders/1", b"{}"),
        (b"orders/2", b"[]"),
    ]


@CUTS
def test_a_worker_reports_jobs_and_shows_the_rest(cut: int) -> None:
    endpoint, broker = worker()
    endpoint.serve([(10, b"mail")], 2)
    inform = meet(endpoint, broker)[0]
    assert inform[:3] == [b"", b"eMQP/1.0", b"INFORM"]
    assert inform[4:] == [b'[[10,"mail"]]', b"worker", b"bytes"]
    head = [b"", b"eMQP/1.0"]
    early = encode_message([*head, b"ACK", b"x", b"another's"])
    assert [job for piece in pieces(early, cut) for job in endpoint.receive(piece)] == []
    assert not endpoint.is_ready
    assert endpoint.data_to_send() == b""
    data = b"".join(
        encode_message(frames)
        for frames in [
            [*head, b"ACK", b"x", inform[3]],
            [*head, b"REQUEST", b"job-1", b"mail", b"reply-requested,timeout:30", b"body"],
            [*head, b"REQUEST", b"job-2", b"mail", b"reply-requested", b""],
            [*head, b"HEARTBEAT", b"x", b"1.0", b"dismissed"],
            [*head, b"DISCONNECT", b"x"],
            [*head, b"KBYE", b"x"],
        ]
    )
    jobs = [job for piece in pieces(data, cut) for job in endpoint.receive(piece)]
    assert jobs == [(b"job-1", 30.0, b"body"), (b"job-2", 0.0, b"")]
    assert endpoint.is_ready
    assert endpoint.is_dismissed
    assert endpoint.is_over
    assert [frames[2] for frames in sent_by(endpoint, broker)] == [b"READY", b"READY"]


def acknowledged(**changes: float) -> tuple[EmqpWorkerEndpoint, ZmtpConnection]:
    endpoint, broker = worker(**changes)
    endpoint.serve([(10, b"mail")], 0)
    inform = meet(endpoint, broker)[0]
    assert endpoint.receive(encode_message([b"", b"eMQP/1.0", b"ACK", b"x", inform[3]])) == []
    return endpoint, broker


def test_a_worker_sends_ready_behind_its_answers() -> None:
    endpoint, broker = acknowledged()
    endpoint.ready(2)
    endpoint.reply(b"job-1", b"value")
    sent = sent_by(endpoint, broker)
    assert [frames[2] for frames in sent] == [b"REPLY", b"READY", b"READY"]
    assert [len(frames) for frames in sent] == [6, 4, 4]
    assert sent[0][4:] == [b"value", b"job-1"]
    assert endpoint.data_to_send() == b""


def test_a_worker_that_leaves_sends_kbye_and_no_more_ready() -> None:
    endpoint, broker = acknowledged()
    endpoint.goodbye()
    endpoint.reply(b"job-1", b"value")
    endpoint.ready(1)
    assert [frames[2] for frames in sent_by(endpoint, broker)] == [b"KBYE", b"REPLY"]


def test_a_worker_that_does_not_serve_is_ready_to_answer_after_the_handshake() -> None:
    endpoint, broker = worker()
    assert meet(endpoint, broker) == []
    assert endpoint.is_ready
    endpoint.reply(b"job-1", b"value")
    endpoint.goodbye()
    assert [frames[2] for frames in sent_by(endpoint, broker)] == [b"REPLY"]


def test_a_worker_beats_at_the_configured_interval_and_gives_up_a_silent_broker() -> None:
    endpoint, broker = acknowledged(heartbeat_s=0.1, broker_lost_s=1.0)
    assert endpoint.beat_s == 0.1
    for tenth in range(1, 12):
        endpoint.beat(tenth / 10)
    assert not endpoint.is_over
    beats = sent_by(endpoint, broker)
    assert {frames[2] for frames in beats} == {b"HEARTBEAT"}
    assert [frames[4] for frames in beats[:2]] == [b"1000.200000", b"1000.300000"]
    endpoint.beat(1.2)
    assert endpoint.is_over
    assert endpoint.problem == "the broker was silent for 1 s"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        (b"", 0.0),
        (b"reply-requested", 0.0),
        (b"timeout:30", 30.0),
        (b"guarantee, Timeout: 0.5 ,x", 0.5),
        (b"dedupe:timeout:7", 0.0),
        (b"timeout:soon", 0.0),
        (b"timeout:-5", 0.0),
        (b"timeout:nan", 0.0),
        (b"timeout:inf", 0.0),
    ],
)
def test_the_time_a_job_may_take_is_read_from_its_headers(headers: bytes, seconds: float) -> None:
    assert timeout_s_of(headers) == seconds
