"""Many messages in one read: some of them have the next turn, none is lost, and their order stays."""

from __future__ import annotations

import socket

from dragoman.limits import READ_PIECE_SIZE
from dragoman.wire.zmtp.frames import encode_message
from tests.runtime.daemon import Daemon
from tests.runtime.peers import RawPeer, Worker
from tests.waiting import wait_for

VERSION = b"eMQP/1.0"


def request(number: int, queue: bytes, body: bytes = b"") -> bytes:
    return encode_message([b"", VERSION, b"REQUEST", b"%d" % number, queue, b"", body])


def test_what_a_client_sent_in_one_write_is_taken_in_its_order(common: Daemon) -> None:
    count = 40 * READ_PIECE_SIZE // len(request(1000, b"breath"))
    with RawPeer(common, "emqp.client") as client:
        client.greet(identity=b"breath")
        client.socket.sendall(b"".join(request(1000 + number, b"breath") for number in range(count)))
        wait_for(
            "all of it", lambda: common.ask("queue_tallies", queue="breath")["queues"][0]["waiting"] == count, 60.0
        )
    with Worker(common, b"breath", slots=200) as worker:
        assert [worker.take()[0] for _ in range(200)] == [b"%d" % (1000 + number) for number in range(200)]


def test_what_stands_behind_a_costly_question_is_answered_after_it(common: Daemon) -> None:
    with RawPeer(common, "emqp.admin") as asker:
        asker.greet(identity=b"asker")
        question = encode_message([b"", VERSION, b"STATUS", b"1"])
        asker.socket.sendall(question * 20 + request(7, b"behind") + question)
        asker.hear_text(b"REPLY")
        wait_for("the request", lambda: "behind" in str(common.ask("queues", prefix="behind")))


def test_everything_that_a_client_sent_before_it_left_is_read(common: Daemon) -> None:
    count = 10 * READ_PIECE_SIZE // len(request(1000, b"gone"))
    with RawPeer(common, "emqp.client") as client:
        client.greet(identity=b"gone")
        client.hear_text(b"READY")
        question = encode_message([b"", VERSION, b"STATE", b"1", b"none"])
        words = [request(1000 + number, b"gone") + (question if number % 100 == 0 else b"") for number in range(count)]
        client.socket.sendall(b"".join(words))
        client.socket.shutdown(socket.SHUT_WR)
        wait_for("all of it", lambda: common.ask("queue_tallies", queue="gone")["queues"][0]["waiting"] == count, 60.0)


def test_a_fault_behind_a_costly_question_ends_the_connection_after_it(common: Daemon) -> None:
    with RawPeer(common, "emqp.admin") as peer:
        peer.greet(identity=b"faulty")
        question = encode_message([b"", VERSION, b"STATUS", b"1"])
        peer.socket.sendall(question * 3 + request(9, b"before the fault") + b"\xff" * 100)
        assert peer.is_ended()
    wait_for("the request", lambda: "before the fault" in str(common.ask("queues", prefix="before")))
