"""The socket kinds clients come with: REQ, DEALER without an identity, two DEALERs with one."""

from __future__ import annotations

import zmq

from tests.runtime.daemon import Daemon
from tests.runtime.peers import Client, Worker


def test_a_req_peer_that_wants_the_result_gets_the_result_alone(common: Daemon) -> None:
    with Client(common, zmq.REQ) as client, Worker(common, b"req") as worker:
        for _ in range(3):  # a REQ socket that got a second answer, or none, could not ask again
            request_id = client.request(b"req", b"reply-requested,ack-requested")
            worker.serve(1)
            frames = client.hear()
            assert frames[0] == b"REPLY"
            assert frames[2:] == [b'{"value":1}', request_id]


def test_a_req_peer_that_wants_nothing_gets_the_handover_alone(common: Daemon) -> None:
    with Client(common, zmq.REQ) as client, Worker(common, b"req-plain") as worker:
        for _ in range(3):
            request_id = client.request(b"req-plain")
            worker.serve(1)
            frames = client.hear()
            assert frames[0] == b"REPLY"
            assert frames[2:] == [request_id]


def test_a_req_peer_that_wants_an_ack_gets_the_ack_alone(common: Daemon) -> None:
    with Client(common, zmq.REQ) as client, Worker(common, b"req-ack") as worker:
        for _ in range(3):
            request_id = client.request(b"req-ack", b"ack-requested")
            worker.serve(1)
            assert client.hear()[::2] == [b"ACK", request_id]


def test_dealers_without_an_identity_each_get_their_own_result(common: Daemon) -> None:
    with Client(common) as one, Client(common) as two, Worker(common, b"anonymous", slots=2) as worker:
        first, second = one.request(b"anonymous", b"reply-requested"), two.request(b"anonymous", b"reply-requested")
        for _ in range(2):
            request_id, _ = worker.take()
            worker.answer(request_id, b'{"value":"%s"}' % request_id)
        assert two.result(second) == b'{"value":"%s"}' % second
        assert one.result(first) == b'{"value":"%s"}' % first


def test_two_dealers_with_one_identity_each_get_their_own_result(common: Daemon) -> None:
    with (
        Client(common, identity=b"twin") as one,
        Client(common, identity=b"twin") as two,
        Worker(common, b"twins", slots=4) as worker,
    ):
        asked = [(peer, peer.request(b"twins", b"reply-requested")) for peer in (one, two, one, two)]
        for _ in range(4):
            request_id, _ = worker.take()
            worker.answer(request_id, b'{"value":"%s"}' % request_id)
        for peer, request_id in asked:
            assert peer.result(request_id) == b'{"value":"%s"}' % request_id
        assert one.hears_nothing(0.05)
        assert two.hears_nothing(0.05)


def test_two_clients_that_use_the_same_message_id_each_get_their_own_result(common: Daemon) -> None:
    with Client(common) as one, Client(common) as two, Worker(common, b"same-id", slots=2) as worker:
        one.request(b"same-id", b"reply-requested", b"one", request_id=b"7")
        first, body_one = worker.take()
        two.request(b"same-id", b"reply-requested", b"two", request_id=b"7")
        second, body_two = worker.take()
        assert (body_one, body_two) == (b"one", b"two")
        assert first != second, "a worker must be able to tell them apart"
        worker.answer(second, b'{"value":"two"}')
        worker.answer(first, b'{"value":"one"}')
        assert one.result(b"7") == b'{"value":"one"}'
        assert two.result(b"7") == b'{"value":"two"}'


def test_a_client_that_comes_back_with_its_identity_gets_the_answer_it_waited_for(common: Daemon) -> None:
    with Worker(common, b"away") as worker:
        with Client(common, identity=b"traveller") as before:
            request_id = before.request(b"away", b"reply-requested")
            worker.take()
        with Client(common, identity=b"traveller") as after:
            after.keep(b"elsewhere")  # it is known again
            worker.answer(request_id)
            assert after.result(request_id) == b'{"value":1}'
