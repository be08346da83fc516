"""Garbage, floods, stalls and silence: each costs the peer that makes it, and nobody else."""

from __future__ import annotations

import random
import socket
import threading

import pytest
import zmq

from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import LISTENERS, SOCKET_TYPES, Daemon
from tests.runtime.peers import VERSION, Client, Peer, RawPeer, Worker, new_id, round_trip_ms
from tests.waiting import wait_for
from tests.wire.zmtp.dialogue import opening, ready

MB = 1_000_000


def queue_counts(broker: Daemon, name: str) -> dict[str, int]:
    """Of a queue that nobody has named yet, zeros."""
    found = [item for item in broker.ask("queues")["queues"] if item["queue"] == name]
    return dict(found[0]) if found else {"waiting": 0, "leased": 0}


@pytest.mark.parametrize("listener", LISTENERS)
def test_garbage_on_a_port_harms_no_other_peer(common: Daemon, listener: str) -> None:
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    greeting = opening(30, SOCKET_TYPES.get(listener, b"DEALER"))
    with Client(common) as client, Worker(common, listener.encode()) as worker:
        for opener in (b"", b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", greeting[:10], greeting[:64], greeting):
            for _ in range(4):
                with RawPeer(common, listener) as peer:
                    try:
                        peer.socket.sendall(opener + rng.randbytes(rng.randint(1, 3000)))
                    except ConnectionError:
                        pass  # it was cut off while it still spoke
        assert round_trip_ms(client, worker, listener.encode()) < 5000, f"seed {seed}"
    assert not [line for line in common.lines() if line["level"] in ("error", "critical")], f"seed {seed}"


def test_frames_without_meaning_are_survived_by_the_peer_itself(common: Daemon) -> None:
    with Client(common) as client:
        for frames in ([b""], [b"x"], [b"", b"eMQP/9.0", b"REQUEST", b"id"], [b"", VERSION], [b"", VERSION, b"", b""]):
            client.socket.send_multipart(frames)
        for command in (b"REQUEST", b"REPLY", b"INFORM", b"SCHEDULE", b"PUBLISH", b"READY", b"CANCEL", b"\xff\xfe"):
            client.say(command, b"")
            client.say(command, b"\xff", b"\xff", b"\xff", b"\xff", b"\xff", b"\xff")
        client.keep(b"still-served")


def test_a_peer_that_speaks_byte_by_byte_is_understood(common: Daemon) -> None:
    request = encode_message([b"", VERSION, b"REQUEST", b"slowly", b"bytewise", b"ack-requested", b"{}"])
    with RawPeer(common, "emqp.client") as peer:
        peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for byte in opening(30, b"DEALER") + request:
            peer.socket.sendall(bytes([byte]))
        assert b"ACK" in peer.hear_text(b"slowly")


def test_a_worker_that_is_silent_without_closing_is_lost_and_its_job_runs_elsewhere(new_broker: NewBroker) -> None:
    broker = new_broker("emqp.heartbeat_s=0.3", "emqp.worker_lost_s=0.8").start()
    with Client(broker) as client, RawPeer(broker, "emqp.worker") as dead:
        dead.greet()
        dead.inform(b"mail", slots=1)
        wait_for("the worker", lambda: broker.ask("workers")["workers"])
        request_id = client.request(b"mail", b"reply-requested")
        assert client.hear_word(b"REPLY")[2] == request_id, "it was handed over"
        with Worker(broker, b"mail") as alive:
            assert alive.take()[0] == request_id
            alive.answer(request_id, b'{"value":"elsewhere"}')
            assert client.result(request_id) == b'{"value":"elsewhere"}'


def test_a_worker_that_says_heartbeat_keeps_its_job_however_long_it_takes(new_broker: NewBroker) -> None:
    broker = new_broker("emqp.heartbeat_s=0.2", "emqp.worker_lost_s=0.5").start()
    with Client(broker) as client, Worker(broker, b"long") as worker, Worker(broker, b"long", slots=0) as other:
        request_id = client.request(b"long", b"reply-requested")
        worker.take()
        other.ready()
        for _ in range(6):  # 1.2 s, by the broker's own beat
            worker.hear_word(b"HEARTBEAT")
            worker.say(b"HEARTBEAT", new_id(), b"1.0")
            other.say(b"HEARTBEAT", new_id(), b"1.0")
        worker.answer(request_id, b'{"value":"at last"}')
        assert client.result(request_id) == b'{"value":"at last"}'
        assert not [frames for frames in drain(other) if frames[0] == b"REQUEST"]


def drain(peer: Peer) -> list[list[bytes]]:
    heard = []
    while not peer.hears_nothing(0.01):
        heard.append(peer.hear())
    return heard


def test_a_worker_that_stops_reading_gets_no_more_work(common: Daemon) -> None:
    count = 1500
    with Client(common) as client, RawPeer(common, "emqp.worker", receive_buffer=4096) as stuck:
        stuck.greet()
        stuck.inform(b"unread", slots=count)
        wait_for("the worker", lambda: common.ask("workers", queue="unread")["workers"])
        for _ in range(count):
            client.request(b"unread", b"ack-requested", b"x" * 20_000)
        for _ in range(count):
            client.hear_word(b"ACK")
        counts = queue_counts(common, "unread")
        assert counts["leased"] > 0
        assert counts["waiting"] > count // 3, (
            "30 MB do not fit into what the kernel and the broker buffer for one peer"
        )
        stuck.close()
        wait_for("the return of its work", lambda: queue_counts(common, "unread")["leased"] == 0)
        with Worker(common, b"unread", slots=count) as worker:
            assert len({worker.take()[0] for _ in range(count)}) == count


