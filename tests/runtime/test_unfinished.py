"""Messages that are cut short, more than their share of memory allows: who goes on sends all of it, who does not makes room."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest

from dragoman.wire.risp.commands import CONSUMING, PAYLOAD
from dragoman.wire.zmtp.frames import encode_message
from tests.dialects.rq.spelling import risp
from tests.runtime.conftest import NewBroker
from tests.runtime.daemon import Daemon
from tests.runtime.peers import VERSION, Client, RawPeer, Worker, round_trip_ms
from tests.waiting import wait_for

BUDGET = 64_000_000
LARGEST = BUDGET // 8
SETTING = f"limits.memory_max={BUDGET}"
WAIT_S = 60.0


def large_request(body_size: int = LARGEST - 1000) -> bytes:
    return encode_message([b"", VERSION, b"REQUEST", b"1", b"large", b"", b"x" * body_size])


@contextmanager
def sending(broker: Daemon, data: bytes, count: int, listener: str = "emqp.client") -> Iterator[list[RawPeer]]:
    """So many peers that each send these bytes, all at once, each as fast as it is read."""
    peers = [RawPeer(broker, listener) for _ in range(count)]
    for peer in peers:
        peer.socket.settimeout(WAIT_S)
        if listener != "rq":
            peer.greet()
    threads = [threading.Thread(target=send_or_fail, args=(peer, data), daemon=True) for peer in peers]
    for thread in threads:
        thread.start()
    try:
        yield peers
    finally:
        for peer in peers:
            peer.close()
        for thread in threads:
            thread.join()


def send_or_fail(peer: RawPeer, data: bytes) -> None:
    try:
        peer.socket.sendall(data)
    except OSError:
        return  # it was cut off, which the test sees by the broker's own count


@contextmanager
def trickling(broker: Daemon, count: int) -> Iterator[None]:
    """So many peers that have sent a good part of a largest message and add some bytes to it now and then."""
    is_over = threading.Event()
    data = large_request()
    with ExitStack() as stack:
        peers = [stack.enter_context(RawPeer(broker, "emqp.client")) for _ in range(count)]
        for peer in peers:
            peer.greet()
            peer.socket.settimeout(0.001)
        sent = dict.fromkeys(peers, 0)

        def trickle() -> None:
            while not is_over.wait(0.05):
                for peer in peers:
                    step = 400_000 if sent[peer] < 400_000 else 100
                    try:
                        sent[peer] += peer.socket.send(data[sent[peer] : sent[peer] + step])
                    except OSError:
                        continue  # it is not read at the moment, or was cut off

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        wait_for("them to be too many", lambda: memory(broker)["unfinished"] > LARGEST)
        try:
            yield
        finally:
            is_over.set()
            thread.join()


def memory(broker: Daemon) -> dict[str, int]:
    found: dict[str, int] = broker.ask("status")["memory"]
    return found


def wait_accepted(broker: Daemon, count: int) -> None:
    wait_for(f"{count} messages", lambda: broker.ask("counters")["accepted"] >= count, WAIT_S)


@pytest.mark.parametrize("listener", ["emqp.client", "rq"])
def test_messages_of_the_largest_size_from_many_clients_at_once_are_all_read(
    new_broker: NewBroker, listener: str
) -> None:
    broker = new_broker(SETTING).start()
    data = large_request()
    if listener == "rq":
        data = risp("CLEAR ID=1 QUEUE=large") + payload(b"x" * (LARGEST - 1000)) + risp("REQUEST")
    most = 0
    with sending(broker, data, 8, listener):
        while broker.ask("counters")["accepted"] < 8:
            found = memory(broker)
            most = max(most, found["unfinished"])
            assert found["unfinished_dropped"] == 0, broker.lines("peer fault")
    assert most <= 2.5 * LARGEST + 1_000_000, f"{most} bytes of unfinished messages"
    wait_for("all to be read again", lambda: memory(broker)["paused"] == 0)


def test_a_worker_is_read_while_clients_wait_for_their_turn(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    with Worker(broker, b"small") as worker, Client(broker) as client, trickling(broker, 50):
        for _ in range(5):
            assert round_trip_ms(client, worker, b"small") < 5000
        request_id = client.request(b"small", b"reply-requested")
        taken, _ = worker.take()
        worker.answer(taken, b'{"value":"%s"}' % (b"x" * (LARGEST - 1000)))
        assert len(client.result(request_id)) > LARGEST - 1000


def test_an_honest_sender_gets_through_among_many_that_trickle(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    with trickling(broker, 50), Client(broker) as client:
        for _ in range(3):
            began_s = time.monotonic()
            client.keep(b"large", b"x" * (LARGEST - 1000))
            assert time.monotonic() - began_s < 15
        assert memory(broker)["unfinished"] <= 2.5 * LARGEST + 1_000_000


@pytest.mark.long
def test_of_many_messages_that_stall_no_more_than_their_share_is_kept(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    with sending(broker, large_request()[:-1000], 200), Client(broker) as client, Worker(broker, b"small") as worker:
        for _ in range(10):
            assert round_trip_ms(client, worker, b"small") < 5000
        wait_for("most of them to end", lambda: memory(broker)["unfinished_dropped"] >= 190, WAIT_S)
        wait_for("the rest to fit", lambda: memory(broker)["unfinished"] <= LARGEST, WAIT_S)
        client.keep(b"large", b"x" * (LARGEST - 1000))
        assert {line["code"] for line in broker.lines("peer fault")} == {"UNFINISHED_TOO_MUCH"}


def test_no_byte_behind_the_one_that_ended_a_connection_is_read_as_a_command(new_broker: NewBroker) -> None:
    broker = new_broker("limits.memory_max=16MiB").start()
    body = (bytes(1000) + risp("CLEAR QUEUE=forged CONSUME")) * 2000
    assert len(body) < 2 << 20, "it is allowed"
    with ExitStack() as stack:
        nodes = [stack.enter_context(RawPeer(broker, "rq")) for _ in range(6)]
        for number, node in enumerate(nodes):
            node.socket.sendall(risp(f"CLEAR QUEUE=q{number} CONSUME"))  # so that it is never paused
            node.hear_text(bytes([CONSUMING]))
        for node in nodes:
            node.socket.sendall(risp("CLEAR ID=1 QUEUE=large") + payload(body)[: -len(body) // 8])
        wait_for("the fault", lambda: broker.lines("peer fault"))
        for node in nodes:
            send_or_fail(node, payload(body)[-len(body) // 8 :] + risp("REQUEST"))
        with Client(broker) as client:
            client.keep(b"last")
    assert {line["code"] for line in broker.lines("peer fault")} == {"UNFINISHED_TOO_MUCH"}
    assert "forged" not in [queue["queue"] for queue in broker.ask("queues")["queues"]]


def test_what_an_rq_source_may_repeat_is_forgotten_when_others_need_the_memory(new_broker: NewBroker) -> None:
    broker = new_broker(SETTING).start()
    asks = risp("CLEAR ID=1 QUEUE=large") + payload(b"x" * (LARGEST - 1000)) + risp("REQUEST")
    with sending(broker, asks, 4, "rq") as sources:
        wait_accepted(broker, 4)
        sources[0].socket.sendall(risp("CLEAR ID=2 QUEUE=small PAYLOAD=x REQUEST REQUEST"))
        wait_accepted(broker, 6)
        sources[1].socket.sendall(risp("ID=2 REQUEST"))
        assert sources[1].is_ended()
    assert [line["code"] for line in broker.lines("peer fault")] == ["REPEATED_TOO_OFTEN"]


def payload(body: bytes) -> bytes:
    return bytes([PAYLOAD]) + len(body).to_bytes(4, "big") + body
