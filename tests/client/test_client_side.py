"""The compiled codec of the client's and the worker's end, against frames and any cut of the stream."""

from __future__ import annotations

import pytest

from dragoman.dialects.emqp.client_side import (
    ANSWERED,
    KEPT,
    ClientSide,
    MessageIds,
    RequestForm,
    SubscriberSide,
    encode_publish,
    encode_question,
    encode_schedule,
)
from dragoman.dialects.emqp.worker_side import WorkerSide, timeout_s_of
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message

IDS = b"00000000-0000-4000-a000-"
CUTS = pytest.mark.parametrize("cut", [1, 7, 10_000])


def meet(ours: ZmtpConnection, theirs: ZmtpConnection) -> None:
    to_ours, to_theirs = theirs.greeting(), ours.greeting()
    while to_ours or to_theirs:
        assert ours.receive(to_ours) == []
        assert theirs.receive(to_theirs) == []
        to_ours, to_theirs = theirs.take_outgoing(), ours.take_outgoing()
    assert ours.is_ready


def decoded(data: bytes) -> list[list[bytes]]:
    server, client = ZmtpConnection(b"ROUTER", True), ZmtpConnection(b"DEALER", False)
    meet(client, server)
    return server.receive(data)


def pieces(data: bytes, cut: int) -> list[bytes]:
    return [data[at : at + cut] for at in range(0, len(data), cut)]


def test_ids_have_the_shape_of_a_uuid_and_never_repeat() -> None:
    ids = MessageIds(IDS)
    taken = [ids.take() for _ in range(1000)]
    assert len(set(taken)) == 1000
    assert {len(one) for one in taken} == {36}


@pytest.mark.parametrize("size", [0, 100, 255, 256, 70_000])
def test_a_request_form_says_what_the_frames_say(size: int) -> None:
    body = b"b" * size
    form = RequestForm(b"mail", b"reply-requested")
    assert decoded(form.encode(b"id-1", body)) == [
        [b"", b"eMQP/1.0", b"REQUEST", b"id-1", b"mail", b"reply-requested", body]
    ]
    assert decoded(form.encode_deduped(b"id-1", body))[0][5] == b"reply-requested,dedupe:id-1"


def test_the_other_messages_of_a_client() -> None:
    head = [b"", b"eMQP/1.0"]
    assert decoded(encode_publish(b"i", b"topic", b"body")) == [[*head, b"PUBLISH", b"i", b"topic", b"body"]]
    assert decoded(encode_question(b"STATE", b"i", b"r")) == [[*head, b"STATE", b"i", b"r"]]
    said = decoded(encode_schedule(True, b"i", b"q", b"h", b"60", b"body", b""))
    assert said == [[*head, b"SCHEDULE", b"i", b"q", b"h", b"60", b"body", b""]]
    said = decoded(encode_schedule(False, b"i", b"q", b"h", b"-1", b"body", b"* * * * *"))
    assert said == [[*head, b"UNSCHEDULE", b"i", b"q", b"h", b"-1", b"body", b"* * * * *"]]


@CUTS
def test_a_client_reports_kept_and_answered_and_nothing_else(cut: int) -> None:
    side, broker = ClientSide(b"me", 1000), ZmtpConnection(b"ROUTER", True)
    meet(side.zmtp, broker)
    head = [b"", b"eMQP/1.0"]
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
        ]
    )
    said = [word for piece in pieces(data, cut) for word in side.receive(piece)]
    assert said == [(KEPT, b"one", b""), (ANSWERED, b"two", b'{"value":1}'), (KEPT, b"four", b"")]


@CUTS
def test_a_subscriber_reports_topics_and_bodies(cut: int) -> None:
    side, broker = SubscriberSide(1000), ZmtpConnection(b"PUB", True)
    meet(side.zmtp, broker)
    data = encode_message([b"orders/1", b"{}"]) + encode_message([b"alone"]) + encode_message([b"orders/2", b"[]"])
    assert [one for piece in pieces(data, cut) for one in side.receive(piece)] == [
        (b"orders/1", b"{}"),
        (b"orders/2", b"[]"),
    ]


@CUTS
def test_a_worker_reports_jobs_and_shows_the_rest(cut: int) -> None:
    side, broker = WorkerSide(b"me", 1000, MessageIds(IDS)), ZmtpConnection(b"ROUTER", True)
    meet(side.zmtp, broker)
    side.inform(b'[[10,"mail"]]')
    inform = broker.receive(side.take_out())[0]
    assert inform[:3] == [b"", b"eMQP/1.0", b"INFORM"]
    assert inform[4:] == [b'[[10,"mail"]]', b"worker", b"bytes"]
    head = [b"", b"eMQP/1.0"]
    early = encode_message([*head, b"ACK", b"x", b"another's"])
    assert [job for piece in pieces(early, cut) for job in side.receive(piece)] == []
    assert not side.is_acknowledged
    data = b"".join(
        encode_message(frames)
        for frames in [
            [*head, b"ACK", b"x", inform[3]],
            [*head, b"REQUEST", b"job-1", b"mail", b"reply-requested,timeout:30", b"body"],
            [*head, b"REQUEST", b"job-2", b"mail", b"reply-requested", b""],
            [*head, b"DISCONNECT", b"x"],
            [*head, b"KBYE", b"x"],
        ]
    )
    jobs = [job for piece in pieces(data, cut) for job in side.receive(piece)]
    assert jobs == [(b"job-1", 30.0, b"body"), (b"job-2", 0.0, b"")]
    assert side.is_acknowledged
    assert side.is_sent_away
    assert side.is_broker_leaving


def test_a_worker_says_ready_reply_heartbeat_and_goodbye() -> None:
    side = WorkerSide(b"me", 1000, MessageIds(IDS))
    side.ready(2)
    side.reply(b"job-1", b"value")
    side.heartbeat(b"1.5")
    side.goodbye()
    said = decoded(side.take_out())
    assert [frames[2] for frames in said] == [b"READY", b"READY", b"REPLY", b"HEARTBEAT", b"KBYE"]
    assert [len(frames) for frames in said] == [4, 4, 6, 5, 4]
    assert said[2][4:] == [b"value", b"job-1"]
    assert side.take_out() == b""


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
