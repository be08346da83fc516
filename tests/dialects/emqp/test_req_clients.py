"""A REQ peer waits for exactly one answer per request: never none where one is due, never two."""

from __future__ import annotations

import pytest

from dragoman.wire.zmtp.frames import encode_message
from tests.core.harness import End, InMemoryBroker
from tests.dialects.emqp.ready_peers import JOB, error_type, ready_worker


def req(broker: InMemoryBroker, identity: bytes = b"req") -> End:
    return broker.connect("emqp.client", identity, b"REQ")


def ask(peer: End, *frames: bytes) -> None:
    """As the document draws it behind a REQ socket: its delimiter, then the empty frame of the protocol."""
    peer.give(encode_message([b"", b"", b"eMQP/1.0", *frames]))


def test_a_req_client_that_asks_for_the_result_gets_only_that() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = req(broker)
    ask(client, b"REQUEST", b"1", b"mail", b"reply-requested,ack-requested", JOB)
    assert client.heard == []
    worker.reply(b"1", b"v")
    client.hear()
    assert [frames[:4] + frames[5:] for frames in client.heard] == [[b"", b"", b"eMQP/1.0", b"REPLY", b"v", b"1"]]


def test_a_req_client_that_asks_for_nothing_gets_the_hand_over() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = req(broker)
    ask(client, b"REQUEST", b"1", b"mail", b"", JOB)
    worker.reply(b"1", b"v")
    client.hear()
    assert [frames[3:4] + frames[5:] for frames in client.heard] == [[b"REPLY", b"1"]]


def test_a_req_client_that_asks_for_an_acknowledgement_gets_only_that() -> None:
    broker = InMemoryBroker()
    worker = ready_worker(broker)
    client = req(broker)
    ask(client, b"REQUEST", b"1", b"mail", b"ack-requested", JOB)
    worker.reply(b"1", b"v")
    client.hear()
    assert [frames[3:4] + frames[5:] for frames in client.heard] == [[b"ACK", b"1"]]


def test_a_req_client_whose_request_ends_before_any_hand_over_is_notified() -> None:
    broker = InMemoryBroker()
    client = req(broker)
    ask(client, b"REQUEST", b"1", b"mail", b"expires:2", JOB)
    broker.pass_time(3)
    client.hear()
    (frames,) = client.heard
    assert frames[6] == b"1"
    assert error_type(frames[5]) == "PAST_EXPIRY"


def test_a_refused_req_client_hears_it_once() -> None:
    broker = InMemoryBroker()
    client = req(broker)
    ask(client, b"REQUEST", b"1", b"mail", b"priority:11", JOB)
    (frames,) = client.heard
    assert error_type(frames[5]) == "BAD_HEADER"


def test_a_req_client_that_leaves_out_the_second_empty_frame_is_answered_in_kind() -> None:
    broker = InMemoryBroker()
    ready_worker(broker)
    client = req(broker)
    client.give(encode_message([b"", b"eMQP/1.0", b"REQUEST", b"1", b"mail", b"", JOB]))
    client.hear()
    assert [frames[:3] + frames[4:] for frames in client.heard] == [[b"", b"eMQP/1.0", b"REPLY", b"1"]]


@pytest.mark.parametrize("headers", [b"dedupe:k", b"dedupe:k,reply-requested", b"dedupe:k,ack-requested"])
def test_a_req_client_that_repeats_itself_from_a_new_connection_gets_one_answer(headers: bytes) -> None:
    broker = InMemoryBroker()
    first = req(broker, b"first")
    ask(first, b"REQUEST", b"1", b"mail", headers, JOB)
    first.leave()
    again = req(broker, b"again")
    ask(again, b"REQUEST", b"1", b"mail", headers, JOB)
    worker = ready_worker(broker)
    for job in worker.jobs():
        worker.reply(job, b"v")
    again.hear()
    assert len(again.heard) == 1


def test_questions_of_a_req_client_get_one_answer() -> None:
    broker = InMemoryBroker()
    client = req(broker)
    ask(client, b"STATE", b"1", b"nosuch")
    ask(client, b"CANCEL", b"2", b"nosuch")
    ask(client, b"STATUS", b"3")
    assert [frames[3] for frames in client.heard] == [b"REPLY"] * 3
