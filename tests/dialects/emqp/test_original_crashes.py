"""What ends the original broker, said to ours while others work: each is answered, and nobody else notices."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import zmq

from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Peer, Worker, new_id, round_trip_ms

BYSTANDERS = b"bystanders"
ROUND_TRIP_MS = 5000


@pytest.fixture(autouse=True)
def bystanders(common: Daemon) -> Iterator[None]:
    """A client and a worker that are there before and after."""
    with Client(common) as client, Worker(common, BYSTANDERS) as worker:
        assert round_trip_ms(client, worker, BYSTANDERS) < ROUND_TRIP_MS
        yield
        assert round_trip_ms(client, worker, BYSTANDERS) < ROUND_TRIP_MS
    assert common.process.is_running()
    assert not [line for line in common.lines() if line["level"] in ("error", "critical")]


def test_the_documents_inform_of_five_frames_is_served(common: Daemon) -> None:
    with Peer(common, "emqp.worker") as worker, Client(common) as client:
        message_id = new_id()
        worker.say(b"INFORM", message_id, b"five")
        assert worker.hear_word(b"ACK")[2] == message_id
        worker.say(b"READY", new_id())
        request_id = client.request(b"five", b"reply-requested", b"[1]")
        assert worker.hear_word(b"REQUEST")[1:] == [request_id, b"five", b"reply-requested", b"[1]"]
        worker.say(b"REPLY", new_id(), b"done", request_id)
        assert client.result(request_id) == b"done"


def test_a_body_that_is_no_text_is_carried(common: Daemon) -> None:
    body = bytes(range(256))
    with Worker(common, b"binary") as worker, Client(common) as client:
        request_id = client.request(b"binary", b"reply-requested", body)
        assert worker.take() == (request_id, body)
        worker.answer(request_id, body[::-1])
        assert client.result(request_id) == body[::-1]


def test_a_binary_identity_is_accepted(common: Daemon) -> None:
    with (
        Worker(common, b"named", identity=b"\xff\xfe\x80w") as worker,
        Client(common, zmq.DEALER, b"\xff\x00\xc3c") as client,
    ):
        assert round_trip_ms(client, worker, b"named") < ROUND_TRIP_MS


def test_a_workers_disconnect_means_that_it_leaves(common: Daemon) -> None:
    """It is given nothing new; what it holds it may still answer, and what it leaves with runs elsewhere."""
    with Client(common) as client, Worker(common, b"leaving", slots=3) as leaving:
        held = [client.request(b"leaving", b"reply-requested") for _ in range(2)]
        assert [leaving.take()[0] for _ in held] == held
        leaving.say(b"DISCONNECT", new_id())
        leaving.answer(held[0], b"last words")
        assert client.result(held[0]) == b"last words"
        new = client.request(b"leaving", b"reply-requested")
        with Worker(common, b"leaving") as other:
            assert other.serve(1) == [new]
            leaving.close()
            assert other.serve(1) == [held[1]]


def test_a_clients_disconnect_stops_nothing(common: Daemon) -> None:
    with Client(common) as client:
        client.say(b"DISCONNECT", new_id())
    with Client(common) as client:
        client.keep(b"kept-for-later")
    assert not common.lines("draining")