def test_a_flood_from_one_client_does_not_starve_another(common: Daemon) -> None:
    flood = encode_message([b"", VERSION, b"REQUEST", b"f", b"flooded", b"", b"x" * 200]) * 500
    stop = threading.Event()
    with Client(common) as client, Worker(common, b"calm") as worker, RawPeer(common, "emqp.client") as flooder:
        flooder.greet()

        def pour() -> None:
            while not stop.is_set():
                flooder.socket.sendall(flood)

        thread = threading.Thread(target=pour, daemon=True)
        thread.start()
        try:
            wait_for("the flood", lambda: queue_counts(common, "flooded")["waiting"] > 1000)
            slowest_ms = max(round_trip_ms(client, worker, b"calm") for _ in range(20))
        finally:
            stop.set()
            thread.join()
    assert slowest_ms < 2000


def subscribe(broker: Daemon, topic: bytes) -> Peer:
    peer = Peer(broker, "emqp.subscribe", zmq.SUB)
    peer.socket.subscribe(topic)
    return peer


def wait_subscribed(publisher: Peer, *subscribers: Peer) -> None:
    """A subscription travels on its own: publish until it has arrived."""
    for subscriber in subscribers:
        while not subscriber.socket.poll(20):
            publisher.say(b"PUBLISH", new_id(), b"news/hello", b"")


def read_until_end(subscriber: Peer) -> list[bytes]:
    bodies: list[bytes] = []
    while not bodies or bodies[-1] != b"end":
        assert subscriber.socket.poll(60_000), f"{len(bodies)} came, the end did not"
        topic, body = subscriber.socket.recv_multipart()
        if topic != b"news/hello":
            bodies.append(body)
    return bodies


def test_news_larger_than_a_socket_buffer_reach_every_subscriber_that_reads(common: Daemon) -> None:
    with Peer(common, "emqp.publish") as publisher, subscribe(common, b"news/") as one, subscribe(common, b"") as two:
        wait_subscribed(publisher, one, two)
        for number in range(10):
            publisher.say(b"PUBLISH", new_id(), b"news/large", b"%d" % number + b"x" * 2 * MB)
        publisher.say(b"PUBLISH", new_id(), b"news/large", b"end")
        for subscriber in (one, two):
            assert [body[:1] for body in read_until_end(subscriber)] == [*(b"%d" % n for n in range(10)), b"e"]


def test_a_subscriber_that_does_not_read_loses_messages_and_nobody_else_does(new_broker: NewBroker) -> None:
    broker = new_broker("limits.out_buffer_max=4MB", "limits.message_size_max=1MB").start()
    with (
        Peer(broker, "emqp.publish") as publisher,
        subscribe(broker, b"news/") as reader,
        RawPeer(broker, "emqp.subscribe", receive_buffer=4096) as stuck,
    ):
        stuck.socket.sendall(opening(30, b"SUB")[:64] + ready(b"SUB") + encode_message([b"\x01news/"]))
        wait_subscribed(publisher, reader)
        before = broker.memory_size()
        for number in range(400):
            publisher.say(b"PUBLISH", new_id(), b"news/it", b"%d" % number + b"x" * 100_000)
            # No faster than the reader reads, so that only the other one is slow.
            topic, body = reader.socket.recv_multipart()
            while topic == b"news/hello":
                topic, body = reader.socket.recv_multipart()
            assert body.startswith(b"%d" % number)
        assert broker.memory_size() - before < 30 * MB, "40 MB of news"
        assert read_what_is_there(stuck) < 20 * MB, "half of it and more was not kept for one who does not read"


def read_what_is_there(peer: RawPeer) -> int:
    """How many bytes come without a pause."""
    peer.socket.settimeout(0.3)
    size = 0
    try:
        while data := peer.socket.recv(1 << 20):
            size += len(data)
    except TimeoutError:
        pass
    return size
