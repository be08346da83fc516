"""The seam for other mechanisms, proved by a PLAIN written against it and judged by libzmq."""

from __future__ import annotations

import pytest
import zmq

from dragoman.errors import HandshakeFailed, MechanismMismatch
from dragoman.wire.zmtp.commands import build, split
from dragoman.wire.zmtp.connection import ZmtpConnection
from dragoman.wire.zmtp.mechanism import Mechanism
from tests.wire.zmtp.dialogue import greeting_v3, opening
from tests.wire.zmtp.skin import Stage


class PlainServer(Mechanism):
    """HELLO → WELCOME, INITIATE → READY; one user is known."""

    def __init__(self) -> None:
        super().__init__(b"PLAIN", True)
        self.ours = b""

    def start(self, metadata: bytes) -> bytes:
        self.ours = metadata
        return b""

    def step(self, command: bytes) -> bytes:
        name, data = split(command)
        if name == b"HELLO":
            if data != b"\x04anna\x06secret":
                raise HandshakeFailed("who are you?")
            return build(b"WELCOME", b"")
        if name != b"INITIATE":
            raise HandshakeFailed("INITIATE was due")
        self.peer_metadata = data
        self.is_done = True
        return build(b"READY", self.ours)


def our_router() -> ZmtpConnection:
    return ZmtpConnection(b"ROUTER", mechanism=PlainServer())


def test_a_mechanism_of_several_steps_fits_the_seam(stage: Stage) -> None:
    dealer = stage.connected(zmq.DEALER, IDENTITY=b"w", PLAIN_USERNAME=b"anna", PLAIN_PASSWORD=b"secret")
    ours = stage.accept(our_router()).handshake()
    assert ours.connection.peer_identity == b"w"
    dealer.send_multipart([b"a", b"b"])
    assert ours.receive() == [b"a", b"b"]
    ours.send([b"c"])
    assert dealer.recv() == b"c"


def test_a_mechanism_that_refuses_says_so_to_the_peer(stage: Stage) -> None:
    dealer = stage.judge(zmq.DEALER, PLAIN_USERNAME=b"anna", PLAIN_PASSWORD=b"guessed")
    monitor = dealer.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    dealer.connect(f"tcp://127.0.0.1:{stage.port}")
    with pytest.raises(HandshakeFailed, match="who are you"):
        stage.accept(our_router()).handshake()
    # libzmq calls an ERROR whose reason is no status code of its own a failed handshake, and reports it.
    assert monitor.poll(60_000)
    dealer.disable_monitor()
    monitor.close()


def test_our_greeting_names_the_mechanism_and_says_who_is_the_server() -> None:
    connection = our_router()
    connection.receive(greeting_v3(mechanism=b"PLAIN"))
    outgoing = connection.take_outgoing()
    assert outgoing[2:22] == b"PLAIN".ljust(20, b"\0")
    assert outgoing[22] == 1
    assert len(outgoing) == 54


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_greeting_is_no_way_around_a_mechanism(version: int) -> None:
    connection = our_router()
    with pytest.raises(MechanismMismatch):
        connection.receive(opening(version, b"DEALER", b"sly"))
    assert not connection.is_ready
