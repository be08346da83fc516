"""Peers that are huge, slow, silent or gone, over real sockets."""

from __future__ import annotations

import socket

import pytest
import zmq

from dragoman.errors import MessageTooLarge
from dragoman.limits import MESSAGE_SIZE_MAX
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.frames import encode_message
from tests.wire.zmtp.dialogue import greeting_v3, hear, opening, ready
from tests.wire.zmtp.skin import Skin, Stage

HUNDRED_MB = 100_000_000


def router(message_size_max: int = MESSAGE_SIZE_MAX) -> ZmtpConnection:
    return ZmtpConnection(b"ROUTER", message_size_max=message_size_max)


@pytest.mark.long
def test_a_message_of_100_mb_passes_both_ways_under_a_raised_limit(stage: Stage) -> None:
    dealer = stage.connected(zmq.DEALER)
    ours = stage.accept(router(message_size_max=HUNDRED_MB + 10)).handshake()
    body = bytes(range(256)) * (HUNDRED_MB // 256)
    dealer.send_multipart([b"head", body], copy=False)
    frames = ours.receive()
    assert frames[0] == b"head"
    assert frames[1] == body
    ours.send([b"back", body])
    assert dealer.recv_multipart() == [b"back", body]


def test_a_message_of_100_mb_over_the_limit_is_refused_by_its_header(stage: Stage) -> None:
    dealer = stage.connected(zmq.DEALER)
    ours = stage.accept(router()).handshake()
    dealer.send(bytes(HUNDRED_MB), copy=False)
    with pytest.raises(MessageTooLarge) as caught:
        ours.receive()
    assert caught.value.size == HUNDRED_MB
    assert ours.bytes_read <= 2 * ours.read_size


def test_a_peer_that_stalls_in_its_greeting_keeps_nobody_waiting(stage: Stage) -> None:
    with stage.raw() as stalling:
        stalling.sendall(greeting_v3()[:37])
        stalled = stage.accept(router())
        while stalled.bytes_read < 37:
            stalled.pump()
        assert not stalled.connection.is_ready
        dealer = stage.connected(zmq.DEALER)
        other = stage.accept(router()).handshake()
        dealer.send(b"through")
        assert other.receive() == [b"through"]
        stalling.sendall(greeting_v3()[37:] + ready(b"DEALER"))
        stalled.handshake()
        assert stalled.connection.peer_socket_type == b"DEALER"


def test_a_peer_that_stalls_in_a_frame_can_go_on_later(stage: Stage) -> None:
    stream = opening(31, b"DEALER") + encode_message([b"a" * 1000, b"b" * 1000])
    with stage.raw() as stalling:
        stalling.sendall(stream[:-500])
        ours = stage.accept(router())
        while ours.bytes_read < len(stream) - 500:
            ours.pump()
        assert ours.messages == []
        assert ours.connection.fault is None
        stalling.sendall(stream[-500:])
        assert ours.receive() == [b"a" * 1000, b"b" * 1000]


def test_a_half_message_of_a_vanished_peer_never_comes_out(stage: Stage) -> None:
    with stage.raw() as vanishing:
        vanishing.sendall(opening(31, b"DEALER") + encode_message([b"whole"]))
        ours = stage.accept(router())
        assert ours.receive() == [b"whole"]
        vanishing.sendall(encode_message([b"half", b"x" * 99])[:-1])
    with pytest.raises((EOFError, ConnectionResetError)):
        while True:
            ours.pump()
    assert ours.messages == []
    assert ours.connection.fault is None


def test_a_half_closed_peer_still_hears_us(stage: Stage) -> None:
    with stage.raw() as peer:
        peer.sendall(opening(31, b"DEALER") + encode_message([b"last words"]))
        peer.shutdown(socket.SHUT_WR)
        ours = stage.accept(router())
        assert ours.receive() == [b"last words"]
        with pytest.raises(EOFError):
            ours.pump()
        ours.send([b"heard"])
        ours.close()
        heard = b""
        while chunk := peer.recv(4096):
            heard += chunk
    assert heard.endswith(encode_message([b"heard"]))


def test_a_peer_that_connects_and_says_nothing_gets_the_signature_only(stage: Stage) -> None:
    with stage.raw() as silent:
        ours = stage.accept(router())
        assert silent.recv(4096) == ours.connection.greeting()
        assert not ours.connection.is_ready
    with pytest.raises(EOFError):
        ours.pump()


@pytest.mark.parametrize(
    ("speech", "messages", "code"),
    [
        (b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n", [], "HTTP_NOT_SPOKEN"),
        (b"\x16\x03\x01" + b"\xaa" * 20 + b"\x00\x20", [], "TLS_NOT_SPOKEN"),
        (b"\0" * 64, [], "BAD_GREETING"),
        (b"SSH-2.0-client\r\n", [], "BAD_GREETING"),
    ],
    ids=["http", "tls", "zeros", "ssh"],
)
def test_a_stranger_of_another_protocol_says_nothing_to_us(
    speech: bytes, messages: list[list[bytes]], code: str
) -> None:
    heard, _, fault = hear(router(), [speech])
    assert heard == messages
    assert ("" if fault is None else fault.code) == code


def test_one_listener_serves_every_age_at_once(stage: Stage) -> None:
    peers: list[tuple[int, socket.socket, Skin]] = []
    for version in (1, 2, 30, 31):
        raw = stage.raw()
        raw.sendall(opening(version, b"DEALER", b"peer-%d" % version))
        peers.append((version, raw, stage.accept(router()).handshake()))
    for version, raw, ours in peers:
        assert ours.connection.peer_version == version
        assert ours.connection.peer_identity == b"peer-%d" % version
        raw.sendall(encode_message([b"", b"job"], version == 1))
        assert ours.receive() == [b"", b"job"]
        ours.send([b"", b"done"])
        ours.close()
        heard = b""
        while chunk := raw.recv(4096):
            heard += chunk
        assert heard.endswith(encode_message([b"", b"done"], version == 1))
        raw.close()
