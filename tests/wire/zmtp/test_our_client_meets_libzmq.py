"""We connect to libzmq: our DEALER and REQ to its ROUTER and REP; our SUB to its PUB and XPUB; our PUB to its SUB and XSUB."""

from __future__ import annotations

import pytest
import zmq

from dragoman.wire.zmtp.connection import ZmtpConnection
from tests.wire.zmtp.skin import OneByteSkin, Skin, Stage

KINDS = pytest.mark.parametrize("kind", [Skin, OneByteSkin])


def our(socket_type: bytes, identity: bytes = b"") -> ZmtpConnection:
    return ZmtpConnection(socket_type, identity=identity)


@KINDS
def test_our_dealer_is_known_to_a_router_by_its_identity(stage: Stage, kind: type[Skin]) -> None:
    router = stage.judge(zmq.ROUTER)
    dealer = stage.connect(router, our(b"DEALER", b"sdk-1"), kind)
    dealer.send([b"", b"hello", b"x" * 300])
    assert router.recv_multipart() == [b"sdk-1", b"", b"hello", b"x" * 300]
    router.send_multipart([b"sdk-1", b"", b"back", b"y" * 300])
    assert dealer.receive() == [b"", b"back", b"y" * 300]


def test_our_dealer_without_identity_is_given_one(stage: Stage) -> None:
    router = stage.judge(zmq.ROUTER)
    dealer = stage.connect(router, our(b"DEALER"))
    dealer.send([b"hello"])
    address, body = router.recv_multipart()
    assert address[0] == 0
    assert body == b"hello"
    router.send_multipart([address, b"back"])
    assert dealer.receive() == [b"back"]


def test_an_identity_of_255_bytes_arrives_whole(stage: Stage) -> None:
    router = stage.judge(zmq.ROUTER)
    dealer = stage.connect(router, our(b"DEALER", b"i" * 255))
    dealer.send([b"hello"])
    assert router.recv_multipart() == [b"i" * 255, b"hello"]


@KINDS
def test_our_req_talks_to_a_rep_and_a_router(stage: Stage, kind: type[Skin]) -> None:
    rep = stage.judge(zmq.REP)
    req = stage.connect(rep, our(b"REQ"), kind)
    req.send([b"", b"question"])
    assert rep.recv_multipart() == [b"question"]
    rep.send(b"answer")
    assert req.receive() == [b"", b"answer"]
    router = stage.judge(zmq.ROUTER)
    req = stage.connect(router, our(b"REQ", b"asker"), kind)
    req.send([b"", b"question"])
    assert router.recv_multipart() == [b"asker", b"", b"question"]


def test_our_dealer_talks_to_a_dealer(stage: Stage) -> None:
    theirs = stage.judge(zmq.DEALER)
    dealer = stage.connect(theirs, our(b"DEALER"))
    dealer.send([b"a", b"b"])
    assert theirs.recv_multipart() == [b"a", b"b"]


@KINDS
def test_our_sub_subscribes_and_cancels_at_an_xpub(stage: Stage, kind: type[Skin]) -> None:
    xpub = stage.judge(zmq.XPUB)
    sub = stage.connect(xpub, our(b"SUB"), kind)
    sub.send_bytes(sub.connection.subscribe_bytes(b"orders/"))
    assert xpub.recv() == b"\x01orders/"
    xpub.send_multipart([b"other/1", b"filtered at the publisher"])
    xpub.send_multipart([b"orders/1", b"wanted"])
    assert sub.receive() == [b"orders/1", b"wanted"]
    sub.send_bytes(sub.connection.subscribe_bytes(b"orders/", False))
    assert xpub.recv() == b"\x00orders/"


def test_our_sub_hears_a_pub(stage: Stage) -> None:
    pub = stage.judge(zmq.PUB)
    sub = stage.connect(pub, our(b"SUB"))
    sub.send_bytes(sub.connection.subscribe_bytes(b""))
    sub.sock.settimeout(0.05)
    while not sub.messages:
        # A PUB does not say when a subscription has reached it: publish until one comes through.
        pub.send_multipart([b"topic", b"body"])
        try:
            sub.pump()
        except TimeoutError:
            continue
    assert sub.messages[0] == [b"topic", b"body"]


@KINDS
@pytest.mark.parametrize("theirs", [zmq.SUB, zmq.XSUB])
def test_our_pub_gets_the_subscriptions_of_a_binding_subscriber(stage: Stage, theirs: int, kind: type[Skin]) -> None:
    subscriber = stage.judge(theirs)
    if theirs == zmq.SUB:
        subscriber.setsockopt(zmq.SUBSCRIBE, b"t")
    else:
        subscriber.send(b"\x01t")
    pub = stage.connect(subscriber, our(b"PUB"), kind)
    pub.sock.settimeout(0.05)
    while not pub.messages:
        # A bound libzmq socket meets its new peer in the caller's thread, so it has to be called.
        subscriber.poll(0)
        try:
            pub.pump()
        except TimeoutError:
            continue
    assert pub.messages == [[b"\x01t"]]
    pub.send([b"topic", b"body"])
    assert subscriber.recv_multipart() == [b"topic", b"body"]


def test_the_broker_side_may_restart_and_a_fresh_connection_takes_over(stage: Stage) -> None:
    router = stage.judge(zmq.ROUTER, ROUTER_HANDOVER=1)
    first = stage.connect(router, our(b"DEALER", b"same"))
    port = int(router.getsockopt_string(zmq.LAST_ENDPOINT).rsplit(":", 1)[1])
    first.send([b"one"])
    assert router.recv_multipart() == [b"same", b"one"]
    second = stage.connect_again(port, our(b"DEALER", b"same"))
    second.send([b"two"])
    assert router.recv_multipart() == [b"same", b"two"]
    router.send_multipart([b"same", b"to the second"])
    assert second.receive() == [b"to the second"]
