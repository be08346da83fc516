"""libzmq connects to us: REQ, DEALER and ROUTER to our ROUTER; SUB and XSUB to our PUB and XPUB; PUB and XPUB to our XSUB."""

from __future__ import annotations

import pytest
import zmq

from dragoman.errors import SocketTypeMismatch
from dragoman.wire.zmtp.connection import ZmtpConnection
from tests.wire.zmtp.skin import OneByteSkin, Skin, Stage

KINDS = pytest.mark.parametrize("kind", [Skin, OneByteSkin])


def our(socket_type: bytes) -> ZmtpConnection:
    return ZmtpConnection(socket_type)


@KINDS
def test_a_req_asks_and_hears(stage: Stage, kind: type[Skin]) -> None:
    req = stage.connected(zmq.REQ)
    router = stage.accept(our(b"ROUTER"), kind).handshake()
    for turn in range(3):
        req.send_multipart([b"question", b"%d" % turn])
        assert router.receive() == [b"", b"question", b"%d" % turn]
        router.send([b"", b"answer", b"%d" % turn])
        assert req.recv_multipart() == [b"answer", b"%d" % turn]
    assert router.connection.peer_socket_type == b"REQ"
    assert router.connection.peer_version == 31


@KINDS
def test_a_dealer_with_an_identity_is_known_by_it(stage: Stage, kind: type[Skin]) -> None:
    dealer = stage.connected(zmq.DEALER, IDENTITY=b"worker-7")
    router = stage.accept(our(b"ROUTER"), kind).handshake()
    assert router.connection.peer_identity == b"worker-7"
    assert router.connection.peer_metadata[b"socket-type"] == b"DEALER"
    frames = [b"", b"x" * 255, b"y" * 256, b"z" * 1000, b""]
    dealer.send_multipart(frames)
    assert router.receive() == frames
    router.send(frames)
    assert dealer.recv_multipart() == frames


def test_a_dealer_without_identity_has_an_empty_one(stage: Stage) -> None:
    stage.connected(zmq.DEALER)
    assert stage.accept(our(b"ROUTER")).handshake().connection.peer_identity == b""


def test_two_dealers_with_one_identity_both_get_through(stage: Stage) -> None:
    dealers, routers = [], []
    for _ in range(2):
        dealers.append(stage.connected(zmq.DEALER, IDENTITY=b"twin"))
        routers.append(stage.accept(our(b"ROUTER")).handshake())
    for index, (dealer, router) in enumerate(zip(dealers, routers, strict=True)):
        assert router.connection.peer_identity == b"twin"
        dealer.send(b"%d" % index)
        assert router.receive() == [b"%d" % index]
        router.send([b"back %d" % index])
        assert dealer.recv() == b"back %d" % index


@KINDS
def test_a_router_connects_to_our_router(stage: Stage, kind: type[Skin]) -> None:
    theirs = stage.connected(zmq.ROUTER, IDENTITY=b"them", CONNECT_ROUTING_ID=b"us", ROUTER_MANDATORY=1)
    ours = stage.accept(our(b"ROUTER"), kind).handshake()
    assert ours.connection.peer_identity == b"them"
    theirs.send_multipart([b"us", b"hello"])
    assert ours.receive() == [b"hello"]
    ours.send([b"hello yourself"])
    assert theirs.recv_multipart() == [b"us", b"hello yourself"]


def test_many_messages_in_flight_keep_their_order(stage: Stage) -> None:
    dealer = stage.connected(zmq.DEALER)
    router = stage.accept(our(b"ROUTER")).handshake()
    sent = [[b"%d" % number, b"b" * (number % 300)] for number in range(900)]
    for frames in sent:
        dealer.send_multipart(frames)
    received = [router.receive() for _ in sent]
    assert received == sent
    for frames in received:
        router.send(frames)
    assert [dealer.recv_multipart() for _ in sent] == sent


