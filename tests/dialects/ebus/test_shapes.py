"""Both words, both shapes, both ports; and what is no message of ebus at all."""

from __future__ import annotations

import pytest

from tests.dialects.ebus.in_memory import EbusBroker, EbusPeer

PORTS = ["ebus.client", "ebus.worker"]


@pytest.mark.parametrize("word", [b"REQ", b"REQUEST"])
@pytest.mark.parametrize(
    ("port", "envelope"), [*[("ebus.client", n) for n in range(3)], ("ebus.worker", 1), ("ebus.worker", 2)]
)
def test_a_client_is_understood_and_answered_in_its_own_shape(port: str, word: bytes, envelope: int) -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    client = EbusPeer(broker, port, b"client")
    empty = [b""] * envelope
    client.raw(*empty, b"EBC01", word, b"hello", b"rid-1", b"data")
    worker.tell(b"REPLY", worker.job()[0], b"answer")
    client.raw(*empty, b"EBC01", word, b"hello", b"rid-2", b"data")
    worker.tell(b"REJECT", worker.job()[0], b"why")
    client.raw(*empty, b"EBC01", word, b"hello", b"rid-2", b"data")
    assert client.take_all() == [
        [*empty, b"EBW01", b"REPLY", b"rid-1", b"answer"],
        [*empty, b"EBW01", b"REJECT", b"rid-2", b"why"],
        [*empty, b"EBW01", b"REJECT", b"rid-2", b"why"],
    ]
    client.raw(*empty, b"EBC01", b"PING")
    assert client.heard == [[*empty, b"EBW01", b"HEARTBEAT"]]


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("envelope", [0, 1, 2])
def test_a_worker_is_understood_and_answered_in_its_own_shape(port: str, envelope: int) -> None:
    broker = EbusBroker()
    client = broker.ebus_client()
    worker = EbusPeer(broker, port, b"worker")
    empty = [b""] * envelope
    worker.raw(*empty, b"EBW01", b"READY", b"null", b"hello")
    client.ask(b"hello", b"rid-1", b"data", b"700")
    (frames,) = worker.take_all()
    rid = frames[envelope + 2]
    assert frames == [*empty, b"EBC01", b"REQ", rid, b"data", b"700"]
    client.tell(b"CANCEL", b"hello", b"rid-1")
    assert worker.take_all() == [[*empty, b"EBC01", b"CANCEL", rid]]
    worker.raw(*empty, b"EBW01", b"PING")
    assert worker.heard == [[*empty, b"EBC01", b"HEARTBEAT"]]


def test_the_documents_worker_asks_as_a_client_on_its_own_connection() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    worker.raw(b"", b"EBC01", b"REQUEST", b"hello", b"rid-1", b"data")
    rid, _ = worker.job()
    worker.tell(b"REPLY", rid, b"answer")
    assert worker.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"answer"]]
    assert worker.session.is_worker


def test_a_clients_signature_without_the_empty_frame_on_the_worker_port_is_a_wrong_sender() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    worker.raw(b"EBC01", b"REQ", b"hello", b"rid-1", b"data")
    assert worker.take_all() == [[b"EBC01", b"DISCONNECT", b"a worker signs EBW01"]]
    assert broker.is_finished(worker.session)
    assert broker.core.workers == {}


@pytest.mark.parametrize(("port", "answer"), [("ebus.client", b"EBW01"), ("ebus.worker", b"EBC01")])
@pytest.mark.parametrize("envelope", [0, 1])
def test_an_unknown_sender_is_sent_away_in_the_shape_it_came(port: str, answer: bytes, envelope: int) -> None:
    broker = EbusBroker()
    peer = EbusPeer(broker, port, b"peer")
    empty = [b""] * envelope
    peer.raw(*empty, b"EBX99", b"REQ", b"hello", b"rid-1")
    assert peer.take_all() == [[*empty, answer, b"DISCONNECT", b"unknown sender type"]]
    assert broker.is_finished(peer.session)


HOSTILE = [
    [b""],
    [b"", b""],
    [b"", b"", b""],
    [b"", b"", b"", b"EBC01", b"PING"],
    [b"EBC01"],
    [b"EBW01"],
    [b"", b"EBC01"],
    [b"", b"EBC01", b""],
    [b"", b"EBC01", b"REQ"],
    [b"", b"EBC01", b"REQ", b"hello"],
    [b"", b"EBC01", b"REQ", b"", b"rid"],
    [b"", b"EBC01", b"NONSENSE", b"x"],
    [b"", b"EBC01", b"READY", b"null", b"hello"],
    [b"", b"EBC01", b"REPLY", b"1", b"x"],
    [b"EBW01", b""],
    [b"EBW01", b"REQ", b"hello", b"rid", b"data"],
    [b"\xff" * 300, b"\x00"],
    [b"x"] * 60,
]


@pytest.mark.parametrize("port", PORTS)
@pytest.mark.parametrize("frames", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_message_costs_its_sender_the_connection_and_nobody_else_anything(
    port: str, frames: list[bytes]
) -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    hostile = EbusPeer(broker, port, b"hostile")
    hostile.raw(*frames)
    (heard,) = hostile.take_all()
    assert heard[-2] == b"DISCONNECT"
    assert heard[-1]
    assert broker.is_finished(hostile.session)
    client.ask(b"hello", b"rid-1")
    worker.tell(b"REPLY", worker.job()[0], b"answer")
    assert len(client.take_all()) == 1


def test_an_answer_without_a_rid_costs_the_worker_its_connection_and_its_requests_run_elsewhere() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    rid, _ = worker.job()
    worker.tell(b"REPLY")
    assert worker.take_all() == [[b"EBC01", b"DISCONNECT", b"an answer needs a rid"]]
    assert broker.ebus_worker(identity=b"second").job()[0] == rid


def test_an_answer_without_data_is_null() -> None:
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    client.ask(b"hello", b"rid-1")
    worker.tell(b"REPLY", worker.job()[0])
    assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-1", b"null"]]


def test_a_req_socket_gets_one_answer_to_each_question() -> None:
    broker = EbusBroker()
    worker = broker.ebus_worker()
    client = EbusPeer(broker, "ebus.client", b"", b"REQ")
    for number in range(3):
        client.raw(b"", b"EBC01", b"REQ", b"hello", b"rid-%d" % number, b"data")
        worker.tell(b"REPLY", worker.job()[0], b"answer")
        broker.pass_time(0.7)
        assert client.take_all() == [[b"", b"EBW01", b"REPLY", b"rid-%d" % number, b"answer"]]


def test_a_peer_of_zmtp_1_is_served() -> None:
    """Its frames have another form, so nothing prepared fits it."""
    broker = EbusBroker()
    worker, client = broker.ebus_worker(), broker.ebus_client()
    session = client.session
    session.zmtp.is_v1 = True  # type: ignore[attr-defined]
    session.set_plain()  # type: ignore[attr-defined]
    client.ask(b"hello", b"rid-1")
    worker.tell(b"REPLY", worker.jobs()[0][0], b"answer")
    assert session.take_all() == b"\x01\x01\x06\x01EBW01\x06\x01REPLY\x06\x01rid-1\x07\x00answer"
