"""libzmq falls back to 2.0 and 1.0 when its peer is that old. So it can judge our old forms: what it sends to an old peer
must read well with us, and what we write for an old peer must read well with it.
"""

from __future__ import annotations

import socket

import pytest
import zmq

from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import opening
from tests.wire.zmtp.skin import DEADLINE_S, Stage

MESSAGES = [[b""], [b"x" * 252, b"y" * 253, b"z" * 254], [b"u" * 255, b"v" * 256], [b"w" * 70_000, b"end"]]


def heard_until(sock: socket.socket, ending: bytes) -> bytes:
    heard = b""
    while not heard.endswith(ending):
        chunk = sock.recv(65536)
        assert chunk, "libzmq hung up"
        heard += chunk
    return heard


@pytest.mark.parametrize("version", [1, 2])
def test_libzmq_reads_what_we_write_for_an_old_peer_and_we_read_what_it_writes(stage: Stage, version: int) -> None:
    is_v1 = version == 1
    judge = stage.judge(zmq.ROUTER)
    port = judge.bind_to_random_port("tcp://127.0.0.1")
    with socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as sock:
        sock.sendall(opening(version, b"DEALER", b"old-timer"))
        for frames in MESSAGES:
            sock.sendall(encode_message(frames, is_v1))
        for frames in MESSAGES:
            assert judge.recv_multipart() == [b"old-timer", *frames]
        for frames in MESSAGES:
            judge.send_multipart([b"old-timer", *frames])
        heard = heard_until(sock, encode_message([b"end"], is_v1))
    # To a 1.0 peer libzmq's signature is the header of its empty identity. To a 2.0 peer it says its own version and
    # otherwise behaves as one, so the version byte is all that has to be aged.
    old = b"\x01\x00" + heard[10:] if is_v1 else heard[:10] + b"\x01" + heard[11:]
    connection = ZmtpConnection(b"DEALER")
    assert connection.receive(old) == MESSAGES
    assert connection.peer_version == version
    assert connection.peer_socket_type == (b"" if is_v1 else b"ROUTER")


def test_a_3_0_peer_gets_subscriptions_from_libzmq_as_messages_and_we_take_them(stage: Stage) -> None:
    sub = stage.connected(zmq.SUB)
    sub.setsockopt(zmq.SUBSCRIBE, b"topic")
    sock = stage.listener.accept()[0]
    with sock:
        sock.settimeout(DEADLINE_S)
        sock.sendall(opening(30, b"PUB"))
        heard = heard_until(sock, encode_message([b"\x01topic"]))
    connection = ZmtpConnection(b"PUB")
    assert connection.receive(heard) == [[b"\x01topic"]]