@KINDS
@pytest.mark.parametrize("ours", [b"PUB", b"XPUB"])
def test_a_sub_subscribes_by_command_hears_and_cancels(stage: Stage, ours: bytes, kind: type[Skin]) -> None:
    sub = stage.connected(zmq.SUB)
    sub.setsockopt(zmq.SUBSCRIBE, b"orders/")
    pub = stage.accept(our(ours), kind).handshake()
    assert pub.receive() == [b"\x01orders/"]
    pub.send([b"other/1", b"not wanted"])
    pub.send([b"orders/1", b"wanted"])
    assert sub.recv_multipart() == [b"orders/1", b"wanted"]
    sub.setsockopt(zmq.UNSUBSCRIBE, b"orders/")
    assert pub.receive() == [b"\x00orders/"]
    assert pub.connection.peer_socket_type == b"SUB"


@KINDS
def test_an_xsub_subscribes_by_message_and_talks_upstream(stage: Stage, kind: type[Skin]) -> None:
    xsub = stage.connected(zmq.XSUB)
    xpub = stage.accept(our(b"XPUB"), kind).handshake()
    xsub.send(b"\x01news")
    assert xpub.receive() == [b"\x01news"]
    xsub.send_multipart([b"up", b"stream"])
    assert xpub.receive() == [b"up", b"stream"]
    xpub.send([b"news/1"])
    assert xsub.recv() == b"news/1"
    xsub.send(b"\x00news")
    assert xpub.receive() == [b"\x00news"]


@KINDS
@pytest.mark.parametrize(("theirs", "name"), [(zmq.PUB, b"PUB"), (zmq.XPUB, b"XPUB")])
def test_our_xsub_hears_a_publisher_that_connects(stage: Stage, theirs: int, name: bytes, kind: type[Skin]) -> None:
    publisher = stage.connected(theirs)
    xsub = stage.accept(our(b"XSUB"), kind).handshake()
    assert xsub.connection.peer_socket_type == name
    xsub.send_bytes(xsub.connection.subscribe_bytes(b"t"))
    if theirs == zmq.XPUB:
        assert publisher.recv() == b"\x01t"
    while not xsub.messages:
        # A PUB does not say when a subscription has reached it: publish until one comes through.
        publisher.send_multipart([b"topic", b"body"])
        xsub.sock.settimeout(0.05)
        try:
            xsub.pump()
        except TimeoutError:
            continue
    assert xsub.messages[0] == [b"topic", b"body"]
    if theirs == zmq.XPUB:
        xsub.send_bytes(xsub.connection.subscribe_bytes(b"t", False))
        assert publisher.recv() == b"\x00t"


def test_a_connection_that_answers_no_ping_is_dropped_by_libzmq_and_ours_is_not(stage: Stage) -> None:
    stage.connected(zmq.DEALER, HEARTBEAT_IVL=50, HEARTBEAT_TIMEOUT=150)
    deaf = stage.accept(our(b"ROUTER")).handshake()
    data = b"-"
    while data:
        data = deaf.sock.recv(4096)
    deaf.close()
    alive = stage.accept(our(b"ROUTER")).handshake()
    for _ in range(8):
        alive.pump()
    assert alive.connection.fault is None


@pytest.mark.parametrize(
    ("theirs", "ours"), [(zmq.SUB, b"ROUTER"), (zmq.PUSH, b"ROUTER"), (zmq.DEALER, b"PUB"), (zmq.REP, b"XSUB")]
)
def test_a_socket_of_the_wrong_type_never_gets_through(stage: Stage, theirs: int, ours: bytes) -> None:
    stage.connected(theirs)
    skin = stage.accept(our(ours))
    # libzmq checks the types too; whoever reads the other's READY first hangs up.
    with pytest.raises((SocketTypeMismatch, EOFError, ConnectionError)):
        skin.handshake()
    assert not skin.connection.is_ready
