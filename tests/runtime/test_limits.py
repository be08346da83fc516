"""What a peer may take from the broker, and that nobody else pays for one who takes too much."""

from __future__ import annotations

import pytest

from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import SOCKET_TYPES, ZMTP_LISTENERS, Daemon
from tests.runtime.peers import Client, RawPeer, Worker, new_id, round_trip_ms
from tests.waiting import wait_for
from tests.wire.zmtp.dialogue import opening

MB = 1_000_000


def test_connections_beyond_the_limit_are_closed_until_another_one_ends(new_broker: NewBroker) -> None:
    broker = new_broker("limits.connections_max=2").start()
    with RawPeer(broker, "emqp.client") as first, RawPeer(broker, "emqp.worker") as second:
        first.greet()
        second.greet()
        assert first.socket.recv(64)
        assert second.socket.recv(64)
        with RawPeer(broker, "emqp.admin") as third:
            assert third.is_ended()
        first.close()
        wait_for("room", lambda: broker.ask("status")["connections"] == 1)
        with Client(broker) as client:
            client.keep(b"room")
    assert broker.lines("connection refused")[0]["code"] == "TOO_MANY_CONNECTIONS"


def test_few_file_descriptors_bound_the_connections_and_the_journal_keeps_its_own(new_broker: NewBroker) -> None:
    broker = new_broker(before=("sh", "-c", 'ulimit -n 100; exec "$@"', "sh")).start()
    assert broker.lines()[0]["connections_possible"] == 25
    peers = [RawPeer(broker, "emqp.client") for _ in range(60)]
    try:
        wait_for("all to be admitted or refused", lambda: broker.ask("status")["connections"] == 25)
        for peer in peers[:35]:
            assert peer.is_ended(), "the oldest go first: none has finished its handshake"
        peers[-1].greet()
        peers[-1].say(b"REQUEST", b"kept", b"jobs", b"ack-requested", b"{}")
        peers[-1].hear_text(b"ACK")
        assert broker.ask("status")["journal"]["trouble"] == ""
    finally:
        for peer in peers:
            peer.close()


def test_a_peer_that_broke_its_protocol_and_does_not_read_is_not_kept_for_ever(new_broker: NewBroker) -> None:
    broker = new_broker("limits.handshake_s=0.5").start()
    with RawPeer(broker, "emqp.worker", receive_buffer=4096) as deaf, Client(broker) as client:
        deaf.greet()
        deaf.inform(b"unread", slots=500)
        wait_for("the worker", lambda: broker.ask("workers")["workers"])
        for _ in range(500):
            client.request(b"unread", b"ack-requested", b"x" * 20_000)
        for _ in range(500):
            client.hear_word(b"ACK")
        assert broker.ask("status")["connections"] == 2
        deaf.socket.sendall(b"\xff" * 100)
        wait_for("it to be gone", lambda: broker.ask("status")["connections"] == 1)
        assert broker.lines("peer fault")


def test_a_connection_that_does_not_finish_its_handshake_is_closed(new_broker: NewBroker) -> None:
    broker = new_broker("limits.handshake_s=0.5").start()
    with Client(broker) as client:
        client.keep(b"before")
        silent = [RawPeer(broker, listener) for listener in ZMTP_LISTENERS]
        half = [RawPeer(broker, listener) for listener in ZMTP_LISTENERS]
        for peer in half:
            peer.socket.sendall(opening(30, b"DEALER")[:40])
        for peer in silent + half:
            with peer:
                assert peer.is_ended()
        client.keep(b"after")
    assert broker.lines("no handshake in time")[0]["code"] == "HANDSHAKE_TIMEOUT"


def test_a_connection_that_finished_it_may_be_silent_for_as_long_as_it_likes(new_broker: NewBroker) -> None:
    broker = new_broker("limits.handshake_s=0.2").start()
    with RawPeer(broker, "emqp.client") as quiet, RawPeer(broker, "emqp.client") as unfinished:
        quiet.greet()
        assert unfinished.is_ended(), "the sweep has passed both"
        quiet.say(b"REQUEST", new_id(), b"late", b"ack-requested", b"{}")
        quiet.hear_text(b"ACK")


@pytest.mark.long
def test_a_message_of_100_mb_crosses_both_ways_under_a_raised_limit(new_broker: NewBroker) -> None:
    broker = new_broker("limits.message_size_max=120MB").start()
    body = bytes(range(256)) * (100 * MB // 256)
    with Client(broker) as client, Worker(broker, b"huge") as worker:
        request_id = client.request(b"huge", b"reply-requested", body)
        taken_id, taken = worker.take()
        assert taken == body
        worker.answer(taken_id, taken)
        del taken
        assert client.result(request_id) == body
        assert round_trip_ms(client, _more(worker), b"huge") < 5000


def _more(worker: Worker) -> Worker:
    worker.ready()
    return worker


def test_large_answers_in_a_row_do_not_cut_off_a_client_that_reads(new_broker: NewBroker) -> None:
    broker = new_broker("limits.out_buffer_max=8MB").start()
    value = b'{"value":"%s"}' % (b"x" * 20 * MB)
    with Client(broker, identity=b"reader") as client, Worker(broker, b"large", slots=3) as worker:
        asked = [client.request(b"large", b"reply-requested") for _ in range(3)]
        for _ in asked:
            request_id, _ = worker.take()
            worker.answer(request_id, value)
        for request_id in asked:
            assert client.result(request_id) == value
    assert not broker.lines("peer does not read, connection ended")


@pytest.mark.parametrize("listener", ZMTP_LISTENERS)
def test_a_message_over_the_limit_ends_its_peer_before_it_is_buffered(common: Daemon, listener: str) -> None:
    with Client(common) as client, RawPeer(common, listener) as peer:
        peer.greet(SOCKET_TYPES.get(listener, b"DEALER"))
        peer.socket.sendall(b"\x02" + (10**15).to_bytes(8, "big") + b"the first bytes")
        assert peer.is_ended()
        client.keep(b"others")


def test_one_who_never_reads_its_answers_is_cut_off_and_memory_stays_bounded(new_broker: NewBroker) -> None:
    broker = new_broker("limits.out_buffer_max=2MB", "limits.message_size_max=1MB").start()
    with RawPeer(broker, "emqp.client", receive_buffer=4096) as client, Worker(broker, b"big", slots=1000) as worker:
        client.greet()
        for _ in range(400):
            client.say(b"REQUEST", new_id(), b"big", b"reply-requested", b"{}")
        held = [worker.take()[0] for _ in range(400)]
        before = broker.memory_size()
        for request_id in held:
            worker.answer(request_id, b'{"value":"%s"}' % (b"x" * 300_000))
        broker.wait_line("peer does not read, connection ended")
        wait_for("all settled", lambda: broker.ask("queues")["queues"][0]["leased"] == 0)
        assert broker.memory_size() - before < 60 * MB, "120 MB of answers went to one who does not read"
        with Client(broker) as other:
            other.keep(b"others")


def test_with_few_bytes_uncommitted_at_a_time_a_flood_is_slower_and_still_kept_whole(new_broker: NewBroker) -> None:
    broker = new_broker("limits.uncommitted_max=1KiB", durability="disk").start()
    with Client(broker) as client:
        asked = {client.request(b"flood", b"ack-requested", b"x" * 1000) for _ in range(500)}
        kept = {client.hear_word(b"ACK")[2] for _ in range(500)}
    assert kept == asked
